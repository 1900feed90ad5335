// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/patterns/ring_embedding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace sextant::network_sim {
namespace {

constexpr size_t kMostRanks = 64;
constexpr int kMostImprovements = 200;
constexpr double kBetter = 1 - 1e-9;

using Ranks = std::vector<int64_t>;

bool IsRing(Pattern pattern) {
  return pattern == Pattern::kRingAllReduce || pattern == Pattern::kRingReduceScatter ||
         pattern == Pattern::kRingAllGather;
}

// Cost of going round: seconds per byte on the busiest link, then all latencies and hops.
using RingCost = std::pair<double, double>;

class Embedder {
 public:
  Embedder(const Topology& topology, const Ranks& ranks, bool bidirectional)
      : topology_(topology),
        ranks_(ranks),
        bidirectional_(bidirectional),
        load_(topology.links().size(), 0.0) {}

  absl::Status RouteAll(const RoutingOptions& routing) {
    Router router(topology_, routing);
    const size_t n = ranks_.size();
    paths_.resize(n * n);
    for (size_t to = 0; to < n; ++to) {
      for (size_t from = 0; from < n; ++from) {
        if (from == to) continue;
        SEXTANT_ASSIGN_OR_RETURN(
            paths_[from * n + to],
            router.Route(static_cast<int32_t>(ranks_[from]), static_cast<int32_t>(ranks_[to])));
      }
    }
    return absl::OkStatus();
  }

  // The ranks in a better order, or as they were.
  Ranks Improve() {
    std::vector<size_t> order(ranks_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    RingCost cost = CostOf(order);
    for (int round = 0; round < kMostImprovements && TryReversals(order, cost); ++round) {
    }
    Ranks result;
    for (const size_t i : order) result.push_back(ranks_[i]);
    return result;
  }

 private:
  // Reverses the first stretch that makes the ring cheaper.
  bool TryReversals(std::vector<size_t>& order, RingCost& cost) {
    const auto at = [&](size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
    for (size_t i = 1; i + 1 < order.size(); ++i) {
      for (size_t j = i + 1; j < order.size(); ++j) {
        std::reverse(at(i), at(j + 1));
        const RingCost changed = CostOf(order);
        const bool better =
            changed.first < cost.first * kBetter ||
            (changed.first <= cost.first / kBetter && changed.second < cost.second * kBetter);
        if (better) {
          cost = changed;
          return true;
        }
        std::reverse(at(i), at(j + 1));
      }
    }
    return false;
  }

  RingCost CostOf(const std::vector<size_t>& order) {
    const size_t n = order.size();
    RingCost cost = {0, 0};
    std::vector<int32_t> used;
    const auto add = [&](size_t from, size_t to) {
      for (const int32_t link : paths_[from * n + to]) {
        const DirectedLink& l = topology_.links()[static_cast<size_t>(link)];
        double& load = load_[static_cast<size_t>(link)];
        load += 1 / l.bandwidth_bytes_per_second;
        used.push_back(link);
        cost.first = std::max(cost.first, load);
        cost.second += l.latency_seconds + 1e-9;
      }
    };
    for (size_t i = 0; i < n; ++i) {
      add(order[i], order[(i + 1) % n]);
      if (bidirectional_) add(order[(i + 1) % n], order[i]);
    }
    for (const int32_t link : used) load_[static_cast<size_t>(link)] = 0;
    return cost;
  }

  const Topology& topology_;
  const Ranks& ranks_;
  const bool bidirectional_;
  std::vector<std::vector<int32_t>> paths_;
  std::vector<double> load_;
};

}  // namespace

absl::StatusOr<int64_t> ReembedRings(const Topology& topology, const RoutingOptions& routing,
                                     NetworkJob& job) {
  int64_t changed = 0;
  if (!topology.has_removed_links() || !IsRing(job.pattern)) return changed;
  const Topology healthy = topology.Healthy();
  Router router(healthy, routing);
  std::vector<char> removed(topology.links().size() / 2, 0);
  for (const int32_t link : topology.removed_links()) removed[static_cast<size_t>(link) / 2] = 1;
  for (Ranks& ranks : job.groups) {
    if (ranks.size() < 4 || ranks.size() > kMostRanks) continue;
    bool detours = false;
    for (size_t i = 0; i < ranks.size() && !detours; ++i) {
      SEXTANT_ASSIGN_OR_RETURN(const std::vector<int32_t> path,
                               router.Route(static_cast<int32_t>(ranks[i]),
                                            static_cast<int32_t>(ranks[(i + 1) % ranks.size()])));
      for (const int32_t link : path) detours |= removed[static_cast<size_t>(link) / 2] != 0;
    }
    if (!detours) continue;
    Embedder embedder(topology, ranks, job.bidirectional);
    SEXTANT_RETURN_IF_ERROR(embedder.RouteAll(routing));
    Ranks better = embedder.Improve();
    if (better == ranks) continue;
    ranks = std::move(better);
    ++changed;
  }
  return changed;
}

}  // namespace sextant::network_sim
