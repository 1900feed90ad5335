// SPDX-License-Identifier: Apache-2.0
#include "common/hardware/cluster.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/violations.h"

namespace sextant::hardware {
namespace {

constexpr std::array<absl::string_view, 3> kFabricNames = {"nvswitch", "nvlink_pairs", "pcie"};

}  // namespace

absl::string_view NodeFabricName(NodeFabric fabric) {
  return kFabricNames[static_cast<size_t>(fabric)];
}

absl::StatusOr<NodeFabric> ParseNodeFabric(absl::string_view name) {
  for (size_t i = 0; i < kFabricNames.size(); ++i) {
    if (kFabricNames[i] == name) return static_cast<NodeFabric>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(kFabricNames, ", ")));
}

absl::Status ValidateCluster(const Cluster& cluster) {
  base::Violations violations;
  for (const base::Violation& v : base::ViolationsOf(ValidateAccelerator(cluster.accelerator))) {
    violations.Add(absl::StrCat("accelerator.", v.field), v.description);
  }
  if (cluster.name.empty()) violations.Add("name", "is missing; give the cluster a name");
  violations.RequireAtLeast("gpus_per_node", cluster.gpus_per_node, 1);
  violations.RequireAtLeast("node_count", cluster.node_count, int64_t{0});
  const auto require_finite = [&](absl::string_view field, double value, double minimum) {
    if (violations.RequireAtLeast(field, value, minimum) && std::isinf(value)) {
      violations.Add(field, "is infinite but must be finite");
    }
  };
  require_finite("node_latency_seconds", cluster.node_latency_seconds, 0.0);
  require_finite("network_latency_seconds", cluster.network_latency_seconds, 0.0);
  require_finite("oversubscription", cluster.oversubscription, 1.0);
  require_finite("network_bandwidth_bytes_per_second", cluster.network_bandwidth_bytes_per_second,
                 cluster.node_count == 1 ? 0.0 : 1.0);
  require_finite("node_bandwidth_bytes_per_second", cluster.node_bandwidth_bytes_per_second,
                 cluster.gpus_per_node == 1 ? 0.0 : 1.0);
  return violations.ToStatus();
}

}  // namespace sextant::hardware
