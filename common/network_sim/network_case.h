// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_NETWORK_CASE_H_
#define SEXTANT_COMMON_NETWORK_SIM_NETWORK_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sextant::network_sim {

enum class TopologyKind : int {
  kRing,
  kLine,
  kTorus,
  kMesh,
  kFullyConnected,
  kSwitch,
  kLeafSpine,
  kNvSwitchRails,
  kNvSwitchLeafSpine,
};
absl::string_view TopologyKindName(TopologyKind kind);  // "ring", "nvswitch_rails", ...
absl::StatusOr<TopologyKind> ParseTopologyKind(absl::string_view name);

// A class of equal links: per direction, one-way.
struct LinkClass {
  double bandwidth_bytes_per_second = 0;
  double latency_seconds = 0;

  friend bool operator==(const LinkClass&, const LinkClass&) = default;
};

// An interconnect by its shape. Which fields apply depends on `kind`:
//   ring, line: dimensions (one), links (one)     torus, mesh: dimensions, links (one each)
//   fully_connected, switch: endpoint_count, links (one)
//   leaf_spine: leaf_count, endpoints_per_leaf, spine_count, nic, uplink
//   nvswitch_rails: server_count, gpus_per_server, nvlink, nic
//   nvswitch_leaf_spine: the same, servers_per_leaf, spine_count, uplink
// Endpoints (GPUs) are nodes 0..n-1; switches follow in the order of README.md.
struct TopologySpec {
  TopologyKind kind = TopologyKind::kRing;
  std::vector<int64_t> dimensions;
  std::vector<LinkClass> links;
  int64_t endpoint_count = 0;
  int64_t leaf_count = 0;
  int64_t endpoints_per_leaf = 0;
  int64_t spine_count = 0;
  int64_t server_count = 0;
  int64_t gpus_per_server = 0;
  int64_t servers_per_leaf = 0;
  LinkClass nvlink;
  LinkClass nic;
  LinkClass uplink;

  // Number of endpoints; 0 where the sizes are not valid.
  int64_t EndpointCount() const;

  friend bool operator==(const TopologySpec&, const TopologySpec&) = default;
};

// What remains of both directions of the link between nodes a and b; 0 removes it.
struct LinkFault {
  int64_t a = 0;
  int64_t b = 0;
  double bandwidth_fraction = 1;

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

struct Transport {
  int64_t payload_bytes = 4096;  // of a full packet
  int64_t header_bytes = 64;     // of every packet
  int64_t window_bytes = 0;      // payload in flight per stream; 0: enough for line rate

  friend bool operator==(const Transport&, const Transport&) = default;
};

enum class Pattern : int {
  kRingAllReduce,
  kRingReduceScatter,
  kRingAllGather,
  kDirectReduceScatter,
  kDirectAllGather,
  kDirectAllToAll,
  kDirectAllReduce,
  kPairwiseAllToAll,
  kRecursiveDoublingAllReduce,
  kHalvingDoublingAllReduce,
  kTreeAllReduce,
  kHierarchicalAllReduce,
  kPipelineChain,
  kFlows,
};
absl::string_view PatternName(Pattern pattern);  // "ring_all_reduce", ...
absl::StatusOr<Pattern> ParsePattern(absl::string_view name);

struct FlowSpec {
  int64_t source = 0;
  int64_t destination = 0;
  int64_t bytes = 0;

  friend bool operator==(const FlowSpec&, const FlowSpec&) = default;
};

// One communication pattern; each of its groups (ranks in ring order) runs it independently.
struct NetworkJob {
  std::string name;
  Pattern pattern = Pattern::kRingAllReduce;
  std::vector<std::vector<int64_t>> groups;
  int64_t message_bytes = 0;  // meaning per pattern: README.md
  double start_seconds = 0;
  bool bidirectional = false;     // ring patterns
  int64_t chunk_count = 1;        // tree_all_reduce
  int64_t micro_batch_count = 1;  // pipeline_chain
  std::vector<int64_t> levels;    // hierarchical_all_reduce
  std::vector<FlowSpec> flows;    // flows

  friend bool operator==(const NetworkJob&, const NetworkJob&) = default;
};

// Concurrent jobs on one interconnect.
struct NetworkCase {
  std::string id;
  TopologySpec topology;
  std::vector<LinkFault> link_faults;
  uint64_t ecmp_seed = 1;
  Transport transport;
  std::vector<NetworkJob> jobs;

  friend bool operator==(const NetworkCase&, const NetworkCase&) = default;
};

// Every rule that the case breaks; field paths are those of the JSON file (case_reader.h).
absl::Status ValidateNetworkCase(const NetworkCase& network_case);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_NETWORK_CASE_H_
