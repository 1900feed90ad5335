// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_HARDWARE_CLUSTER_H_
#define SEXTANT_COMMON_HARDWARE_CLUSTER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/hardware/accelerator.h"

namespace sextant::hardware {

// How the GPUs of one node reach each other.
//   kNvSwitch: any pair at the full NVLink rate at once.
//   kNvLinkPairs: bridges join GPUs 2i and 2i+1; other pairs go over PCIe.
//   kPcie: all traffic over PCIe.
enum class NodeFabric : int { kNvSwitch, kNvLinkPairs, kPcie };

absl::string_view NodeFabricName(NodeFabric fabric);  // "nvswitch", "nvlink_pairs", "pcie"
absl::StatusOr<NodeFabric> ParseNodeFabric(absl::string_view name);

// A set of equal nodes. All bandwidths are per direction, in bytes per second.
struct Cluster {
  std::string name;
  Accelerator accelerator;
  int gpus_per_node = 8;
  int64_t node_count = 0;  // 0: as many as a job asks for

  NodeFabric node_fabric = NodeFabric::kNvSwitch;
  double node_bandwidth_bytes_per_second = 0;  // of one GPU into the node fabric
  double node_latency_seconds = 0;             // one-way, GPU to GPU inside a node

  double network_bandwidth_bytes_per_second = 0;  // of one whole node into the fabric
  double network_latency_seconds = 0;             // one-way, NIC to NIC
  double oversubscription = 1;  // leaf downlink : uplink bandwidth, 1 is non-blocking
  // False where the source states no inter-node fabric; times between nodes are then a guess.
  bool network_stated = true;

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// Every rule that `cluster` breaks, its accelerator's included (under "accelerator.").
// A cluster of one node may leave the network bandwidth at 0.
absl::Status ValidateCluster(const Cluster& cluster);

}  // namespace sextant::hardware

#endif  // SEXTANT_COMMON_HARDWARE_CLUSTER_H_
