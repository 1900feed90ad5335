// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/sensitivity.h"

#include <cmath>

#include "common/base/status_macros.h"
#include "common/orchestrator/predict.h"

namespace sextant::orchestrator {
namespace {

using workload::Job;

constexpr double kStep = 0.01;

absl::StatusOr<double> TotalSeconds(const Job& job, const FrameworkParameters<double>& parameters,
                                    OperatorCostPort& operator_cost,
                                    NetworkTimePort& network_time) {
  if (job.IsTraining()) {
    SEXTANT_ASSIGN_OR_RETURN(const PricedTraining priced,
                             AskTraining(job, parameters, operator_cost, network_time));
    return TrainingStep(priced, parameters.training).Total();
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
  for (const Resource& resource : kResources) {
    const auto seconds = [&](double factor) {
      Job scaled_job = job;
      FrameworkParameters<double> scaled = parameters;
      resource.scale(factor, scaled_job, scaled);
      return TotalSeconds(scaled_job, scaled, operator_cost, network_time);
    };
    SEXTANT_ASSIGN_OR_RETURN(const double more, seconds(1 + kStep));
    SEXTANT_ASSIGN_OR_RETURN(const double less, seconds(1 - kStep));
    sensitivities.push_back(
        {resource.name, std::log(more / less) / std::log((1 + kStep) / (1 - kStep))});
  }
  return sensitivities;
}

}  // namespace sextant::orchestrator
