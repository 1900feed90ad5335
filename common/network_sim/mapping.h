// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_MAPPING_H_
#define SEXTANT_COMMON_NETWORK_SIM_MAPPING_H_

#include <vector>

#include "absl/types/span.h"
#include "common/network_sim/network_case.h"

namespace sextant::network_sim {

// One job per dimension of a layout, with its groups: rank = p0 + size0 (p1 + size1 (p2 + ...)) for
// positions p along the dimensions in the order given.
std::vector<NetworkJob> JobsOfLayout(absl::Span<const ParallelDimension> layout);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_MAPPING_H_
