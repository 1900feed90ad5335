// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_PACKET_PACKET_SIMULATION_H_
#define SEXTANT_COMMON_NETWORK_SIM_PACKET_PACKET_SIMULATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network_sim/flow/flow_simulation.h"
#include "common/network_sim/flow/streams.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/patterns/schedule.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// True where messages are so few packets long that fluid sharing is coarse, and all packets are few
// enough to be followed one by one in a tenth of a second.
bool PacketsDecide(const Schedule& schedule, const Streams& streams, const Transport& transport);

// Runs the schedule packet by packet: every transmitter serves its streams round robin, every node
// stores and forwards, every stream keeps within its window. What max-min sharing is the limit of,
// for messages of few packets. Deterministic. Errors as SimulateFlows.
// O(packets x hops x log events).
absl::StatusOr<FlowOutcome> SimulatePackets(const Topology& topology, const Schedule& schedule,
                                            const Streams& streams, const Transport& transport,
                                            absl::Span<const NetworkJob> jobs,
                                            const FlowLimits& limits,
                                            const ProgressCheck& check = {});

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_PACKET_PACKET_SIMULATION_H_
