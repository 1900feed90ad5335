// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_PREDICT_H_
#define SEXTANT_COMMON_ORCHESTRATOR_PREDICT_H_

#include "absl/status/statusor.h"
#include "common/orchestrator/ports.h"
#include "common/orchestrator/prediction.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// What will `job` do? Validates the job, builds its operator graph, asks each port once, and lays
// the answers on a timeline.
// INVALID_ARGUMENT with every violation for a wrong job; NOT_FOUND for an unknown framework
// profile (the known ones are listed); errors of the ports pass through. A job that does not fit in
// memory is an answer (memory.fits is false).
// Deterministic: equal jobs and parameters give equal bytes. O(distinct operators); independent of
// GPU count and of the number of micro-batches. Thread-safe if the ports are.
absl::StatusOr<Prediction> Predict(const workload::Job& job, OperatorCostPort& operator_cost,
                                   NetworkTimePort& network_time);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_PREDICT_H_
