// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_ANALYTIC_CLOSED_FORM_H_
#define SEXTANT_COMMON_NETWORK_SIM_ANALYTIC_CLOSED_FORM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

struct ClosedFormOutcome {
  std::vector<double> job_finish_seconds;
  std::vector<double> link_busy_seconds;  // per directed link
};

// Times a valid case by closed forms: alpha-beta sums over rounds in which every message takes
// equally long (README.md derives them). UNIMPLEMENTED, with the reason, where jobs share links or
// the messages of a round do not take equally long; UNAVAILABLE where a pair has no path.
// Times that differ by less than `tolerance` of the longest count as equal: blocks differ by a
// byte. O(distinct rounds x messages of a round), whatever the number of repetitions.
absl::StatusOr<ClosedFormOutcome> ClosedForm(const Topology& topology,
                                             const NetworkCase& network_case,
                                             double tolerance = 1e-3);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_ANALYTIC_CLOSED_FORM_H_
