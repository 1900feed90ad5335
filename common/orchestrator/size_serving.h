// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_SIZE_SERVING_H_
#define SEXTANT_COMMON_ORCHESTRATOR_SIZE_SERVING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/orchestrator/ports.h"
#include "common/orchestrator/prediction.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// How many GPUs does a load need, in which layout?
struct ServingSize {
  // Whether the layout serves the rate below saturation with nine of ten requests within each
  // limit. Otherwise it is the nearest to that of all layouts of at most the allowed GPUs.
  bool meets_limits = false;
  workload::Job job;  // with gpu_count and plan of the answer
  Prediction prediction;
  std::string reason;  // what the nearest layout misses and by how much; empty where it meets all
  int64_t evaluated_count = 0;  // layouts that were simulated
};

// The fewest GPUs, of at most `max_gpu_count`, that serve the job's Poisson rate within the limits
// of its serving load; among layouts of equally many, the one whose worst ratio of latency to limit
// is lowest. Replicas are tensor and pipeline parallel; as many as the rate needs stand behind a
// router. The job's own plan and GPU count say nothing here, but whether it asks for expert
// parallelism (then experts are split over each replica's tensor parallel ranks).
//
// INVALID_ARGUMENT for a job that is not served at a Poisson rate or is wrong in itself,
// FAILED_PRECONDITION ("no replica ... holds") where none of at most max_gpu_count GPUs has room
// for the weights and the longest request. O(layouts x log replicas) simulations. Deterministic.
absl::StatusOr<ServingSize> SizeServing(const workload::Job& job, int64_t max_gpu_count,
                                        OperatorCostPort& operator_cost,
                                        NetworkTimePort& network_time);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_SIZE_SERVING_H_
