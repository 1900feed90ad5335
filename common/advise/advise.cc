// SPDX-License-Identifier: Apache-2.0
#include "common/advise/advise.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/size_serving.h"
#include "common/sweep/run_sweep.h"

namespace sextant::advise {
namespace {

using workload::Job;

absl::Status Validate(const AdviceOptions& options) {
  base::Violations violations;
  if (options.max_gpu_count < 0 || options.max_gpu_count > kMostGpus) {
    violations.Add("max_gpu_count", absl::StrCat("is ", options.max_gpu_count, " but must be 1 to ",
                                                 kMostGpus, ", or 0 for the job's gpu_count"));
  }
  if (options.min_gpu_count < 0 ||
      (options.max_gpu_count > 0 && options.min_gpu_count > options.max_gpu_count)) {
    violations.Add("min_gpu_count", absl::StrCat("is ", options.min_gpu_count,
                                                 " but must be between 0 and max_gpu_count"));
  }
  if (options.step_count < 0) {
    violations.Add("step_count", absl::StrCat("is ", options.step_count,
                                              " but must be at least 1, or 0 where unknown"));
  }
  if (!(options.time_limit_margin >= 0 && options.time_limit_margin <= 10)) {
    violations.Add("time_limit_margin",
                   absl::StrCat("is ", options.time_limit_margin, " but must be in [0, 10]"));
  }
  violations.AddStatus("economics", energy::ValidateEconomics(options.economics));
  return violations.ToStatus();
}

struct Bounds {
  int64_t least = 1;
  int64_t most = 1;
};

// Powers of two inside a node, whole nodes doubling beyond, and where they are allowed the ends and
// the job's own count.
std::set<int64_t> GpuCounts(const Job& job, const Bounds& bounds) {
  const auto [least, most] = bounds;
  std::set<int64_t> counts = {most};
  const int64_t node = std::max<int64_t>(1, job.cluster.gpus_per_node);
  for (int64_t count = 1; count < node && count <= most; count *= 2) counts.insert(count);
  for (int64_t count = node; count <= most; count *= 2) counts.insert(count);
  if (job.gpu_count >= 1 && job.gpu_count <= most) counts.insert(job.gpu_count);
  counts.erase(counts.begin(), counts.lower_bound(least));
  return counts;
}

sweep::SweepSpec SpaceOf(const Job& job, const Bounds& bounds) {
  sweep::SweepSpec spec;
  for (const int64_t count : GpuCounts(job, bounds)) {
    sweep::Scenario scenario{.job = job, .settings = {{"gpu_count", absl::StrCat(count)}}};
    scenario.job.gpu_count = count;
    spec.scenarios.push_back(std::move(scenario));
  }
  sweep::PlanSpace& plan = spec.plan;
  plan.tensor_parallel_size.all = true;
  plan.pipeline_parallel_size.all = true;
  plan.data_parallel_size.all = true;
  if (job.model.IsMixture()) plan.expert_parallel_size.all = true;
  if (job.IsTraining()) {
    plan.micro_batch_size.all = true;
    plan.zero_stage.values = {0, 1, 3};
    plan.sequence_parallel.values = {1};
    plan.recompute.all = true;
  }
  spec.summary.top_count = 1;
  return spec;
}

energy::Estimate Times(energy::Estimate estimate, double factor) {
  return {estimate.value * factor, estimate.low * factor, estimate.high * factor};
}

// What follows from the prediction of the advised job.
void AddRun(const Job& job, const AdviceOptions& options, Advice& advice) {
  const orchestrator::MemoryPrediction& memory = advice.prediction.memory;
  advice.memory_headroom_bytes = memory.fits ? memory.capacity_bytes - memory.reserved_bytes : 0;
  if (advice.gpu_count == 0) return;
  const double steps = static_cast<double>(std::max<int64_t>(1, options.step_count));
  const Job advised = AdvisedJob(job, advice);
  if (options.economics.power.IsKnown()) {
    advice.energy_joules = Times(
        energy::EnergyJoules(advised, advice.prediction, options.economics.power), steps);
  }
  if (const auto cost = energy::CostDollars(advised, advice.prediction, options.economics)) {
    advice.cost_dollars = Times(*cost, steps);
  }
  if (options.step_count == 0) return;
  advice.run_seconds = steps * advice.prediction.total_seconds;
  advice.run_low_seconds = steps * advice.prediction.interval_low_seconds;
  advice.run_high_seconds = steps * advice.prediction.interval_high_seconds;
  constexpr double kMinute = 60;
  constexpr double kLongest = 9e15;  // exact in double, and beyond any run
  const double limit = advice.run_high_seconds * (1 + options.time_limit_margin);
  advice.suggested_time_limit_seconds =
      static_cast<int64_t>(std::min(kLongest, kMinute * std::ceil(limit / kMinute)));
}

absl::StatusOr<Advice> AdviseServing(const Job& job, int64_t most,
                                     const std::shared_ptr<const parameters::ParameterSet>& set) {
  orchestrator::LocalOperatorCost operator_cost(set);
  orchestrator::LocalNetworkTime network_time(set);
  absl::StatusOr<orchestrator::ServingSize> size =
      orchestrator::SizeServing(job, most, operator_cost, network_time);
  if (absl::IsFailedPrecondition(size.status())) {
    Advice advice{.reason = std::string(size.status().message())};
    advice.prediction.memory.fits = false;
    advice.prediction.parameter_set = set->version();
    return advice;
  }
  SEXTANT_RETURN_IF_ERROR(size.status());
  return Advice{.feasible = size->meets_limits,
                .reason = std::move(size->reason),
                .gpu_count = size->job.gpu_count,
                .plan = std::move(size->job.plan),
                .prediction = std::move(size->prediction)};
}

absl::StatusOr<Advice> AdviseLayouts(const Job& job, const Bounds& bounds,
                                     const std::shared_ptr<const parameters::ParameterSet>& set,
                                     const SearchOptions& search) {
  const sweep::SweepSpec spec = SpaceOf(job, bounds);
  sweep::RunOptions run{.thread_count = search.thread_count};
  if (search.keep_going) {
    run.on_progress = [&](const sweep::Progress&) { return search.keep_going(); };
  }
  SEXTANT_ASSIGN_OR_RETURN(const sweep::SweepResult result, sweep::RunSweep(spec, set, run));
  if (!result.complete) return absl::CancelledError("the search was stopped");
  Advice advice;
  std::vector<sweep::Point> points;
  for (const auto& [scenario, point] : result.summary.BestPerScenario()) points.push_back(point);
  advice.feasible = !points.empty();
  if (points.empty()) {
    const auto& misses = result.summary.NearMisses();
    if (misses.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("gpu_count: no layout of at most ", bounds.most,
                       " GPUs divides the model and the batch; allow more GPUs or another batch"));
    }
    points.push_back(misses.front().point);
  }
  SEXTANT_ASSIGN_OR_RETURN(std::vector<sweep::Row> rows,
                           sweep::PredictPoints(spec, {points.front()}, set));
  const Job nearest = sweep::JobOf(spec, points.front());
  advice.gpu_count = nearest.gpu_count;
  advice.plan = nearest.plan;
  advice.prediction = std::move(rows.front().prediction);
  if (!advice.feasible) {
    advice.reason = absl::StrCat("no layout of at most ", bounds.most, " GPUs fits: the nearest, on ",
                                 advice.gpu_count, ", lacks ",
                                 advice.prediction.memory.shortfall_bytes, " bytes on a GPU");
    return advice;
  }
  for (const sweep::Point& point : points) {
    const Job at = sweep::JobOf(spec, point);
    SpeedUp step{.gpu_count = at.gpu_count,
                 .plan = at.plan,
                 .total_seconds = point.metrics[sweep::Metric::kTotalSeconds],
                 .tokens_per_second = point.metrics[sweep::Metric::kTokensPerSecond]};
    if (!advice.curve.empty()) {
      const SpeedUp& first = advice.curve.front();
      step.speed_up = step.tokens_per_second / first.tokens_per_second;
      step.efficiency = step.speed_up * static_cast<double>(first.gpu_count) /
                        static_cast<double>(step.gpu_count);
    }
    advice.curve.push_back(step);
  }
  return advice;
}

}  // namespace

absl::StatusOr<Advice> Advise(const Job& job, const AdviceOptions& options,
                              std::shared_ptr<const parameters::ParameterSet> parameters,
                              const SearchOptions& search) {
  SEXTANT_RETURN_IF_ERROR(Validate(options));
  const int64_t most = std::max(options.max_gpu_count > 0 ? options.max_gpu_count : job.gpu_count,
                                options.min_gpu_count);
  const Bounds bounds{.least = std::max<int64_t>(1, options.min_gpu_count), .most = most};
  absl::StatusOr<Advice> advice = job.serving.has_value()
                                      ? AdviseServing(job, most, parameters)
                                      : AdviseLayouts(job, bounds, parameters, search);
  if (advice.ok()) AddRun(job, options, *advice);
  return advice;
}

Job AdvisedJob(Job job, const Advice& advice) {
  job.gpu_count = advice.gpu_count;
  job.plan = advice.plan;
  return job;
}

}  // namespace sextant::advise
