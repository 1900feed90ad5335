// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_FLOW_FLOW_SIMULATION_H_
#define SEXTANT_COMMON_NETWORK_SIM_FLOW_FLOW_SIMULATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network_sim/engine/event_queue.h"
#include "common/network_sim/flow/streams.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/patterns/schedule.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

struct FlowLimits {
  int64_t max_events = 500'000'000;
  double max_simulated_seconds = 4.6e6;
  // Above this number of flows in one connected piece of the network, the rates that freed
  // bandwidth allows are recomputed only when the time since the piece last changed by a new flow
  // has grown by `refresh_fraction`; bandwidth stays unused until then. Below, always.
  int64_t exact_flow_count = 4096;
  double refresh_fraction = 0.004;
};
// What every way of simulating says beyond its limits: RESOURCE_EXHAUSTED, OUT_OF_RANGE.
absl::Status BeyondEvents(const FlowLimits& limits, SimTime now);
absl::Status BeyondTime(const FlowLimits& limits);

struct FlowOutcome {
  std::vector<double> job_finish_seconds;  // last byte of the job's last message; 0: no message
  int64_t event_count = 0;
};

// Runs the schedule: every stream with something to send is a fluid flow whose rate is its max-min
// fair share of all links of its path; a message arrives TailSeconds after its last byte was sent.
// Deterministic. RESOURCE_EXHAUSTED beyond the limit of events, OUT_OF_RANGE beyond that of
// simulated time, the status of `check` where it stops the run.
absl::StatusOr<FlowOutcome> SimulateFlows(const Topology& topology, const Schedule& schedule,
                                          const Streams& streams, const Transport& transport,
                                          absl::Span<const NetworkJob> jobs,
                                          const FlowLimits& limits,
                                          const ProgressCheck& check = {});

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_FLOW_FLOW_SIMULATION_H_
