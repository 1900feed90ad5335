// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/orchestrator/predict.h"

namespace sextant::orchestrator {
namespace {

using workload::Job;

constexpr int64_t kMicroBatchesShown = 16;

using Part = std::pair<const char*, double>;

std::vector<Part> PartsOf(const TrainingTimes<double>& t) {
  return {{"matrix_multiply", t.matrix_multiply},
          {"attention", t.attention},
          {"memory_bound", t.memory_bound},
          {"recompute", t.recompute},
          {"tensor_parallel_exposed", t.tensor_parallel_exposed},
          {"context_parallel_exposed", t.context_parallel_exposed},
          {"expert_parallel_exposed", t.expert_parallel_exposed},
          {"data_parallel_exposed", t.data_parallel_exposed},
          {"pipeline_send", t.pipeline_send},
          {"framework", t.framework}};
}
std::vector<Part> PartsOf(const InferenceTimes<double>& t) {
  return {{"matrix_multiply", t.matrix_multiply},
          {"attention", t.attention},
          {"memory_bound", t.memory_bound},
          {"tensor_parallel_exposed", t.tensor_parallel_exposed},
          {"expert_parallel_exposed", t.expert_parallel_exposed},
          {"pipeline_send", t.pipeline_send},
          {"framework", t.framework}};
}

// Appends events of one track, back to back.
class Track {
 public:
  Track(int index, Trace* trace) : index_(index), trace_(trace) {}

  void Add(std::string name, double seconds) {
    if (!(seconds > 0)) return;
    trace_->events.push_back({index_, std::move(name), now_, seconds});
    now_ += seconds;
  }
  void Add(absl::string_view of, const std::vector<Part>& parts) {
    for (const auto& [name, seconds] : parts) Add(absl::StrCat(of, ": ", name), seconds);
  }
  void WaitUntil(double seconds, std::string name) { Add(std::move(name), seconds - now_); }

 private:
  const int index_;
  Trace* const trace_;
  double now_ = 0;
};

Trace TraceTraining(const PricedTraining& priced, const TrainingParameters<double>& p) {
  const TrainingTimes<double> step = TrainingStep(priced, p);
  std::vector<TrainingTimes<double>> stages;
  double pace = 0;  // seconds of a micro-batch on the slowest stage
  const TrainingTimes<double>* slowest = nullptr;
  stages.reserve(priced.stages.size());
  for (const PricedStage& stage : priced.stages) {
    stages.push_back(StageMicroBatch(priced, stage, p));
    stages.back().pipeline_send = ExposedSend(priced, p);
    if (stages.back().Total() > pace) {
      pace = stages.back().Total();
      slowest = &stages.back();
    }
  }
  const double m = static_cast<double>(priced.micro_batch_count);
  // What ends the step: everything after the pipeline has drained.
  const double reduce =
      step.data_parallel_exposed - (slowest == nullptr ? 0 : slowest->data_parallel_exposed * m);
  const double drained = step.Total() - reduce - step.optimizer - p.step_seconds;
  Trace trace;
  double ranks = 0;
  for (const PricedStage& stage : priced.stages) ranks += static_cast<double>(stage.rank_count);
  double filled = 0;  // before this class has its first micro-batch
  for (size_t s = 0; s < stages.size(); ++s) {
    const PricedStage& stage = priced.stages[s];
    trace.tracks.push_back(
        absl::StrCat("stage class ", s + 1, " (", stage.rank_count,
                     stage.rank_count == 1 ? " pipeline rank)" : " pipeline ranks)"));
    Track track(static_cast<int>(s), &trace);
    // No later than what leaves room for all micro-batches at the slowest stage's pace.
    const double start = std::min(filled, drained - m * pace);
    track.WaitUntil(start, "pipeline_bubble");
    for (int64_t i = 0; i < std::min(priced.micro_batch_count, kMicroBatchesShown); ++i) {
      track.Add(absl::StrCat("micro-batch ", i + 1), PartsOf(stages[s]));
      track.WaitUntil(start + static_cast<double>(i + 1) * pace, "wait for the slowest stage");
    }
    if (priced.micro_batch_count > kMicroBatchesShown) {
      track.WaitUntil(start + m * pace, absl::StrCat("micro-batches ", kMicroBatchesShown + 1,
                                                     " to ", priced.micro_batch_count));
    }
    track.WaitUntil(drained, "pipeline_bubble");
    track.Add("data_parallel_exposed", reduce);
    track.Add("optimizer", step.optimizer);
    track.Add("framework", p.step_seconds);
    // Half of the bubble fills the pipeline, an even share of it before each rank; half drains it.
    filled += step.pipeline_bubble / 2 * static_cast<double>(stage.rank_count) / ranks;
  }
  return trace;
}

Trace TraceInference(const PricedInference& priced, const InferenceParameters<double>& p,
                     double background_share) {
  Trace trace;
  trace.tracks = {"batch of requests"};
  Track track(0, &trace);
  const InferenceTimes<double> prefill = PrefillTimes(priced, p);
  const InferenceTimes<double> decode = DecodeTimes(priced, p);
  track.Add("prefill", PartsOf(prefill));
  track.Add(absl::StrCat("decode of ", priced.decode_step_count, " tokens"), PartsOf(decode));
  if (background_share > 0) {
    track.Add("background",
              (prefill.Total() + decode.Total()) * background_share / (1 - background_share));
  }
  return trace;
}

}  // namespace

absl::StatusOr<Trace> TraceJob(const Job& job, OperatorCostPort& operator_cost,
                               NetworkTimePort& network_time) {
  SEXTANT_RETURN_IF_ERROR(workload::ValidateJob(job));
  if (job.serving.has_value()) {
    return absl::InvalidArgumentError(
        "a serving load has no trace; leave out serving to trace one batch of requests");
  }
  SEXTANT_ASSIGN_OR_RETURN(const auto set, operator_cost.CurrentParameters());
  const FrameworkParameters<double> parameters = ParametersOf(*set, job);
  if (job.IsTraining()) {
    SEXTANT_ASSIGN_OR_RETURN(const PricedTraining priced,
                             AskTraining(job, parameters, operator_cost, network_time));
    return TraceTraining(priced, parameters.training);
  }
  SEXTANT_ASSIGN_OR_RETURN(const PricedInference priced,
                           AskInference(job, parameters, operator_cost, network_time));
  return TraceInference(priced, parameters.inference,
                        std::get<workload::InferenceWorkload>(job.workload).background_share);
}

}  // namespace sextant::orchestrator
