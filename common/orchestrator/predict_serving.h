// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_PREDICT_SERVING_H_
#define SEXTANT_COMMON_ORCHESTRATOR_PREDICT_SERVING_H_

#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/prediction.h"
#include "common/orchestrator/step_graph.h"
#include "common/serving/step_cost.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// What the load, else the engine's profile, lets one step do.
serving::EngineSchedule ScheduleFor(const serving::ServingLoad& load,
                                    const FrameworkParameters<double>& parameters);

// Seconds of engine steps from a priced step graph.
serving::StepTables PriceSteps(const workload::Job& job, const StepGraph& graph,
                               const PortAnswers& answers,
                               const InferenceParameters<double>& parameters);

// Runs the serving load of a valid job on the priced engine and fills what a prediction says of it
// but interval, memory and utilisation. Deterministic.
// Errors are those of `check`.
absl::Status PredictServing(const workload::Job& job, const StepGraph& graph,
                            const PortAnswers& answers,
                            const FrameworkParameters<double>& parameters,
                            const serving::ProgressCheck& check, Prediction& prediction);

// The job as one batch of all completed requests, whose arithmetic is that of the run.
workload::Job AsBatch(const workload::Job& job, const Prediction& prediction);
// The job as the largest batch that an engine may hold at one time, for its memory.
workload::Job LargestBatch(const workload::Job& job, const Prediction& prediction,
                           const serving::EngineSchedule& schedule);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_PREDICT_SERVING_H_
