// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_FLOW_ROUND_RECURSION_H_
#define SEXTANT_COMMON_NETWORK_SIM_FLOW_ROUND_RECURSION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network_sim/flow/flow_simulation.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/progress.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

struct RoundOutcome {
  std::vector<double> job_finish_seconds;
  std::vector<double> link_busy_seconds;  // per directed link
  int64_t event_count = 0;                // messages that were followed one by one
};

// What SimulateFlows answers for jobs made of rounds, without an event per message:
//   1. where every message of a round takes equally long (to a millionth), each distinct round
//      once, multiplied;
//   2. else, where no link can be asked for more than it has, by recursion over rounds: a message
//      is sent, at the rate of its slowest link, when its sender has received the round before and
//      the stream is free. As soon as all ranks are equally much later than a round ago, the
//      remaining rounds are multiplied.
// Nothing where neither holds: streams that slow each other, other patterns, windows, adaptive
// routing.
// UNAVAILABLE where a pair has no path, else errors as SimulateFlows. O(messages of distinct
// rounds), and in the second case O(messages) until the rounds repeat.
absl::StatusOr<std::optional<RoundOutcome>> TimeRounds(const Topology& topology,
                                                       const NetworkCase& network_case,
                                                       const FlowLimits& limits,
                                                       const ProgressCheck& check);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_FLOW_ROUND_RECURSION_H_
