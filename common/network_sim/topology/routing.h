// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_
#define SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// One fixed path per ordered pair of nodes, by the rules of README.md: dimension order on grids,
// else least cost with hashed ties; a grid pair whose path crosses a removed link takes a shortest
// surviving path, lowest neighbour first.
//
// Remembers distances to the last destination: ask for pairs in order of destination.
// Thread-compatible; borrows the topology.
class Router {
 public:
  Router(const Topology& topology, uint64_t ecmp_seed);

  // Links from source to destination, in order. UNAVAILABLE where no path survives.
  // O(path) on a grid, else O(links of all nodes that are nearer to the destination).
  absl::StatusOr<std::vector<int32_t>> Route(int32_t source, int32_t destination);

 private:
  // Empty where the path crosses a removed link.
  std::vector<int32_t> DimensionOrdered(int32_t source, int32_t destination) const;
  void StartFrom(int32_t destination);
  void Settle(int32_t node);
  void Relax(int32_t node);

  const Topology& topology_;
  const uint64_t mixed_seed_;
  int32_t distances_to_ = -1;
  std::vector<int64_t> distance_;                       // to distances_to_; final up to settled_
  std::vector<int32_t> touched_;                        // nodes whose distance was set
  static constexpr int64_t kBuckets = 11;               // one more than the largest cost of a link
  std::array<std::vector<int32_t>, kBuckets> buckets_;  // nodes by distance mod kBuckets
  int64_t settled_ = 0;
  int64_t queued_ = 0;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_
