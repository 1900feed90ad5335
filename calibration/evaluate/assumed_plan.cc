// SPDX-License-Identifier: Apache-2.0
#include "calibration/evaluate/assumed_plan.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/orchestrator/predict.h"

namespace sextant::calibration {
namespace {

using orchestrator::Prediction;
using workload::Job;
using workload::Recompute;

class Chooser {
 public:
  Chooser(const UnstatedPlan& unstated, orchestrator::OperatorCostPort& operator_cost,
          orchestrator::NetworkTimePort& network_time)
      : unstated_(unstated), operator_cost_(operator_cost), network_time_(network_time) {}

  // The lightest settings with which `job` fits, else the heaviest; `job` is changed to them.
  absl::StatusOr<Prediction> Lightest(Job* job) {
    absl::StatusOr<Prediction> best = orchestrator::Predict(*job, operator_cost_, network_time_);
    if (!best.ok() || best->memory.fits) return best;
    for (const Setting& setting : Settings(*job)) {
      Job heavier = *job;
      heavier.plan.zero_stage = setting.zero_stage;
      heavier.plan.sequence_parallel = setting.sequence_parallel;
      heavier.plan.recompute = setting.recompute;
      absl::StatusOr<Prediction> next =
          orchestrator::Predict(heavier, operator_cost_, network_time_);
      if (!next.ok() || !next->memory.fits) continue;
      *job = std::move(heavier);
      return next;
    }
    return best;
  }

  // The fastest plan that fits over all open sizes.
  absl::StatusOr<Prediction> Fastest(Job* job) {
    std::optional<Prediction> best;
    Job best_job = *job;
    absl::Status last = absl::OkStatus();
    ForEachPlan(*job, [&](Job candidate) {
      absl::StatusOr<Prediction> next = Lightest(&candidate);
      if (!next.ok()) {
        last = next.status();
        return;
      }
      const bool better =
          !best.has_value() || (next->memory.fits && !best->memory.fits) ||
          (next->memory.fits == best->memory.fits && next->total_seconds < best->total_seconds);
      if (!better) return;
      best = *std::move(next);
      best_job = std::move(candidate);
    });
    if (!best.has_value()) {
      return last.ok() ? absl::InvalidArgumentError("no parallel plan divides gpus and gbs") : last;
    }
    *job = std::move(best_job);
    return *std::move(best);
  }

 private:
  struct Setting {
    int zero_stage;
    bool sequence_parallel;
    Recompute recompute;
  };
  // What costs no time comes before what is computed again.
  std::vector<Setting> Settings(const Job& job) const {
    std::vector<Setting> settings;
    const auto& plan = job.plan;
    const int stage = unstated_.zero_stage ? 1 : plan.zero_stage;
    if (unstated_.zero_stage) settings.push_back({stage, plan.sequence_parallel, plan.recompute});
    const bool split =
        plan.sequence_parallel || (unstated_.sequence_parallel && plan.tensor_parallel_size > 1);
    if (split != plan.sequence_parallel) settings.push_back({stage, split, plan.recompute});
    if (unstated_.recompute) {
      settings.push_back({stage, split, Recompute::kSelective});
      settings.push_back({stage, split, Recompute::kFull});
    }
    return settings;
  }

  // Sizes to try: the stated one, or powers of two up to `most`.
  static std::vector<int64_t> Sizes(bool open, int64_t stated, int64_t most) {
    if (!open) return {stated};
    std::vector<int64_t> sizes;
    for (int64_t size = 1; size <= most; size *= 2) sizes.push_back(size);
    return sizes;
  }

  template <typename Visit>
  void ForEachPlan(const Job& job, const Visit& visit) const {
    const auto& plan = job.plan;
    const int64_t batch = std::get<workload::TrainingWorkload>(job.workload).global_batch_size;
    const int64_t node = job.cluster.gpus_per_node;
    for (const int64_t tp :
         Sizes(unstated_.tensor_parallel_size, plan.tensor_parallel_size, node)) {
      for (const int64_t pp :
           Sizes(unstated_.pipeline_parallel_size, plan.pipeline_parallel_size, 16)) {
        for (const int64_t cp :
             Sizes(unstated_.context_parallel_size, plan.context_parallel_size, 8)) {
          for (const int64_t mbs : Sizes(unstated_.micro_batch_size, plan.micro_batch_size, 8)) {
            const int64_t ranks = tp * pp * cp;
            if (job.gpu_count % ranks != 0) continue;
            const int64_t dp = job.gpu_count / ranks;
            if (batch % (dp * mbs) != 0) continue;
            Job candidate = job;
            candidate.plan.tensor_parallel_size = tp;
            candidate.plan.sequence_parallel = plan.sequence_parallel || tp > 1;
            candidate.plan.pipeline_parallel_size = pp;
            candidate.plan.context_parallel_size = cp;
            candidate.plan.data_parallel_size = dp;
            candidate.plan.micro_batch_size = mbs;
            visit(std::move(candidate));
          }
        }
      }
    }
  }

  const UnstatedPlan& unstated_;
  orchestrator::OperatorCostPort& operator_cost_;
  orchestrator::NetworkTimePort& network_time_;
};

}  // namespace

absl::StatusOr<Prediction> PredictAssumedPlan(const UnstatedPlan& unstated,
                                              orchestrator::OperatorCostPort& operator_cost,
                                              orchestrator::NetworkTimePort& network_time, Job* job,
                                              std::vector<std::string>* warnings) {
  const workload::ParallelPlan before = job->plan;
  Chooser chooser(unstated, operator_cost, network_time);
  absl::StatusOr<Prediction> prediction =
      unstated.AnySize() ? chooser.Fastest(job) : chooser.Lightest(job);
  if (!prediction.ok()) return prediction;
  const workload::ParallelPlan& plan = job->plan;
  if (unstated.AnySize()) {
    warnings->push_back(
        absl::StrCat("tp, pp or mbs not stated: the fastest plan that fits was assumed, tp ",
                     plan.tensor_parallel_size, " pp ", plan.pipeline_parallel_size, " cp ",
                     plan.context_parallel_size, " mbs ", plan.micro_batch_size));
  }
  if (plan.zero_stage != before.zero_stage || plan.recompute != before.recompute ||
      plan.sequence_parallel != before.sequence_parallel) {
    warnings->push_back(absl::StrCat("assumed so that it fits: zero ", plan.zero_stage,
                                     plan.sequence_parallel ? ", sequence parallel" : "",
                                     ", recompute ",
                                     std::string(workload::RecomputeName(plan.recompute))));
  }
  return prediction;
}

}  // namespace sextant::calibration
