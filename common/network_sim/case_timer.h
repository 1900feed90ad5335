// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_CASE_TIMER_H_
#define SEXTANT_COMMON_NETWORK_SIM_CASE_TIMER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network_sim/flow/flow_simulation.h"
#include "common/network_sim/flow/streams.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/simulate.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

struct CaseTimes {
  std::vector<double> job_finish_seconds;
  std::vector<double> link_busy_seconds;  // per directed link
  int64_t event_count = 0;
  std::optional<Streams> streams;  // where every message was followed
};

// Times the jobs of a valid case, all of whose patterns name their algorithm, on a given topology.
// Errors: UNAVAILABLE (no path), UNIMPLEMENTED (no closed form), RESOURCE_EXHAUSTED and
// OUT_OF_RANGE (beyond the options' limits), or what options.check returned. Borrows everything.
class CaseTimer {
 public:
  CaseTimer(const Topology& topology, const NetworkCase& network_case,
            const SimulationOptions& options)
      : topology_(topology), case_(network_case), options_(options) {}

  absl::StatusOr<CaseTimes> Analytic() const;
  // `healthy`: the streams of the same jobs on topology.Healthy(), whose routes are then reused.
  absl::StatusOr<CaseTimes> Flow(const Streams* healthy = nullptr) const;

 private:
  // True where so many long messages are sent that equal rounds are worth finding.
  bool RoundsAreWorthFinding() const;
  FlowLimits Limits() const;
  absl::StatusOr<CaseTimes> FollowMessages(const Streams* healthy) const;

  const Topology& topology_;
  const NetworkCase& case_;
  const SimulationOptions& options_;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_CASE_TIMER_H_
