// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_COLLECTIVE_CHOICE_H_
#define SEXTANT_COMMON_NETWORK_SIM_COLLECTIVE_CHOICE_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network_sim/network_case.h"

namespace sextant::network_sim {

// True for kAllReduce, kReduceScatter, kAllGather and kAllToAll, which name what is wanted and not
// how it is done.
bool LeavesAlgorithmOpen(Pattern pattern);

// The ways in which `job`, whose pattern leaves the algorithm open, could be done: rings one way
// and both ways, double binary tree, halving and doubling, direct, and hierarchical where the ranks
// lie in equal numbers on servers, leaves, or fill a grid; in the network where the job allows it.
std::vector<NetworkJob> CandidateJobs(const NetworkJob& job, const TopologySpec& topology);

// The candidate that `seconds_of` finds fastest, the first of equals; candidates that cannot be
// timed are passed over. The error of the first where none can be.
absl::StatusOr<NetworkJob> ChooseAlgorithm(
    const NetworkJob& job, const TopologySpec& topology,
    const std::function<absl::StatusOr<double>(const NetworkJob&)>& seconds_of);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_COLLECTIVE_CHOICE_H_
