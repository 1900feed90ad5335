// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_FAULT_OVERLAY_H_
#define SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_FAULT_OVERLAY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// What the faults leave of each physical link's bandwidth, 1 where healthy, 0 where it is gone, by
// index (directed links 2i and 2i+1). INVALID_ARGUMENT with every fault that names nothing on this
// healthy topology. Random faults depend on seed and link only. O(faults + patterns x links).
absl::StatusOr<std::vector<double>> RemainingFractions(const Topology& healthy,
                                                       const Faults& faults);

// True where `text` matches `pattern`, in which * stands for any text.
bool MatchesGlob(absl::string_view pattern, absl::string_view text);

// Endpoints by the connected piece that they lie in, largest piece first (of equals, lowest rank
// first). One piece: everything is reachable. O(links).
std::vector<std::vector<int32_t>> ConnectedEndpoints(const Topology& topology);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_FAULT_OVERLAY_H_
