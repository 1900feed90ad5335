// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_EVALUATE_H_
#define SEXTANT_COMMON_SWEEP_EVALUATE_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/graph.h"
#include "common/orchestrator/predict.h"
#include "common/sweep/caching_ports.h"
#include "common/sweep/run_sweep.h"

namespace sextant::sweep {

// What all points of one scenario share. Immutable.
struct ScenarioContext {
  orchestrator::FrameworkParameters<double> parameters;
  orchestrator::GraphOptions graph_options;
};
ScenarioContext ContextOf(const Scenario& scenario, const parameters::ParameterSet& set);

// Evaluates points one after another; answers of the ports are shared between them. Of one thread.
class Evaluator {
 public:
  Evaluator(const SweepSpec& spec, const std::vector<ScenarioContext>& contexts,
            std::shared_ptr<const parameters::ParameterSet> set);

  // Adds the points `layouts` of one scenario, whose ids start at `first_id`. An error that is not
  // about single points (an unknown profile) ends the sweep.
  absl::Status Evaluate(uint32_t scenario, absl::Span<const Layout> layouts, uint64_t first_id,
                        Summary& summary);

 private:
  absl::Status EvaluatePoint(const ScenarioContext& context, Point point, Summary& summary);

  const SweepSpec& spec_;
  const std::vector<ScenarioContext>& contexts_;
  CachingOperatorCost operator_cost_;
  CachingNetworkTime network_time_;
  workload::Job job_;
};

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_EVALUATE_H_
