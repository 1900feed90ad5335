// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/case_timer.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/network_sim/analytic/closed_form.h"
#include "common/network_sim/flow/flow_simulation.h"
#include "common/network_sim/flow/round_recursion.h"
#include "common/network_sim/packet/packet_simulation.h"
#include "common/network_sim/patterns/schedule.h"

namespace sextant::network_sim {
namespace {

constexpr int64_t kMaxMessages = 20'000'000;  // about 2 GB of working memory
constexpr double kFewMessages = 4096;         // followed in a few milliseconds

}  // namespace

absl::StatusOr<CaseTimes> CaseTimer::Analytic() const {
  SEXTANT_ASSIGN_OR_RETURN(ClosedFormOutcome closed, ClosedForm(topology_, case_));
  return CaseTimes{std::move(closed.job_finish_seconds), std::move(closed.link_busy_seconds), 0,
                   std::nullopt};
}

bool CaseTimer::RoundsAreWorthFinding() const {
  double count = 0;
  for (const NetworkJob& job : case_.jobs) count += MessageCount(job);
  return options_.multiply_rounds && count > kFewMessages;
}

FlowLimits CaseTimer::Limits() const {
  return {.max_events = options_.max_events,
          .max_simulated_seconds = options_.max_simulated_seconds};
}

absl::StatusOr<CaseTimes> CaseTimer::Flow(const Streams* healthy) const {
  if (RoundsAreWorthFinding()) {
    SEXTANT_ASSIGN_OR_RETURN(std::optional<RoundOutcome> rounds,
                             TimeRounds(topology_, case_, Limits(), options_.check));
    if (rounds.has_value()) {
      for (const double finish : rounds->job_finish_seconds) {
        if (finish > options_.max_simulated_seconds) return BeyondTime(Limits());
      }
      return CaseTimes{std::move(rounds->job_finish_seconds), std::move(rounds->link_busy_seconds),
                       rounds->event_count, std::nullopt};
    }
  }
  return FollowMessages(healthy);
}

absl::StatusOr<CaseTimes> CaseTimer::FollowMessages(const Streams* healthy) const {
  SEXTANT_ASSIGN_OR_RETURN(const Schedule schedule,
                           LowerJobs(case_.jobs, kMaxMessages, &topology_));
  CaseTimes times;
  SEXTANT_ASSIGN_OR_RETURN(times.streams,
                           BuildStreams(topology_, schedule, case_.transport,
                                        {case_.routing, case_.ecmp_seed}, healthy, options_.check));
  const FlowLimits limits = Limits();
  SEXTANT_ASSIGN_OR_RETURN(
      FlowOutcome outcome,
      PacketsDecide(schedule, *times.streams, case_.transport)
          ? SimulatePackets(topology_, schedule, *times.streams, case_.transport, case_.jobs,
                            limits, options_.check)
          : SimulateFlows(topology_, schedule, *times.streams, case_.transport, case_.jobs, limits,
                          options_.check));
  times.job_finish_seconds = std::move(outcome.job_finish_seconds);
  times.event_count = outcome.event_count;
  times.link_busy_seconds = LinkBusySeconds(topology_, schedule, *times.streams, case_.transport);
  return times;
}

}  // namespace sextant::network_sim
