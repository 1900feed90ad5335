// SPDX-License-Identifier: Apache-2.0
#include "common/collectives/collective.h"

#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/violations.h"
#include "common/collectives/collective_formula.h"

namespace sextant::collectives {
namespace {

constexpr std::array<absl::string_view, 6> kKindNames = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_receive"};

// Beyond these, products leave the range in which double counts exactly.
constexpr double kMaxBytes = 1e18;
constexpr int64_t kMaxRanks = int64_t{1} << 24;

// True where parameters that the answer rests on were fitted elsewhere, or facts are a guess.
bool IsExtrapolated(const Collective& c, const hardware::Cluster& cluster,
                    const CollectiveParameters<double>& p) {
  if (c.group_size <= 1) return false;
  const size_t carrier = static_cast<size_t>(CarrierOf(cluster, c.ranks_per_node));
  const size_t family = static_cast<size_t>(FamilyOf(c.kind));
  const bool inside = c.ranks_per_node > 1 && p.fabric_transferred[carrier][family];
  return inside || (c.SpansNodes() && (p.network_transferred || !cluster.network_stated));
}

parameters::Spread SpreadOf(const Collective& c, const hardware::Cluster& cluster,
                            const CollectiveParameters<double>& p) {
  if (c.SpansNodes()) return p.network_spread;
  return p.fabric_spread[static_cast<size_t>(CarrierOf(cluster, c.ranks_per_node))]
                        [static_cast<size_t>(FamilyOf(c.kind))];
}

}  // namespace

absl::string_view SpreadBlock(const Collective& c, const hardware::Cluster& cluster) {
  return c.SpansNodes() ? kNetworkBlock
                        : FabricBlock(CarrierOf(cluster, c.ranks_per_node), FamilyOf(c.kind));
}

absl::string_view CollectiveKindName(CollectiveKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

absl::StatusOr<CollectiveKind> ParseCollectiveKind(absl::string_view name) {
  for (size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<CollectiveKind>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(kKindNames, ", ")));
}

absl::Status ValidateCollective(const Collective& c, const hardware::Cluster& cluster) {
  base::Violations violations;
  if (!(c.bytes >= 0 && c.bytes <= kMaxBytes)) {
    violations.Add("bytes", absl::StrCat("is ", c.bytes, " but must be between 0 and ", kMaxBytes));
  }
  if (c.group_size < 1 || c.group_size > kMaxRanks) {
    violations.Add("group_size",
                   absl::StrCat("is ", c.group_size, " but must be between 1 and ", kMaxRanks));
  }
  if (violations.RequireAtLeast("ranks_per_node", c.ranks_per_node, int64_t{1})) {
    if (c.ranks_per_node > cluster.gpus_per_node) {
      violations.Add("ranks_per_node",
                     absl::StrCat("is ", c.ranks_per_node, " but cluster ", cluster.name, " has ",
                                  cluster.gpus_per_node, " GPUs per node; spread the group"));
    }
    if (c.group_size >= 1 && c.ranks_per_node > c.group_size) {
      violations.Add(
          "ranks_per_node",
          absl::StrCat("is ", c.ranks_per_node, " but must not exceed group_size ", c.group_size));
    }
  }
  violations.RequireAtLeast("groups_per_node", c.groups_per_node, int64_t{1});
  if (c.group_size > 1 && c.SpansNodes() && !(cluster.network_bandwidth_bytes_per_second > 0)) {
    violations.Add("group_size", absl::StrCat("spans nodes (", c.group_size, " ranks, ",
                                              c.ranks_per_node, " per node) but cluster ",
                                              cluster.name, " states no network bandwidth"));
  }
  if (c.group_size > 1 && c.ranks_per_node > 1 &&
      !(NodeBandwidth(cluster, CarrierOf(cluster, c.ranks_per_node)) > 0)) {
    violations.Add("ranks_per_node",
                   absl::StrCat("is ", c.ranks_per_node, " but cluster ", cluster.name,
                                " states no bandwidth inside a node"));
  }
  return violations.ToStatus();
}

CollectiveEstimate EstimateCollective(const Collective& collective,
                                      const hardware::Cluster& cluster,
                                      const CollectiveParameters<double>& parameters) {
  const CollectiveTime<double> time = CollectiveSeconds(collective, cluster, parameters);
  const bool extrapolated = IsExtrapolated(collective, cluster, parameters);
  const parameters::Interval interval = parameters::IntervalAround(
      time.seconds, SpreadOf(collective, cluster, parameters), extrapolated);
  return {.seconds = time.seconds,
          .latency_seconds = time.latency_seconds,
          .network_bound = time.network_bound,
          .extrapolated = extrapolated,
          .interval_low_seconds = interval.low,
          .interval_high_seconds = interval.high};
}

absl::StatusOr<std::vector<CollectiveEstimate>> EstimateCollectives(
    absl::Span<const Collective> collectives, const hardware::Cluster& cluster,
    const CollectiveParameters<double>& parameters) {
  base::Violations violations;
  std::vector<CollectiveEstimate> estimates;
  estimates.reserve(collectives.size());
  for (size_t i = 0; i < collectives.size(); ++i) {
    const absl::Status status = ValidateCollective(collectives[i], cluster);
    if (!status.ok()) {
      for (const base::Violation& v : base::ViolationsOf(status)) {
        violations.Add(absl::StrCat("collectives[", i, "].", v.field), v.description);
      }
      continue;
    }
    estimates.push_back(EstimateCollective(collectives[i], cluster, parameters));
  }
  if (!violations.empty()) return violations.ToStatus();
  return estimates;
}

}  // namespace sextant::collectives
