// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/routing.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/split_mix.h"

namespace sextant::network_sim {
namespace {

constexpr int64_t kUnreachable = std::numeric_limits<int64_t>::max();

constexpr size_t kLargeDegree = 32;
constexpr size_t kMostTracedLinks = 64;  // beyond, every pair is routed anew

}  // namespace

Router::Router(const Topology& topology, const RoutingOptions& options)
    : topology_(topology),
      options_(options),
      distance_(static_cast<size_t>(topology.node_count()), kUnreachable),
      uniform_cost_(static_cast<size_t>(topology.node_count()), 0) {
  for (int32_t node = 0; node < topology.node_count(); ++node) {
    const absl::Span<const int32_t> links = topology.LinksFrom(node);
    if (links.size() < kLargeDegree) continue;
    const auto cost = [&](int32_t link) {
      return topology.links()[static_cast<size_t>(link)].cost;
    };
    const bool uniform = std::all_of(links.begin(), links.end(),
                                     [&](int32_t link) { return cost(link) == cost(links[0]); });
    if (uniform) uniform_cost_[static_cast<size_t>(node)] = cost(links[0]);
  }
}

std::vector<int32_t> Router::DimensionOrdered(int32_t source, int32_t destination) const {
  std::vector<int32_t> path;
  int64_t node = source;
  int64_t stride = 1;
  for (const int64_t size : topology_.grid()) {
    const int64_t target = destination / stride % size;
    int64_t position = node / stride % size;
    int64_t step = target > position ? 1 : -1;
    if (topology_.wraps()) {
      const int64_t ahead = (target - position + size) % size;
      step = 2 * ahead <= size ? 1 : -1;  // half way round: the positive direction
    }
    while (position != target) {
      const int64_t next = (position + step + size) % size;
      const int64_t next_node = node + (next - position) * stride;
      const int32_t link =
          topology_.FindLink(static_cast<int32_t>(node), static_cast<int32_t>(next_node));
      if (link < 0) return {};
      path.push_back(link);
      position = next;
      node = next_node;
    }
    stride *= size;
  }
  return path;
}

void Router::StartFrom(int32_t destination) {
  if (distances_to_ == destination) return;
  distances_to_ = destination;
  for (const int32_t node : touched_) distance_[static_cast<size_t>(node)] = kUnreachable;
  touched_.assign(1, destination);
  for (std::vector<int32_t>& bucket : buckets_) bucket.clear();
  settled_ = 0;
  queued_ = 1;
  distance_[static_cast<size_t>(destination)] = 0;
  buckets_[0].push_back(destination);
}

// Dial's algorithm: costs are small integers, so a ring of buckets is the queue. Stops as soon as
// the node's distance is final, which makes all nearer ones final too.
void Router::Settle(int32_t node) {
  while (distance_[static_cast<size_t>(node)] > settled_) {
    Pull(node);
    if (queued_ == 0 || distance_[static_cast<size_t>(node)] == settled_) return;
    std::vector<int32_t>& bucket = buckets_[static_cast<size_t>(settled_ % kBuckets)];
    for (size_t i = 0; i < bucket.size(); ++i) {
      --queued_;
      const int32_t entry = bucket[i];
      if (entry < 0) {
        Relax(~entry, 0);
      } else if (distance_[static_cast<size_t>(entry)] == settled_) {
        Expand(entry);
      }
    }
    bucket.clear();
    ++settled_;
  }
}

// The node's distance where a nearer neighbour gives it: final, for all nearer ones are.
void Router::Pull(int32_t node) {
  const absl::Span<const int32_t> links = topology_.LinksFrom(node);
  if (links.size() >= kLargeDegree) return;  // it will be reached
  for (const int32_t index : links) {
    const DirectedLink& link = topology_.links()[static_cast<size_t>(index)];
    const int64_t beyond = distance_[static_cast<size_t>(link.to)];
    if (beyond < settled_ && beyond + link.cost == settled_) return Reach(node, settled_);
  }
}

// A switch with many links of one cost waits until they matter: most searches end before.
void Router::Expand(int32_t node) {
  const int32_t cost = uniform_cost_[static_cast<size_t>(node)];
  if (cost == 0) return Relax(node, -1);
  buckets_[static_cast<size_t>((settled_ + cost) % kBuckets)].push_back(~node);
  ++queued_;
}

// Reaches the neighbours; `cost` is what is left of each link's cost, -1: all of it.
void Router::Relax(int32_t node, int32_t cost) {
  for (const int32_t index : topology_.LinksFrom(node)) {
    const DirectedLink& link = topology_.links()[static_cast<size_t>(index)];
    // Links cost the same both ways.
    const int64_t through = settled_ + (cost < 0 ? link.cost : cost);
    if (through >= distance_[static_cast<size_t>(link.to)]) continue;
    // A node with one link forwards for nobody; Route steps over it where it is the source.
    if (topology_.LinksFrom(link.to).size() == 1) continue;
    Reach(link.to, through);
  }
}

void Router::Reach(int32_t node, int64_t distance) {
  int64_t& known = distance_[static_cast<size_t>(node)];
  if (known == kUnreachable) touched_.push_back(node);
  known = distance;
  buckets_[static_cast<size_t>(distance % kBuckets)].push_back(node);
  ++queued_;
}

absl::StatusOr<std::vector<int32_t>> Router::Route(int32_t source, int32_t destination,
                                                   uint64_t choice) {
  const bool grid = !topology_.grid().empty();
  const bool by_dimension = grid && options_.policy != Routing::kShortest &&
                            options_.policy != Routing::kHashed && choice == 0;
  if (by_dimension) {
    std::vector<int32_t> path = DimensionOrdered(source, destination);
    if (!path.empty()) return path;
  }
  StartFrom(destination);
  std::vector<int32_t> path;
  if (source == destination) return path;
  int32_t node = source;
  if (topology_.LinksFrom(source).size() == 1) {
    path.push_back(topology_.LinksFrom(source)[0]);
    node = topology_.links()[static_cast<size_t>(path[0])].to;
  }
  Settle(node);
  if (distance_[static_cast<size_t>(node)] == kUnreachable) {
    return absl::UnavailableError(absl::StrCat("unreachable: no surviving path from ",
                                               topology_.NodeName(source), " to ",
                                               topology_.NodeName(destination)));
  }
  const bool hashed = !by_dimension && options_.policy != Routing::kShortest;
  Descend(source, node, destination, hashed, base::SplitMix64(options_.ecmp_seed + choice), path);
  return path;
}

void Router::Descend(int32_t source, int32_t node, int32_t destination, bool hashed,
                     uint64_t mixed_seed, std::vector<int32_t>& path) const {
  std::vector<int32_t> next;
  while (node != destination) {
    next.clear();
    for (const int32_t index : topology_.LinksFrom(node)) {
      const DirectedLink& link = topology_.links()[static_cast<size_t>(index)];
      const int64_t beyond = distance_[static_cast<size_t>(link.to)];
      if (beyond != kUnreachable && beyond + link.cost == distance_[static_cast<size_t>(node)]) {
        next.push_back(index);
      }
    }
    size_t pick = 0;
    if (hashed && next.size() > 1) {
      const uint64_t key = (static_cast<uint64_t>(source) << 40) |
                           (static_cast<uint64_t>(destination) << 20) | static_cast<uint64_t>(node);
      pick = base::SplitMix64(mixed_seed ^ key) % next.size();
    }
    path.push_back(next[pick]);
    node = topology_.links()[static_cast<size_t>(next[pick])].to;
  }
}

TouchedPairs::TouchedPairs(const Topology& faulty)
    : faulty_(faulty),
      healthy_(faulty.Healthy()),
      all_(faulty.removed_links().size() > kMostTracedLinks) {
  removed_.assign(faulty.links().size() / 2, 0);
  for (const int32_t link : faulty.removed_links()) {
    removed_[static_cast<size_t>(link) / 2] = 1;
    if (all_) continue;
    const DirectedLink& l = healthy_.links()[static_cast<size_t>(link)];
    distances_.push_back({DistancesFrom(l.from), DistancesFrom(l.to), l.cost});
  }
}

std::vector<int32_t> TouchedPairs::DistancesFrom(int32_t node) const {
  constexpr size_t kBuckets = 11;
  std::vector<int32_t> distance(static_cast<size_t>(healthy_.node_count()),
                                std::numeric_limits<int32_t>::max() / 4);
  std::array<std::vector<int32_t>, kBuckets> buckets;
  distance[static_cast<size_t>(node)] = 0;
  buckets[0].push_back(node);
  size_t queued = 1;
  for (int32_t settled = 0; queued > 0; ++settled) {
    std::vector<int32_t>& bucket = buckets[static_cast<size_t>(settled) % kBuckets];
    for (size_t i = 0; i < bucket.size(); ++i) {
      --queued;
      if (distance[static_cast<size_t>(bucket[i])] != settled) continue;
      for (const int32_t index : healthy_.LinksFrom(bucket[i])) {
        const DirectedLink& link = healthy_.links()[static_cast<size_t>(index)];
        int32_t& known = distance[static_cast<size_t>(link.to)];
        if (settled + link.cost >= known) continue;
        known = settled + link.cost;
        buckets[static_cast<size_t>(known) % kBuckets].push_back(link.to);
        ++queued;
      }
    }
    bucket.clear();
  }
  return distance;
}

bool TouchedPairs::Touches(absl::Span<const int32_t> healthy_path, Routing policy) const {
  if (healthy_path.empty()) return false;
  int32_t cost = 0;
  for (const int32_t link : healthy_path) {
    if (removed_[static_cast<size_t>(link) / 2]) return true;
    cost += healthy_.links()[static_cast<size_t>(link)].cost;
  }
  const bool one_path = !faulty_.grid().empty() && policy == Routing::kAutomatic;
  if (one_path) return false;
  if (all_ || policy == Routing::kAdaptive) return true;
  const size_t source =
      static_cast<size_t>(healthy_.links()[static_cast<size_t>(healthy_path.front())].from);
  const size_t destination =
      static_cast<size_t>(healthy_.links()[static_cast<size_t>(healthy_path.back())].to);
  for (const Removed& link : distances_) {
    const int32_t ahead = link.from_a[source] + link.cost + link.from_b[destination];
    const int32_t back = link.from_b[source] + link.cost + link.from_a[destination];
    if (std::min(ahead, back) == cost) return true;
  }
  return false;
}

}  // namespace sextant::network_sim
