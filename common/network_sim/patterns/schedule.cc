// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/patterns/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

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
  explicit Lowering(Schedule& schedule) : schedule_(schedule) {}

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
      case Pattern::kRecursiveDoublingAllReduce: {
        std::vector<std::pair<int64_t, int64_t>> steps;
        for (int64_t distance = 1; distance < n; distance *= 2) steps.push_back({distance, bytes});
        return Exchanges(ranks, steps);
      }
      case Pattern::kHalvingDoublingAllReduce: {
        std::vector<std::pair<int64_t, int64_t>> steps;
        int64_t part = bytes;
        for (int64_t distance = n / 2; distance >= 1; distance /= 2) {
          part /= 2;
          steps.push_back({distance, part});
        }
        for (size_t i = steps.size(); i-- > 0;) steps.push_back(steps[i]);
        return Exchanges(ranks, steps);
      }
      case Pattern::kTreeAllReduce:
        return Tree(ranks, bytes, job.chunk_count);
      case Pattern::kHierarchicalAllReduce:
        return Hierarchical(ranks, bytes, job.levels);
      case Pattern::kPipelineChain:
        return Chain(ranks, bytes, job.micro_batch_count);
      case Pattern::kFlows:
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

  // Steps of (distance, bytes): every rank exchanges with the rank at index xor distance.
  void Exchanges(const Ranks& ranks, const std::vector<std::pair<int64_t, int64_t>>& steps) {
    Joins before(ranks.size(), kNone);
    for (const auto& [distance, bytes] : steps) {
      const Joins arrived = NewJoins(ranks.size());
      for (size_t i = 0; i < ranks.size(); ++i) {
        const size_t peer = i ^ static_cast<size_t>(distance);
        Send(ranks[i], ranks[peer], bytes, before[i], arrived[peer]);
      }
      before = arrived;
    }
  }

  // Binary tree in heap order; every chunk climbs to the root and comes down independently.
  void Tree(const Ranks& ranks, int64_t bytes, int64_t chunk_count) {
    const size_t n = ranks.size();
    for (int64_t c = 0; c < chunk_count; ++c) {
      const int64_t chunk = Block(bytes, chunk_count, c);
      Joins up(n, kNone);  // inner ranks wait for their children
      for (size_t i = 0; 2 * i + 1 < n; ++i) up[i] = NewJoin();
      for (size_t i = n - 1; i > 0; --i) {
        const size_t parent = (i - 1) / 2;
        Send(ranks[i], ranks[parent], chunk, up[i], up[parent]);
      }
      Joins down(n, kNone);
      down[0] = up[0];
      for (size_t i = 1; i < n; ++i) {
        const size_t parent = (i - 1) / 2;
        down[i] = NewJoin();
        Send(ranks[parent], ranks[i], chunk, down[parent], down[i]);
      }
    }
  }

  // Ring reduce-scatters level by level on ever smaller parts, then ring all-gathers backwards.
  void Hierarchical(const Ranks& ranks, int64_t bytes, const std::vector<int64_t>& levels) {
    Joins before(ranks.size(), kNone);
    std::vector<int64_t> strides;
    std::vector<int64_t> sizes;
    int64_t stride = 1;
    for (const int64_t level : levels) {
      strides.push_back(stride);
      sizes.push_back(bytes);
      stride *= level;
      bytes /= level;
    }
    for (size_t l = 0; l < levels.size(); ++l)
      Phase(ranks, levels[l], strides[l], sizes[l], before);
    for (size_t l = levels.size(); l-- > 0;) {
      Phase(ranks, levels[l], strides[l], sizes[l], before);
    }
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
    double log = 0;
    while (std::size_t{1} << static_cast<int>(log) < ranks.size()) ++log;
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
        count += n * log;
        break;
      case Pattern::kHalvingDoublingAllReduce:
        count += 2 * n * log;
        break;
      case Pattern::kTreeAllReduce:
        count += 2 * (n - 1) * static_cast<double>(job.chunk_count);
        break;
      case Pattern::kHierarchicalAllReduce:
        for (const int64_t level : job.levels) count += 2 * n * static_cast<double>(level - 1);
        break;
      case Pattern::kPipelineChain:
        count += (n - 1) * static_cast<double>(job.micro_batch_count);
        break;
      case Pattern::kFlows:
        break;
    }
  }
  return count;
}

absl::StatusOr<Schedule> LowerJobs(absl::Span<const NetworkJob> jobs, int64_t max_messages) {
  double count = 0;
  for (const NetworkJob& job : jobs) count += MessageCount(job);
  if (count > static_cast<double>(max_messages)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the jobs send ", count, " messages but at most ", max_messages,
                     " are simulated; use smaller groups or the analytic fidelity"));
  }
  Schedule schedule;
  schedule.messages.reserve(static_cast<size_t>(count));
  Lowering lowering(schedule);
  for (size_t i = 0; i < jobs.size(); ++i) lowering.AddJob(static_cast<int32_t>(i), jobs[i]);
  return schedule;
}

}  // namespace sextant::network_sim
