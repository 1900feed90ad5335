// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_PATTERNS_RING_EMBEDDING_H_
#define SEXTANT_COMMON_NETWORK_SIM_PATTERNS_RING_EMBEDDING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/topology/routing.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// Gives every ring of `job` that a removed link forces to detour an order of ranks whose busiest
// link is less busy, or whose way round is shorter where that is equal, where exchanging two ring
// edges for two others finds one (2-opt; Croes, 1958). Other rings, other patterns and rings of
// more than 64 ranks stay as they are. Returns how many rings changed. UNAVAILABLE where a pair has
// no path. O(ranks^2) routes and O(ranks^3) per improvement.
absl::StatusOr<int64_t> ReembedRings(const Topology& topology, const RoutingOptions& routing,
                                     NetworkJob& job);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_PATTERNS_RING_EMBEDDING_H_
