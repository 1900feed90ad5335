// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/collective_choice.h"

#include <algorithm>
#include <limits>

#include "common/network_sim/patterns/rounds.h"

namespace sextant::network_sim {
namespace {

// Trees are pipelined in pieces of about this size.
constexpr int64_t kTreeChunkBytes = int64_t{1} << 19;
constexpr int64_t kMostTreeChunks = 32;

// Endpoints that share the switch nearest to them; 1 where each is on its own.
int64_t EndpointsPerSwitch(const TopologySpec& topology) {
  switch (topology.kind) {
    case TopologyKind::kNvSwitchRails:
    case TopologyKind::kNvSwitchLeafSpine:
      return topology.gpus_per_server;
    case TopologyKind::kLeafSpine:
    case TopologyKind::kFatTree:
      return topology.endpoints_per_leaf;
    case TopologyKind::kDragonfly:
      return topology.endpoints_per_router * topology.routers_per_group;
    default:
      return 1;
  }
}

// Levels of a hierarchy that fits every group; empty where none does.
std::vector<int64_t> LevelsOf(const NetworkJob& job, const TopologySpec& topology) {
  const int64_t n = CommonGroupSize(job);
  if (n < 4) return {};
  if (!topology.dimensions.empty()) {
    std::vector<int64_t> levels;
    for (const int64_t d : topology.dimensions) {
      if (d > 1) levels.push_back(d);
    }
    const bool whole = job.groups.size() == 1 && n == topology.EndpointCount() &&
                       std::is_sorted(job.groups[0].begin(), job.groups[0].end());
    return whole && levels.size() > 1 ? levels : std::vector<int64_t>();
  }
  const int64_t per_switch = EndpointsPerSwitch(topology);
  if (per_switch < 2) return {};
  int64_t together = 0;  // consecutive ranks under one switch, the same everywhere
  for (const std::vector<int64_t>& group : job.groups) {
    if (group.size() < 2) continue;
    int64_t run = 1;
    for (size_t i = 1; i <= group.size(); ++i) {
      if (i < group.size() && group[i] / per_switch == group[i - 1] / per_switch) {
        ++run;
        continue;
      }
      if (together == 0) together = run;
      if (run != together) return {};
      run = 1;
    }
  }
  return together > 1 && together < n ? std::vector<int64_t>{together, n / together}
                                      : std::vector<int64_t>();
}

}  // namespace

bool LeavesAlgorithmOpen(Pattern pattern) {
  return pattern == Pattern::kAllReduce || pattern == Pattern::kReduceScatter ||
         pattern == Pattern::kAllGather || pattern == Pattern::kAllToAll;
}

std::vector<NetworkJob> CandidateJobs(const NetworkJob& job, const TopologySpec& topology) {
  std::vector<NetworkJob> candidates;
  const auto add = [&](Pattern pattern) -> NetworkJob& {
    candidates.push_back(job);
    candidates.back().pattern = pattern;
    candidates.back().bidirectional = false;
    return candidates.back();
  };
  const auto add_rings = [&](Pattern pattern) {
    add(pattern);
    add(pattern).bidirectional = true;
  };
  switch (job.pattern) {
    case Pattern::kReduceScatter:
      add_rings(Pattern::kRingReduceScatter);
      add(Pattern::kDirectReduceScatter);
      return candidates;
    case Pattern::kAllGather:
      add_rings(Pattern::kRingAllGather);
      add(Pattern::kDirectAllGather);
      return candidates;
    case Pattern::kAllToAll:
      add(Pattern::kDirectAllToAll);
      add(Pattern::kPairwiseAllToAll);
      return candidates;
    default:
      break;
  }
  const int64_t chunks =
      std::clamp<int64_t>(job.message_bytes / kTreeChunkBytes, 1, kMostTreeChunks);
  add_rings(Pattern::kRingAllReduce);
  add(Pattern::kDoubleBinaryTreeAllReduce).chunk_count = chunks;
  add(Pattern::kHalvingDoublingAllReduce);
  add(Pattern::kDirectAllReduce);
  const std::vector<int64_t> levels = LevelsOf(job, topology);
  if (!levels.empty()) add(Pattern::kHierarchicalAllReduce).levels = levels;
  if (job.in_network) add(Pattern::kInNetworkAllReduce).chunk_count = chunks;
  return candidates;
}

absl::StatusOr<NetworkJob> ChooseAlgorithm(
    const NetworkJob& job, const TopologySpec& topology,
    const std::function<absl::StatusOr<double>(const NetworkJob&)>& seconds_of) {
  std::vector<NetworkJob> candidates = CandidateJobs(job, topology);
  const NetworkJob* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  absl::Status failure;
  for (const NetworkJob& candidate : candidates) {
    const absl::StatusOr<double> seconds = seconds_of(candidate);
    if (!seconds.ok()) {
      failure.Update(seconds.status());
    } else if (*seconds < least) {
      least = *seconds;
      best = &candidate;
    }
  }
  if (best == nullptr) return failure;
  return *best;
}

}  // namespace sextant::network_sim
