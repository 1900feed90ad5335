// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/patterns/rounds.h"

#include "common/network_sim/patterns/trees.h"

namespace sextant::network_sim {
namespace {

using Ranks = std::vector<int64_t>;

class Planner {
 public:
  Planner(const NetworkJob& job, size_t n) : job_(job), n_(n) {}

  RoundPlan Plan() {
    const int64_t steps = static_cast<int64_t>(n_) - 1;
    switch (job_.pattern) {
      case Pattern::kRingAllReduce:
        Add(2 * steps, [&](const Ranks& ranks) { Rings(ranks); });
        break;
      case Pattern::kRingReduceScatter:
      case Pattern::kRingAllGather:
        Add(steps, [&](const Ranks& ranks) { Rings(ranks); });
        break;
      case Pattern::kDirectReduceScatter:
      case Pattern::kDirectAllGather:
      case Pattern::kDirectAllToAll:
      case Pattern::kDirectAllReduce:
        Add(job_.pattern == Pattern::kDirectAllReduce ? 2 : 1, [&](const Ranks& ranks) {
          for (size_t k = 1; k < ranks.size(); ++k) Shift(ranks, job_.message_bytes, k, 0);
        });
        break;
      case Pattern::kPairwiseAllToAll:
        for (size_t k = 1; k < n_; ++k) {
          Add(1, [&](const Ranks& ranks) { Shift(ranks, job_.message_bytes, k, 0); });
        }
        break;
      case Pattern::kRecursiveDoublingAllReduce:
      case Pattern::kHalvingDoublingAllReduce:
        Exchanges();
        break;
      case Pattern::kHierarchicalAllReduce:
        if (job_.chunk_count == 1) Hierarchical();
        break;
      case Pattern::kFlows:
        plan_.steps.push_back({plan_.rounds.size(), 1});
        plan_.rounds.emplace_back();
        for (const FlowSpec& f : job_.flows) Send(f.source, f.destination, f.bytes, 0);
        break;
      case Pattern::kTreeAllReduce:
      case Pattern::kPipelineChain:
      case Pattern::kDoubleBinaryTreeAllReduce:
      case Pattern::kTreeBroadcast:
      case Pattern::kInNetworkAllReduce:
      case Pattern::kAllReduce:
      case Pattern::kReduceScatter:
      case Pattern::kAllGather:
      case Pattern::kAllToAll:
        break;
    }
    return std::move(plan_);
  }

 private:
  void Send(int64_t source, int64_t destination, int64_t bytes, int32_t lane) {
    plan_.rounds.back().push_back({source, destination, bytes, group_, lane});
  }

  // A new round, filled group by group, as the next step.
  template <typename Fill>
  void Add(int64_t repeat, const Fill& fill) {
    plan_.steps.push_back({plan_.rounds.size(), repeat});
    plan_.rounds.emplace_back();
    for (size_t g = 0; g < job_.groups.size(); ++g) {
      group_ = static_cast<int32_t>(g);
      if (job_.groups[g].size() >= 2) fill(job_.groups[g]);
    }
  }

  void Shift(const Ranks& ranks, int64_t bytes, size_t shift, int32_t lane) {
    const int64_t block = LargestBlock(bytes, static_cast<int64_t>(ranks.size()));
    for (size_t i = 0; i < ranks.size(); ++i) {
      Send(ranks[i], ranks[(i + shift) % ranks.size()], block, lane);
    }
  }

  void Rings(const Ranks& ranks) {
    const int64_t bytes = job_.message_bytes;
    if (!job_.bidirectional) return Shift(ranks, bytes, 1, 0);
    Shift(ranks, bytes / 2, 1, 0);
    Shift(ranks, bytes - bytes / 2, ranks.size() - 1, 1);
  }

  void Exchanges() {
    const size_t extra = n_ - static_cast<size_t>(PowerOfTwoBelow(n_));
    plan_.all_take_part = extra == 0;
    if (extra > 0) {
      Add(1, [&](const Ranks& ranks) {
        for (size_t i = 0; i < extra; ++i) {
          Send(ranks[2 * i], ranks[2 * i + 1], job_.message_bytes, 0);
        }
      });
    }
    for (const ExchangeStep& step :
         ExchangeSteps(job_.pattern, static_cast<int64_t>(n_), job_.message_bytes)) {
      Add(1, [&](const Ranks& all) {
        Ranks ranks;
        for (size_t i = 0; i < extra; ++i) ranks.push_back(all[2 * i + 1]);
        ranks.insert(ranks.end(), all.begin() + static_cast<std::ptrdiff_t>(2 * extra), all.end());
        for (size_t i = 0; i < ranks.size(); ++i) {
          Send(ranks[i], ranks[i ^ static_cast<size_t>(step.distance)], step.bytes, 0);
        }
      });
    }
    if (extra > 0) {
      Add(1, [&](const Ranks& ranks) {
        for (size_t i = 0; i < extra; ++i) {
          Send(ranks[2 * i + 1], ranks[2 * i], job_.message_bytes, 0);
        }
      });
    }
  }

  // Ring rounds in every line of a level's ranks, there and back.
  void Hierarchical() {
    int64_t stride = 1;
    int64_t part = job_.message_bytes;
    for (const int64_t level : job_.levels) {
      if (level > 1) {
        Add(level - 1, [&](const Ranks& ranks) { Lines(ranks, level, stride, part); });
      }
      stride *= level;
      part /= level;
    }
    for (size_t i = plan_.steps.size(); i-- > 0;) plan_.steps.push_back(plan_.steps[i]);
  }

  void Lines(const Ranks& ranks, int64_t level, int64_t stride, int64_t bytes) {
    const int64_t block = LargestBlock(bytes, level);
    for (int64_t i = 0; i < static_cast<int64_t>(ranks.size()); ++i) {
      const int64_t position = i / stride % level;
      const int64_t next = position + 1 < level ? i + stride : i - position * stride;
      Send(ranks[static_cast<size_t>(i)], ranks[static_cast<size_t>(next)], block, 0);
    }
  }

  const NetworkJob& job_;
  const size_t n_;
  int32_t group_ = 0;
  RoundPlan plan_;
};

}  // namespace

RoundPlan PlanRounds(const NetworkJob& job, size_t n) { return Planner(job, n).Plan(); }

int64_t CommonGroupSize(const NetworkJob& job) {
  int64_t n = 0;
  for (const Ranks& ranks : job.groups) {
    const int64_t size = static_cast<int64_t>(ranks.size());
    if (size < 2) continue;
    if (n != 0 && size != n) return -1;
    n = size;
  }
  return n;
}

}  // namespace sextant::network_sim
