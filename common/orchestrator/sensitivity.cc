// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/predict_serving.h"
#include "common/orchestrator/step_graph.h"

namespace sextant::orchestrator {
namespace {

using workload::Job;

constexpr double kStep = 0.01;
// Of a run of requests: batches fall otherwise after a small change, and their noise is a few
// tenths of a percent.
constexpr double kServingStep = 0.1;
constexpr int64_t kServingRequests = 1000;

// Mean of whole requests over the first of them.
absl::StatusOr<double> RequestSeconds(const Job& job, const FrameworkParameters<double>& parameters,
                                      OperatorCostPort& operator_cost,
                                      NetworkTimePort& network_time) {
  const StepGraph graph = BuildStepGraph(job, OptionsFor(job, parameters));
  SEXTANT_ASSIGN_OR_RETURN(const PortAnswers answers,
                           AskPorts(graph, job, operator_cost, network_time));
  Prediction prediction;
  SEXTANT_RETURN_IF_ERROR(PredictServing(job, graph, answers, parameters, {}, prediction));
  return prediction.serving->end_to_end_seconds.mean;
}

Job WithFewRequests(const Job& job) {
  Job few = job;
  if (!few.serving.has_value()) return few;
  serving::ServingLoad& load = *few.serving;
  if (load.arrival != serving::Arrival::kTrace) {
    load.request_count = std::min(kServingRequests, serving::RequestCount(load));
  } else if (static_cast<int64_t>(load.trace.size()) > kServingRequests) {
    load.trace.resize(static_cast<size_t>(kServingRequests));
  }
  return few;
}

absl::StatusOr<double> TotalSeconds(const Job& job, const FrameworkParameters<double>& parameters,
                                    OperatorCostPort& operator_cost,
                                    NetworkTimePort& network_time) {
  if (job.IsTraining()) {
    SEXTANT_ASSIGN_OR_RETURN(const PricedTraining priced,
                             AskTraining(job, parameters, operator_cost, network_time));
    return TrainingStep(priced, parameters.training).Total();
  }
  if (job.serving.has_value()) {
    return RequestSeconds(job, parameters, operator_cost, network_time);
  }
  SEXTANT_ASSIGN_OR_RETURN(const PricedInference priced,
                           AskInference(job, parameters, operator_cost, network_time));
  return PrefillTimes(priced, parameters.inference).Total() +
         DecodeTimes(priced, parameters.inference).Total();
}

struct Resource {
  const char* name;
  void (*scale)(double factor, Job& job, FrameworkParameters<double>& parameters);
};
constexpr Resource kResources[] = {
    {"matrix_rate",
     [](double factor, Job& job, FrameworkParameters<double>&) {
       for (double& rate : job.cluster.accelerator.matrix_flop_per_second) rate *= factor;
     }},
    {"l2_bandwidth",
     [](double factor, Job& job, FrameworkParameters<double>&) {
       job.cluster.accelerator.l2_bandwidth_bytes_per_second *= factor;
     }},
    {"hbm_bandwidth",
     [](double factor, Job& job, FrameworkParameters<double>&) {
       job.cluster.accelerator.hbm_bandwidth_bytes_per_second *= factor;
     }},
    {"node_bandwidth",
     [](double factor, Job& job, FrameworkParameters<double>&) {
       job.cluster.node_bandwidth_bytes_per_second *= factor;
       job.cluster.accelerator.nvlink_bandwidth_bytes_per_second *= factor;
       job.cluster.accelerator.pcie_bandwidth_bytes_per_second *= factor;
     }},
    {"network_bandwidth",
     [](double factor, Job& job, FrameworkParameters<double>&) {
       job.cluster.network_bandwidth_bytes_per_second *= factor;
     }},
    {"launch_overhead",
     [](double factor, Job&, FrameworkParameters<double>& parameters) {
       parameters.training.dispatch_seconds *= factor;
       parameters.inference.dispatch_seconds *= factor;
     }},
};

}  // namespace

absl::StatusOr<std::vector<Sensitivity>> Sensitivities(
    const Job& job, const FrameworkParameters<double>& parameters, OperatorCostPort& operator_cost,
    NetworkTimePort& network_time) {
  std::vector<Sensitivity> sensitivities;
  const Job base = WithFewRequests(job);
  const double step = job.serving.has_value() ? kServingStep : kStep;
  for (const Resource& resource : kResources) {
    const auto seconds = [&](double factor) {
      Job scaled_job = base;
      FrameworkParameters<double> scaled = parameters;
      resource.scale(factor, scaled_job, scaled);
      return TotalSeconds(scaled_job, scaled, operator_cost, network_time);
    };
    SEXTANT_ASSIGN_OR_RETURN(const double more, seconds(1 + step));
    SEXTANT_ASSIGN_OR_RETURN(const double less, seconds(1 - step));
    sensitivities.push_back(
        {resource.name,
         more > 0 && less > 0 ? std::log(more / less) / std::log((1 + step) / (1 - step)) : 0.0});
  }
  return sensitivities;
}

}  // namespace sextant::orchestrator
