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
  kFatTree,
  kDragonfly,
  kGraph,
};
absl::string_view TopologyKindName(TopologyKind kind);  // "ring", "nvswitch_rails", ...
absl::StatusOr<TopologyKind> ParseTopologyKind(absl::string_view name);

// A class of equal links: per direction, one-way.
struct LinkClass {
  double bandwidth_bytes_per_second = 0;
  double latency_seconds = 0;

  friend bool operator==(const LinkClass&, const LinkClass&) = default;
};

// One link of an explicit graph; the directions may differ.
struct GraphLink {
  int64_t a = 0;
  int64_t b = 0;
  LinkClass forward;   // a to b
  LinkClass backward;  // b to a
  int64_t cost = 1;    // of least-cost routing, [1, 10]

  friend bool operator==(const GraphLink&, const GraphLink&) = default;
};

// An interconnect by its shape. Which fields apply depends on `kind`:
//   ring, line: dimensions (one), links (one)     torus, mesh: dimensions, links (one each)
//   fully_connected, switch: endpoint_count, links (one)
//   leaf_spine: leaf_count, endpoints_per_leaf, spine_count, nic, uplink
//   nvswitch_rails: server_count, gpus_per_server, nvlink, nic
//   nvswitch_leaf_spine: the same, servers_per_leaf, spine_count, uplink
//   fat_tree (three levels): pod_count, leaves_per_pod, endpoints_per_leaf, spines_per_pod,
//     spine_count (core switches, a multiple of spines_per_pod), nic, uplink, core_uplink
//   dragonfly: group_count, routers_per_group, endpoints_per_router, global_links_per_router, nic,
//     local, global
//   graph: endpoint_count, switch_count, graph_links
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
  int64_t pod_count = 0;
  int64_t leaves_per_pod = 0;
  int64_t spines_per_pod = 0;
  int64_t group_count = 0;
  int64_t routers_per_group = 0;
  int64_t endpoints_per_router = 0;
  int64_t global_links_per_router = 0;
  int64_t switch_count = 0;
  LinkClass nvlink;
  LinkClass nic;
  LinkClass uplink;
  LinkClass core_uplink;
  LinkClass local;
  LinkClass global;
  std::vector<GraphLink> graph_links;

  // Number of endpoints; 0 where the sizes are not valid.
  int64_t EndpointCount() const;

  friend bool operator==(const TopologySpec&, const TopologySpec&) = default;
};

// What remains of both directions of the link between nodes a and b; 0 removes it. Lost packets are
// sent again, so that a loss of p leaves 1 - p of the bandwidth.
struct LinkFault {
  int64_t a = 0;
  int64_t b = 0;
  double bandwidth_fraction = 1;
  double loss_fraction = 0;  // of packets, [0, 1)

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

// The same for every link that a pattern names: "rail3" (every link of the nodes of that name) or
// "ep*-rail3" (every link between such nodes, in either order); * stands for any text. Names are
// those of Topology::NodeName.
struct FaultPattern {
  std::string links;
  double bandwidth_fraction = 1;
  double loss_fraction = 0;

  friend bool operator==(const FaultPattern&, const FaultPattern&) = default;
};

// A rank that sends and receives at 1 / slowdown of its links' bandwidth.
struct SlowRank {
  int64_t rank = 0;
  double slowdown = 1;  // >= 1

  friend bool operator==(const SlowRank&, const SlowRank&) = default;
};

// Links drawn independently: dead with one probability, else derated with another.
struct RandomFaults {
  uint64_t seed = 1;
  std::string links = "*";  // among these, as in FaultPattern
  double dead_probability = 0;
  double derated_probability = 0;
  double bandwidth_fraction = 0.5;  // of the derated

  friend bool operator==(const RandomFaults&, const RandomFaults&) = default;
};

// Everything that is wrong with an interconnect; what meets on one link multiplies.
struct Faults {
  std::vector<LinkFault> links;
  std::vector<FaultPattern> patterns;
  std::vector<std::string> dead_switches;  // node names, * allowed
  std::vector<SlowRank> slow_ranks;
  std::vector<RandomFaults> random;

  bool empty() const {
    return links.empty() && patterns.empty() && dead_switches.empty() && slow_ranks.empty() &&
           random.empty();
  }
  friend bool operator==(const Faults&, const Faults&) = default;
};

// How a pair's path is chosen. Every policy gives one fixed path per stream.
//   kAutomatic: dimension order on grids, else kHashed
//   kShortest: least cost, lowest neighbour first
//   kHashed: least cost, ties by a seeded hash (ECMP)
//   kAdaptive: of several paths, the one whose links have least to send so far
enum class Routing : int { kAutomatic, kShortest, kHashed, kAdaptive };
absl::string_view RoutingName(Routing routing);  // "automatic", "adaptive", ...
absl::StatusOr<Routing> ParseRouting(absl::string_view name);

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
  kDoubleBinaryTreeAllReduce,
  kTreeBroadcast,
  kInNetworkAllReduce,
  // The fastest of the algorithms above for the collective, on its own (collective_choice.h).
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
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
  int64_t chunk_count = 1;        // trees, in_network_all_reduce, hierarchical_all_reduce
  bool in_network = false;        // all_reduce: switches may reduce
  int64_t micro_batch_count = 1;  // pipeline_chain
  std::vector<int64_t> levels;    // hierarchical_all_reduce
  std::vector<FlowSpec> flows;    // flows

  friend bool operator==(const NetworkJob&, const NetworkJob&) = default;
};

// One dimension of a parallel layout: `job` runs in every group of `size` ranks that differ in this
// dimension only (its own groups stay empty).
struct ParallelDimension {
  NetworkJob job;
  int64_t size = 1;

  friend bool operator==(const ParallelDimension&, const ParallelDimension&) = default;
};

// Concurrent jobs on one interconnect.
struct NetworkCase {
  std::string id;
  TopologySpec topology;
  Faults faults;
  bool reembed_rings = false;  // rings may take another order of ranks around dead links
  Routing routing = Routing::kAutomatic;
  uint64_t ecmp_seed = 1;
  Transport transport;
  std::vector<NetworkJob> jobs;
  // A layout of parallel dimensions over ranks 0, 1, ..., the first varying fastest: on a torus the
  // first lies on dimension 0. Runs beside `jobs`.
  std::vector<ParallelDimension> parallel;
  bool optimise_mapping = false;  // take the order of `parallel` that ends first

  friend bool operator==(const NetworkCase&, const NetworkCase&) = default;
};

// Every rule that the case breaks; field paths are those of the JSON file (case_reader.h).
absl::Status ValidateNetworkCase(const NetworkCase& network_case);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_NETWORK_CASE_H_
