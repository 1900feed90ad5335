// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_TRACE_H_
#define SEXTANT_COMMON_ORCHESTRATOR_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/orchestrator/ports.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// One piece of work on one track; pieces of a track do not overlap.
struct TraceEvent {
  int track = 0;  // into Trace::tracks
  std::string name;
  double start_seconds = 0;
  double duration_seconds = 0;
};
struct Trace {
  std::vector<std::string> tracks;  // classes of equal pipeline ranks; one for a batch of requests
  std::vector<TraceEvent> events;   // by track, in order of start
};

// What each class of ranks does when, as the timeline formulas lay it out: the first micro-batches
// one by one, the rest of a steady state as one event; waiting is an event too. The last event of
// every track ends at the predicted total_seconds. Order inside a micro-batch is by kind of work.
// INVALID_ARGUMENT for a wrong job, or one with a serving load; errors of the ports pass through.
// O(classes).
absl::StatusOr<Trace> TraceJob(const workload::Job& job, OperatorCostPort& operator_cost,
                               NetworkTimePort& network_time);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_TRACE_H_
