// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/patterns/schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/network_sim/patterns/trees.h"

namespace sextant::network_sim {
namespace {

using Ranks = std::vector<int64_t>;
using Joins = std::vector<int32_t>;  // per rank: what it must have received to go on

int64_t Block(int64_t bytes, int64_t parts, int64_t index) {
  return bytes / parts + (index < bytes % parts ? 1 : 0);
}

// Lowers the groups of one job after another into one schedule.
class Lowering {
 public:
  Lowering(Schedule& schedule, const Topology* topology)
      : schedule_(schedule), topology_(topology) {}

  // Why a job could not be lowered.
  const absl::Status& status() const { return status_; }

  void AddJob(int32_t index, const NetworkJob& job) {
    job_ = index;
    if (job.pattern == Pattern::kFlows) {
      for (size_t i = 0; i < job.flows.size(); ++i) {
        group_ = static_cast<int32_t>(i);
        Send(job.flows[i].source, job.flows[i].destination, job.flows[i].bytes, kNone, kNone);
      }
      return;
    }
    for (size_t g = 0; g < job.groups.size(); ++g) {
      group_ = static_cast<int32_t>(g);
      if (job.groups[g].size() >= 2) AddGroup(job, job.groups[g]);
    }
  }

 private:
  void AddGroup(const NetworkJob& job, const Ranks& ranks) {
    const int64_t n = static_cast<int64_t>(ranks.size());
    const int64_t bytes = job.message_bytes;
    const Joins start(ranks.size(), kNone);
    switch (job.pattern) {
      case Pattern::kRingAllReduce:
        return Rings(job, ranks, 2 * (n - 1));
      case Pattern::kRingReduceScatter:
      case Pattern::kRingAllGather:
        return Rings(job, ranks, n - 1);
      case Pattern::kDirectReduceScatter:
      case Pattern::kDirectAllGather:
      case Pattern::kDirectAllToAll:
        Direct(ranks, bytes, start);
        return;
      case Pattern::kDirectAllReduce:
        Direct(ranks, bytes, Direct(ranks, bytes, start));
        return;
      case Pattern::kPairwiseAllToAll:
        return Pairwise(ranks, bytes);
      case Pattern::kRecursiveDoublingAllReduce:
      case Pattern::kHalvingDoublingAllReduce:
        return Exchanges(ranks, bytes, ExchangeSteps(job.pattern, n, bytes));
      case Pattern::kTreeAllReduce:
        return AllReduceTree(HeapParents(ranks.size()), ranks, bytes, job.chunk_count);
      case Pattern::kDoubleBinaryTreeAllReduce:
        return DoubleBinaryTree(ranks, bytes, job.chunk_count);
      case Pattern::kTreeBroadcast:
        return Broadcast(HeapParents(ranks.size()), ranks, bytes, job.chunk_count);
      case Pattern::kInNetworkAllReduce:
        return InNetwork(ranks, bytes, job.chunk_count);
      case Pattern::kHierarchicalAllReduce:
        return Hierarchical(ranks, bytes, job.levels, job.chunk_count);
      case Pattern::kPipelineChain:
        return Chain(ranks, bytes, job.micro_batch_count);
      case Pattern::kFlows:
      case Pattern::kAllReduce:
      case Pattern::kReduceScatter:
      case Pattern::kAllGather:
      case Pattern::kAllToAll:
        break;
    }
  }

  int32_t NewJoin() {
    schedule_.join_sizes.push_back(0);
    return static_cast<int32_t>(schedule_.join_sizes.size()) - 1;
  }
  Joins NewJoins(size_t count) {
    Joins joins(count);
    for (int32_t& join : joins) join = NewJoin();
    return joins;
  }
  void Send(int64_t source, int64_t destination, int64_t bytes, int32_t after, int32_t arrives) {
    schedule_.messages.push_back({static_cast<int32_t>(source), static_cast<int32_t>(destination),
                                  bytes, job_, group_, after, arrives});
    if (arrives != kNone) ++schedule_.join_sizes[static_cast<size_t>(arrives)];
  }

  // `rounds` rounds; in round k rank i sends block (i - k) mod n to rank i + 1, having received
  // round k - 1 (in the first: having `before`). Returns what the last round brings.
  Joins Ring(const Ranks& ranks, int64_t bytes, int64_t rounds, Joins before) {
    const int64_t n = static_cast<int64_t>(ranks.size());
    for (int64_t k = 0; k < rounds; ++k) {
      const Joins arrived = NewJoins(ranks.size());
      for (int64_t i = 0; i < n; ++i) {
        const size_t self = static_cast<size_t>(i);
        const size_t next = static_cast<size_t>((i + 1) % n);
        const int64_t block = ((i - k) % n + n) % n;
        Send(ranks[self], ranks[next], Block(bytes, n, block), before[self], arrived[next]);
      }
      before = arrived;
    }
    return before;
  }

  void Rings(const NetworkJob& job, const Ranks& ranks, int64_t rounds) {
    const Joins start(ranks.size(), kNone);
    if (!job.bidirectional) {
      Ring(ranks, job.message_bytes, rounds, start);
      return;
    }
    const int64_t half = job.message_bytes / 2;
    Ring(ranks, half, rounds, start);
    Ring(Ranks(ranks.rbegin(), ranks.rend()), job.message_bytes - half, rounds, start);
  }

  // A block to every other rank, all at once.
  Joins Direct(const Ranks& ranks, int64_t bytes, const Joins& before) {
    const int64_t n = static_cast<int64_t>(ranks.size());
    const Joins arrived = NewJoins(ranks.size());
    for (int64_t k = 1; k < n; ++k) {
      for (int64_t i = 0; i < n; ++i) {
        const size_t self = static_cast<size_t>(i);
        const size_t to = static_cast<size_t>((i + k) % n);
        Send(ranks[self], ranks[to], Block(bytes, n, static_cast<int64_t>(to)), before[self],
             arrived[to]);
      }
    }
    return arrived;
  }

  void Pairwise(const Ranks& ranks, int64_t bytes) {
    const int64_t n = static_cast<int64_t>(ranks.size());
    Joins before(ranks.size(), kNone);
    for (int64_t k = 1; k < n; ++k) {
      const Joins arrived = NewJoins(ranks.size());
      for (int64_t i = 0; i < n; ++i) {
        const size_t self = static_cast<size_t>(i);
        const size_t to = static_cast<size_t>((i + k) % n);
        Send(ranks[self], ranks[to], Block(bytes, n, static_cast<int64_t>(to)), before[self],
             arrived[to]);
      }
      before = arrived;
    }
  }

  // Every rank exchanges `bytes` with the rank at index xor distance, step by step, among the
  // largest power of two of ranks. Each rank beyond hands its buffer to one of them before and
  // gets the result after (Thakur, Rabenseifner and Gropp, 2005): pairs (0, 1), (2, 3), ... of
  // which the even one steps aside.
  void Exchanges(const Ranks& all, int64_t bytes, const std::vector<ExchangeStep>& steps) {
    const size_t extra = all.size() - static_cast<size_t>(PowerOfTwoBelow(all.size()));
    Ranks ranks;
    Joins before;
    for (size_t i = 0; i < extra; ++i) {
      before.push_back(NewJoin());
      Send(all[2 * i], all[2 * i + 1], bytes, kNone, before.back());
      ranks.push_back(all[2 * i + 1]);
    }
    for (size_t i = 2 * extra; i < all.size(); ++i) {
      ranks.push_back(all[i]);
      before.push_back(kNone);
    }
    for (const ExchangeStep& step : steps) {
      const Joins arrived = NewJoins(ranks.size());
      for (size_t i = 0; i < ranks.size(); ++i) {
        const size_t peer = i ^ static_cast<size_t>(step.distance);
        Send(ranks[i], ranks[peer], step.bytes, before[i], arrived[peer]);
      }
      before = arrived;
    }
    for (size_t i = 0; i < extra; ++i) {
      Send(all[2 * i + 1], all[2 * i], bytes, before[i], kNone);
    }
  }

  // Every chunk climbs the tree and comes down independently. `parents` are indices into `nodes`,
  // smaller than their children's but for the root's, which is -1.
  void AllReduceTree(const std::vector<int32_t>& parents, const Ranks& nodes, int64_t bytes,
                     int64_t chunk_count) {
    for (int64_t c = 0; c < chunk_count; ++c) {
      const int64_t chunk = Block(bytes, chunk_count, c);
      Joins up(nodes.size(), kNone);  // inner nodes wait for their children
      for (const int32_t parent : parents) {
        if (parent >= 0 && up[static_cast<size_t>(parent)] == kNone) {
          up[static_cast<size_t>(parent)] = NewJoin();
        }
      }
      for (size_t i = nodes.size(); i-- > 0;) {
        if (parents[i] < 0) continue;
        const size_t parent = static_cast<size_t>(parents[i]);
        Send(nodes[i], nodes[parent], chunk, up[i], up[parent]);
      }
      Descend(parents, nodes, chunk, up);
    }
  }

  // From the root to all, once the root has `start`.
  void Descend(const std::vector<int32_t>& parents, const Ranks& nodes, int64_t bytes,
               const Joins& start) {
    Joins down(nodes.size(), kNone);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (parents[i] < 0) {
        down[i] = start[i];
        continue;
      }
      const size_t parent = static_cast<size_t>(parents[i]);
      down[i] = NewJoin();
      Send(nodes[parent], nodes[i], bytes, down[parent], down[i]);
    }
  }

  void Broadcast(const std::vector<int32_t>& parents, const Ranks& ranks, int64_t bytes,
                 int64_t chunk_count) {
    const Joins start(ranks.size(), kNone);
    for (int64_t c = 0; c < chunk_count; ++c) {
      Descend(parents, ranks, Block(bytes, chunk_count, c), start);
    }
  }

  // Half of the bytes over each of two trees in which the inner ranks of one are leaves of the
  // other (Sanders, Speck and Träff, 2009): in the second, all ranks move on by one.
  void DoubleBinaryTree(const Ranks& ranks, int64_t bytes, int64_t chunk_count) {
    for (const bool second : {false, true}) {
      const InOrderTree tree = MakeInOrderTree(ranks.size());
      Ranks nodes;
      for (const int32_t position : tree.positions) {
        const size_t shift = second ? 1 : 0;
        nodes.push_back(ranks[(static_cast<size_t>(position) + shift) % ranks.size()]);
      }
      AllReduceTree(tree.parents, nodes, second ? bytes / 2 : bytes - bytes / 2, chunk_count);
    }
  }

  // Switches add up what comes from below and pass it on; the root sends the result back.
  void InNetwork(const Ranks& ranks, int64_t bytes, int64_t chunk_count) {
    if (topology_ == nullptr) {
      status_.Update(absl::InternalError("reduction in the network needs the topology"));
      return;
    }
    absl::StatusOr<ReductionTree> tree = MakeReductionTree(*topology_, ranks);
    if (!tree.ok()) {
      status_.Update(tree.status());
      return;
    }
    AllReduceTree(tree->parents, tree->nodes, bytes, chunk_count);
  }

  // Per chunk: ring reduce-scatters level by level on ever smaller parts, then ring all-gathers
  // backwards. A chunk enters a phase after the chunk before has left it, so that chunks work in
  // different levels at the same time.
  void Hierarchical(const Ranks& ranks, int64_t bytes, const std::vector<int64_t>& levels,
                    int64_t chunk_count) {
    std::vector<Joins> phase_free;  // per phase: the chunk before has left it
    for (int64_t c = 0; c < chunk_count; ++c) {
      Joins before(ranks.size(), kNone);
      std::vector<int64_t> strides;
      std::vector<int64_t> sizes;
      int64_t stride = 1;
      int64_t part = Block(bytes, chunk_count, c);
      for (const int64_t level : levels) {
        strides.push_back(stride);
        sizes.push_back(part);
        stride *= level;
        part /= level;
      }
      size_t phase = 0;
      const auto run = [&](size_t l) {
        if (phase == phase_free.size()) phase_free.emplace_back(ranks.size(), kNone);
        for (size_t i = 0; i < ranks.size() && c > 0; ++i) {
          before[i] = Both(before[i], phase_free[phase][i]);
        }
        Phase(ranks, levels[l], strides[l], sizes[l], before);
        phase_free[phase++] = before;
      };
      for (size_t l = 0; l < levels.size(); ++l) run(l);
      for (size_t l = levels.size(); l-- > 0;) run(l);
    }
  }

  // A join that is complete when both are.
  int32_t Both(int32_t a, int32_t b) {
    if (a == kNone || a == b) return b;
    if (b == kNone) return a;
    const int32_t join = NewJoin();
    schedule_.join_sizes.back() = 2;
    schedule_.join_arrivals.push_back({a, join});
    schedule_.join_arrivals.push_back({b, join});
    return join;
  }

  // One ring phase in every line of `level` ranks that are `stride` apart.
  void Phase(const Ranks& ranks, int64_t level, int64_t stride, int64_t bytes, Joins& before) {
    if (level < 2) return;
    const int64_t n = static_cast<int64_t>(ranks.size());
    for (int64_t i = 0; i < n; ++i) {
      if (i / stride % level != 0) continue;
      Ranks line;
      Joins line_before;
      for (int64_t k = 0; k < level; ++k) {
        const size_t member = static_cast<size_t>(i + k * stride);
        line.push_back(ranks[member]);
        line_before.push_back(before[member]);
      }
      const Joins arrived = Ring(line, bytes, level - 1, line_before);
      for (int64_t k = 0; k < level; ++k) {
        before[static_cast<size_t>(i + k * stride)] = arrived[static_cast<size_t>(k)];
      }
    }
  }

  void Chain(const Ranks& ranks, int64_t bytes, int64_t micro_batch_count) {
    Joins before(static_cast<size_t>(micro_batch_count), kNone);
    for (size_t stage = 0; stage + 1 < ranks.size(); ++stage) {
      for (int32_t& join : before) {
        const int32_t arrives = NewJoin();
        Send(ranks[stage], ranks[stage + 1], bytes, join, arrives);
        join = arrives;
      }
    }
  }

  Schedule& schedule_;
  const Topology* topology_;
  absl::Status status_;
  int32_t job_ = 0;
  int32_t group_ = 0;
};

}  // namespace

double MessageCount(const NetworkJob& job) {
  if (job.pattern == Pattern::kFlows) return static_cast<double>(job.flows.size());
  double count = 0;
  for (const Ranks& ranks : job.groups) {
    const double n = static_cast<double>(ranks.size());
    if (n < 2) continue;
    const double two = static_cast<double>(PowerOfTwoBelow(ranks.size()));
    const double log = std::log2(two);
    switch (job.pattern) {
      case Pattern::kRingAllReduce:
        count += 2 * (n - 1) * n * (job.bidirectional ? 2 : 1);
        break;
      case Pattern::kRingReduceScatter:
      case Pattern::kRingAllGather:
        count += (n - 1) * n * (job.bidirectional ? 2 : 1);
        break;
      case Pattern::kDirectReduceScatter:
      case Pattern::kDirectAllGather:
      case Pattern::kDirectAllToAll:
      case Pattern::kPairwiseAllToAll:
        count += n * (n - 1);
        break;
      case Pattern::kDirectAllReduce:
        count += 2 * n * (n - 1);
        break;
      case Pattern::kRecursiveDoublingAllReduce:
        count += two * log + 2 * (n - two);
        break;
      case Pattern::kHalvingDoublingAllReduce:
        count += 2 * two * log + 2 * (n - two);
        break;
      case Pattern::kTreeAllReduce:
        count += 2 * (n - 1) * static_cast<double>(job.chunk_count);
        break;
      case Pattern::kHierarchicalAllReduce:
        for (const int64_t level : job.levels) {
          count += 2 * n * static_cast<double>(level - 1) * static_cast<double>(job.chunk_count);
        }
        break;
      case Pattern::kDoubleBinaryTreeAllReduce:
        count += 4 * (n - 1) * static_cast<double>(job.chunk_count);
        break;
      case Pattern::kTreeBroadcast:
        count += (n - 1) * static_cast<double>(job.chunk_count);
        break;
      case Pattern::kInNetworkAllReduce:  // at least: switches of the tree send as well
        count += 2 * n * static_cast<double>(job.chunk_count);
        break;
      case Pattern::kPipelineChain:
        count += (n - 1) * static_cast<double>(job.micro_batch_count);
        break;
      case Pattern::kFlows:
      case Pattern::kAllReduce:
      case Pattern::kReduceScatter:
      case Pattern::kAllGather:
      case Pattern::kAllToAll:
        break;
    }
  }
  return count;
}

absl::StatusOr<Schedule> LowerJobs(absl::Span<const NetworkJob> jobs, int64_t max_messages,
                                   const Topology* topology) {
  double count = 0;
  for (const NetworkJob& job : jobs) count += MessageCount(job);
  if (count > static_cast<double>(max_messages)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the jobs send ", count, " messages but at most ", max_messages,
                     " are simulated; use smaller groups or the analytic fidelity"));
  }
  Schedule schedule;
  schedule.messages.reserve(static_cast<size_t>(count));
  Lowering lowering(schedule, topology);
  for (size_t i = 0; i < jobs.size(); ++i) lowering.AddJob(static_cast<int32_t>(i), jobs[i]);
  if (!lowering.status().ok()) return lowering.status();
  return schedule;
}

}  // namespace sextant::network_sim
