// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_EVALUATE_ASSUMED_PLAN_H_
#define SEXTANT_CALIBRATION_EVALUATE_ASSUMED_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibration/measurements/rows.h"
#include "common/orchestrator/ports.h"
#include "common/orchestrator/prediction.h"

namespace sextant::calibration {

// The prediction of a measured run whose plan its source states only in part. What is open is
// chosen as whoever ran it would have: sizes (tensor, pipeline and context parallel, micro-batch)
// so that the step is fastest among the plans that fit; then, where the run does not fit, ZeRO
// stage 1 and the least recomputation that make it fit. `job` receives the plan that was predicted;
// `warnings` what was chosen. A run that fits with no choice keeps the stated plan and the lightest
// settings. Errors of Predict for a plan that is stated; INVALID_ARGUMENT where no plan is valid.
// O(1) predictions, at most a few hundred with open sizes.
absl::StatusOr<orchestrator::Prediction> PredictAssumedPlan(
    const UnstatedPlan& unstated, orchestrator::OperatorCostPort& operator_cost,
    orchestrator::NetworkTimePort& network_time, workload::Job* job,
    std::vector<std::string>* warnings);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_EVALUATE_ASSUMED_PLAN_H_
