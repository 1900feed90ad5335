// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/orchestrator/memory.h"

namespace sextant::sweep {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr char kDoesNotFit[] = "does_not_fit";

std::string ReasonOf(const absl::Status& status) {
  const std::vector<base::Violation> violations = base::ViolationsOf(status);
  return violations.empty() ? "invalid" : absl::StrCat("invalid ", violations.front().field);
}

NearMiss MissOf(const Point& point, const orchestrator::MemoryPrediction& memory, double excess) {
  NearMiss miss{.point = point, .fits = memory.fits, .excess = excess};
  if (!memory.fits) {
    miss.excess =
        static_cast<double>(memory.shortfall_bytes) / static_cast<double>(memory.capacity_bytes);
  }
  return miss;
}

}  // namespace

Metrics MetricsOf(const workload::Job& job, const orchestrator::Prediction& prediction,
                  const energy::Economics& economics) {
  Metrics m;
  m[Metric::kTotalSeconds] = prediction.total_seconds;
  m[Metric::kTokensPerSecond] = prediction.tokens_per_second;
  m[Metric::kTokensPerSecondPerGpu] = prediction.tokens_per_second_per_gpu;
  m[Metric::kModelFlopsUtilization] = prediction.model_flops_utilization;
  m[Metric::kMemoryBytes] = static_cast<double>(prediction.memory.total_bytes);
  m[Metric::kGpuCount] = static_cast<double>(job.gpu_count);
  m[Metric::kTimeToFirstTokenSeconds] = prediction.time_to_first_token_seconds.value_or(kAbsent);
  m[Metric::kInterTokenLatencySeconds] = prediction.inter_token_latency_seconds.value_or(kAbsent);
  const double tokens = energy::TokenCount(prediction);
  if (economics.power.IsKnown()) {
    m[Metric::kEnergyJoulesPerToken] =
        energy::EnergyJoules(job, prediction, economics.power).value / tokens;
  }
  const auto cost = energy::CostDollars(job, prediction, economics);
  m[Metric::kCostDollarsPerMillionTokens] = cost.has_value() ? cost->value / tokens * 1e6 : kAbsent;
  return m;
}

ScenarioContext ContextOf(const Scenario& scenario, const parameters::ParameterSet& set) {
  ScenarioContext context;
  context.parameters = orchestrator::ParametersOf(set, scenario.job);
  context.graph_options = orchestrator::OptionsFor(scenario.job, context.parameters);
  return context;
}

Evaluator::Evaluator(const SweepSpec& spec, const std::vector<ScenarioContext>& contexts,
                     std::shared_ptr<const parameters::ParameterSet> set)
    : spec_(spec), contexts_(contexts), operator_cost_(set), network_time_(set) {}

absl::Status Evaluator::Evaluate(uint32_t scenario, absl::Span<const Layout> layouts,
                                 uint64_t first_id, Summary& summary) {
  job_ = spec_.scenarios[scenario].job;
  for (size_t i = 0; i < layouts.size(); ++i) {
    ++summary.counts().candidate_count;
    SEXTANT_RETURN_IF_ERROR(EvaluatePoint(
        contexts_[scenario],
        {.id = first_id + i, .scenario = scenario, .layout = layouts[i], .metrics = {}}, summary));
  }
  return absl::OkStatus();
}

absl::Status Evaluator::EvaluatePoint(const ScenarioContext& context, Point point,
                                      Summary& summary) {
  point.layout.ApplyTo(job_.plan);
  if (const absl::Status valid = workload::ValidateJob(job_); !valid.ok()) {
    summary.Reject(ReasonOf(valid));
    return absl::OkStatus();
  }
  // Memory first: it costs a fraction of a prediction, and most of a space does not fit.
  if (spec_.require_fit) {
    const orchestrator::MemoryPrediction memory = orchestrator::PredictMemory(
        job_, context.parameters.memory, context.graph_options.fused_attention);
    if (!memory.fits) {
      point.metrics[Metric::kMemoryBytes] = static_cast<double>(memory.total_bytes);
      summary.Reject(kDoesNotFit);
      summary.Miss(MissOf(point, memory, 0));
      return absl::OkStatus();
    }
  }
  const absl::StatusOr<orchestrator::Prediction> prediction =
      orchestrator::Predict(job_, operator_cost_, network_time_);
  if (absl::IsInvalidArgument(prediction.status())) {
    summary.Reject(ReasonOf(prediction.status()));
    return absl::OkStatus();
  }
  SEXTANT_RETURN_IF_ERROR(prediction.status());
  ++summary.counts().predicted_count;
  point.metrics = MetricsOf(job_, *prediction, spec_.economics);
  double excess = 0;
  const Limit* broken = nullptr;
  for (const Limit& limit : spec_.limits) {
    const double miss = Excess(point.metrics, limit);
    if (miss > 0 && broken == nullptr) broken = &limit;
    excess = std::max(excess, miss);
  }
  if (broken != nullptr) {
    summary.Reject(std::string(MetricName(broken->metric)));
    summary.Miss(MissOf(point, prediction->memory, excess));
    return absl::OkStatus();
  }
  ++summary.counts().accepted_count;
  summary.Add(point);
  return absl::OkStatus();
}

}  // namespace sextant::sweep
