// SPDX-License-Identifier: Apache-2.0
#include "common/collectives/concurrent.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"

namespace sextant::collectives {
namespace {

using network_sim::NetworkCase;
using network_sim::NetworkJob;
using network_sim::NetworkResult;
using network_sim::NetworkStatus;
using network_sim::Pattern;

// Ranks of a group on each of its nodes; 0 where nodes hold different numbers.
int64_t RanksPerNode(const std::vector<int64_t>& group, int64_t gpus_per_node) {
  std::map<int64_t, int64_t> count;
  for (const int64_t rank : group) ++count[rank / gpus_per_node];
  for (const auto& [node, ranks] : count) {
    if (ranks != count.begin()->second) return 0;
  }
  return count.empty() ? 0 : count.begin()->second;
}

// The collective of one group as the closed form sees it. Uneven groups count as spread one by one.
Collective AsCollective(const PlacedCollective& placed, int64_t gpus_per_node) {
  Collective c;
  c.kind = placed.kind;
  c.bytes = placed.bytes;
  const std::vector<int64_t>& group = placed.groups.front();
  c.group_size = static_cast<int64_t>(group.size());
  c.ranks_per_node = std::max<int64_t>(1, RanksPerNode(group, gpus_per_node));
  if (!c.SpansNodes()) return c;
  int64_t on_first_node = 0;  // groups that share the node of the first group's first rank
  const int64_t node = group.front() / gpus_per_node;
  for (const std::vector<int64_t>& other : placed.groups) {
    on_first_node += std::any_of(other.begin(), other.end(),
                                 [&](int64_t rank) { return rank / gpus_per_node == node; });
  }
  c.groups_per_node = std::max<int64_t>(1, on_first_node);
  return c;
}

absl::Status Validate(const ConcurrentCollectives& question) {
  const hardware::Cluster& cluster = question.cluster;
  const int64_t gpu_count = question.gpu_count;
  const std::vector<PlacedCollective>& collectives = question.collectives;
  base::Violations violations;
  if (gpu_count < 1 || gpu_count > (int64_t{1} << 19)) {
    violations.Add("gpu_count", absl::StrCat("is ", gpu_count, " but must be in [1, 524288]"));
  }
  if (collectives.empty() || collectives.size() > kMaxConcurrentCount) {
    violations.Add("collectives",
                   absl::StrCat("has ", collectives.size(), " entries but must have 1 to ",
                                kMaxConcurrentCount));
  }
  for (size_t i = 0; i < collectives.size(); ++i) {
    const PlacedCollective& placed = collectives[i];
    const std::string path = absl::StrCat("collectives[", i, "]");
    if (placed.groups.empty() || placed.groups.front().empty()) {
      violations.Add(absl::StrCat(path, ".groups"), "is empty; give at least one group of ranks");
      continue;
    }
    for (size_t g = 0; g < placed.groups.size(); ++g) {
      const std::vector<int64_t>& group = placed.groups[g];
      const bool known = std::all_of(group.begin(), group.end(),
                                     [&](int64_t rank) { return rank >= 0 && rank < gpu_count; });
      if (!known || group.size() != placed.groups.front().size()) {
        violations.Add(absl::StrCat(path, ".groups[", g, "]"),
                       absl::StrCat("must have ", placed.groups.front().size(),
                                    " ranks between 0 and ", gpu_count - 1));
      }
    }
    if (!violations.empty()) continue;
    violations.AddStatus(path,
                         ValidateCollective(AsCollective(placed, cluster.gpus_per_node), cluster));
  }
  return violations.ToStatus();
}

// Why a simulation has no times.
absl::Status WithoutTimes(const NetworkResult& result) {
  return result.status == NetworkStatus::kUnreachable ? absl::FailedPreconditionError(result.reason)
                                                      : absl::ResourceExhaustedError(result.reason);
}

}  // namespace

NetworkJob NetworkJobOf(const PlacedCollective& placed, int64_t gpus_per_node) {
  const Collective shape = AsCollective(placed, gpus_per_node);
  NetworkJob job;
  job.name = placed.name;
  job.groups = placed.groups;
  for (std::vector<int64_t>& group : job.groups) std::sort(group.begin(), group.end());
  job.start_seconds = placed.start_seconds;
  job.message_bytes = std::max<int64_t>(2 * shape.group_size, std::llround(placed.bytes));
  switch (placed.kind) {
    case CollectiveKind::kAllReduce: {
      const bool levels = shape.SpansNodes() && shape.ranks_per_node > 1 &&
                          std::all_of(job.groups.begin(), job.groups.end(), [&](const auto& group) {
                            return RanksPerNode(group, gpus_per_node) == shape.ranks_per_node;
                          });
      job.pattern = levels ? Pattern::kHierarchicalAllReduce : Pattern::kRingAllReduce;
      if (levels) job.levels = {shape.ranks_per_node, shape.group_size / shape.ranks_per_node};
      break;
    }
    case CollectiveKind::kAllGather:
      job.pattern = Pattern::kRingAllGather;
      break;
    case CollectiveKind::kReduceScatter:
      job.pattern = Pattern::kRingReduceScatter;
      break;
    case CollectiveKind::kAllToAll:
      job.pattern = Pattern::kDirectAllToAll;
      break;
    case CollectiveKind::kBroadcast:
      job.pattern = Pattern::kTreeBroadcast;
      break;
    case CollectiveKind::kSendReceive:
      job.pattern = Pattern::kPipelineChain;
      break;
  }
  return job;
}

network_sim::TopologySpec TopologyOf(const hardware::Cluster& cluster, int64_t node_count) {
  network_sim::TopologySpec spec;
  const double gpus = static_cast<double>(cluster.gpus_per_node);
  // A path crosses two links inside a node and two or four between nodes.
  spec.nvlink = {cluster.node_bandwidth_bytes_per_second, cluster.node_latency_seconds / 2};
  const double network = cluster.network_bandwidth_bytes_per_second;
  spec.nic = {network > 0 ? network / gpus : spec.nvlink.bandwidth_bytes_per_second,
              cluster.network_latency_seconds / 2};
  spec.server_count = node_count;
  spec.gpus_per_server = cluster.gpus_per_node;
  spec.kind = network_sim::TopologyKind::kNvSwitchRails;
  if (!(cluster.oversubscription > 1)) return spec;
  spec.kind = network_sim::TopologyKind::kNvSwitchLeafSpine;
  spec.servers_per_leaf = node_count % 4 == 0 ? 4 : 1;
  spec.spine_count = spec.servers_per_leaf * spec.gpus_per_server;
  spec.nic.latency_seconds /= 2;
  spec.uplink = {spec.nic.bandwidth_bytes_per_second / cluster.oversubscription,
                 spec.nic.latency_seconds};
  return spec;
}

std::vector<std::vector<int64_t>> StridedGroups(int64_t gpu_count, int64_t group_size,
                                                int64_t stride) {
  std::vector<std::vector<int64_t>> groups;
  for (int64_t block = 0; block < gpu_count; block += group_size * stride) {
    for (int64_t first = block; first < block + stride; ++first) {
      std::vector<int64_t>& group = groups.emplace_back();
      for (int64_t i = 0; i < group_size; ++i) group.push_back(first + i * stride);
    }
  }
  return groups;
}

absl::StatusOr<ConcurrentTimes> TimeConcurrent(const ConcurrentCollectives& question,
                                               const CollectiveParameters<double>& parameters,
                                               const network_sim::SimulationOptions& options) {
  SEXTANT_RETURN_IF_ERROR(Validate(question));
  const hardware::Cluster& cluster = question.cluster;
  const int64_t per_node = cluster.gpus_per_node;
  NetworkCase together;
  together.id = cluster.name;
  together.topology = TopologyOf(cluster, (question.gpu_count + per_node - 1) / per_node);
  network_sim::SimulationOptions one = options;
  one.compare_with_healthy = false;
  ConcurrentTimes times;
  std::vector<CollectiveEstimate> estimates;
  for (const PlacedCollective& placed : question.collectives) {
    const Collective shape = AsCollective(placed, per_node);
    estimates.push_back(EstimateCollective(shape, cluster, parameters));
    together.jobs.push_back(NetworkJobOf(placed, per_node));
  }
  NetworkCase alone = together;
  together.faults = question.faults;
  SEXTANT_ASSIGN_OR_RETURN(
      const NetworkResult shared,
      network_sim::SimulateNetworkCase(together, network_sim::Fidelity::kFlow, one));
  if (shared.status != NetworkStatus::kOk) return WithoutTimes(shared);
  times.limiting_link = shared.limiting_link;
  for (size_t i = 0; i < together.jobs.size(); ++i) {
    alone.jobs.assign(1, together.jobs[i]);
    SEXTANT_ASSIGN_OR_RETURN(
        const NetworkResult single,
        network_sim::SimulateNetworkCase(alone, network_sim::Fidelity::kFlow, one));
    if (single.status != NetworkStatus::kOk) return WithoutTimes(single);
    const double base = single.jobs[0].total_seconds;
    const double stretch = base > 0 ? shared.jobs[i].total_seconds / base : 1;
    const CollectiveEstimate& e = estimates[i];
    times.collectives.push_back(
        {e.latency_seconds + (e.seconds - e.latency_seconds) * stretch, e.seconds});
  }
  return times;
}

}  // namespace sextant::collectives
