// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_PREDICT_H_
#define SEXTANT_COMMON_ORCHESTRATOR_PREDICT_H_

#include "absl/status/statusor.h"
#include "common/orchestrator/graph.h"
#include "common/orchestrator/inference_formula.h"
#include "common/orchestrator/ports.h"
#include "common/orchestrator/prediction.h"
#include "common/orchestrator/timeline_formula.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

struct PredictOptions {
  // A framework profile that the parameter set does not know is answered with the accelerator's
  // shared values and marked as extrapolated, instead of refused.
  bool unknown_profile_is_default = false;
  // Prediction::sensitivities are answered, for twelve more questions to the ports; of a serving
  // load, for twelve more runs of at most a thousand requests.
  bool sensitivities = false;
  // Told how far the run of a serving load is; a status that is not OK ends the prediction with it.
  serving::ProgressCheck serving_progress;
};

// What will `job` do? Validates the job, builds its operator graph, asks each port once, and lays
// the answers on a timeline.
// INVALID_ARGUMENT with every violation for a wrong job; NOT_FOUND for an unknown framework
// profile where the accelerator has any (they are listed), unless another accelerator has it: then
// the shared values answer, with a warning; errors of the ports pass through. A job
// that does not fit in memory is an answer (memory.fits is false).
// Deterministic: equal jobs and parameters give equal bytes. O(distinct operators); independent of
// GPU count and of the number of micro-batches. Thread-safe if the ports are.
absl::StatusOr<Prediction> Predict(const workload::Job& job, OperatorCostPort& operator_cost,
                                   NetworkTimePort& network_time,
                                   const PredictOptions& options = {});

// The answers of the ports for a graph.
struct PortAnswers {
  std::vector<operator_cost::OperatorEstimate> operators;
  std::vector<collectives::CollectiveEstimate> collectives;
};

// A job's graph with the ports' times in place: what the timeline formulas start from, and what a
// fit of framework parameters holds fixed. Times of faults are included.
PricedTraining PriceTraining(const TrainingGraph& graph, const PortAnswers& answers,
                             const workload::Job& job);
// `vector_attention_rate`: FLOP/s of VectorAttentionRate.
PricedInference PriceInference(const InferenceGraph& graph, const PortAnswers& answers,
                               double vector_attention_rate);
// FLOP/s at which an engine's decode attention multiplies on vector units; 0: on matrix units.
double VectorAttentionRate(const workload::Job& job, const InferenceParameters<double>& parameters);

// Asks both ports for everything in `graph`, with the job's faults applied to its cluster.
absl::StatusOr<PortAnswers> AskPorts(const Graph& graph, const workload::Job& job,
                                     OperatorCostPort& operator_cost,
                                     NetworkTimePort& network_time);

// All of that at once: the graph of a valid job, asked and priced.
absl::StatusOr<PricedTraining> AskTraining(const workload::Job& job,
                                           const FrameworkParameters<double>& parameters,
                                           OperatorCostPort& operator_cost,
                                           NetworkTimePort& network_time);
absl::StatusOr<PricedInference> AskInference(const workload::Job& job,
                                             const FrameworkParameters<double>& parameters,
                                             OperatorCostPort& operator_cost,
                                             NetworkTimePort& network_time);

// How the profile lowers a job: from its framework parameters.
GraphOptions OptionsFor(const workload::Job& job, const FrameworkParameters<double>& parameters);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_PREDICT_H_
