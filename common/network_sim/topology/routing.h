// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_
#define SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// One fixed path per ordered pair of nodes, by the rules of README.md: dimension order on grids,
// else least cost with hashed ties; a grid pair whose path crosses a removed link takes a shortest
// surviving path, lowest neighbour first.
//
// Remembers the distances to the last destination: ask for pairs in order of destination.
// Thread-compatible; borrows the topology.
class Router {
 public:
  Router(const Topology& topology, uint64_t ecmp_seed);

  // Links from source to destination, in order. UNAVAILABLE where no path survives.
  // O(path) for a grid or a repeated destination, else O(links log nodes).
  absl::StatusOr<std::vector<int32_t>> Route(int32_t source, int32_t destination);

 private:
  // Empty where the path crosses a removed link.
  std::vector<int32_t> DimensionOrdered(int32_t source, int32_t destination) const;
  void ComputeDistances(int32_t destination);

  const Topology& topology_;
  const uint64_t mixed_seed_;
  int32_t distances_to_ = -1;
  std::vector<int64_t> distance_;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_
