// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/predict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/collectives/faults.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict_serving.h"
#include "common/orchestrator/pricing.h"
#include "common/orchestrator/sensitivity.h"

namespace sextant::orchestrator {
namespace {

using workload::Job;

struct PricedBlocks {
  PricedBlock forward;
  PricedBlock backward;
  PricedBlock recompute;
};
PricedBlocks PriceBlocks(const TrainingBlocks& blocks, const PortAnswers& answers) {
  return {PriceBlock(blocks.forward, answers), PriceBlock(blocks.backward, answers),
          PriceBlock(blocks.recompute, answers)};
}

// Intervals of the total and, where a request has them, of its two latencies. Spreads come from
// whole answers: kernels outside their domain are in them, an accelerator without runs is not.
void SetIntervals(const FrameworkParameters<double>& parameters, Answer total,
                  Prediction& prediction) {
  const auto around = [&](double seconds, Answer answer) {
    return parameters::IntervalAround(seconds, parameters.SpreadOf(answer), parameters.transferred);
  };
  const parameters::Interval interval = around(prediction.total_seconds, total);
  prediction.interval_low_seconds = interval.low;
  prediction.interval_high_seconds = interval.high;
  const bool serving = total == Answer::kServingRun;
  if (prediction.time_to_first_token_seconds.has_value()) {
    prediction.time_to_first_token_interval =
        around(*prediction.time_to_first_token_seconds,
               serving ? Answer::kServingFirstToken : Answer::kBatchFirstToken);
  }
  if (prediction.inter_token_latency_seconds.has_value()) {
    prediction.inter_token_latency_interval =
        around(*prediction.inter_token_latency_seconds,
               serving ? Answer::kServingNextToken : Answer::kBatchNextToken);
  }
}

double Sum(const std::vector<TimePart>& parts) {
  double sum = 0;
  for (const TimePart& part : parts) sum += part.seconds;
  return sum;
}

void NoteExtrapolation(const PortAnswers& answers, const FrameworkParameters<double>& parameters,
                       const Job& job, Prediction& prediction) {
  const auto far = [](const auto& estimate) { return estimate.extrapolated; };
  const auto operators = std::count_if(answers.operators.begin(), answers.operators.end(), far);
  const auto collectives =
      std::count_if(answers.collectives.begin(), answers.collectives.end(), far);
  if (operators > 0) {
    prediction.warnings.push_back(
        absl::StrCat(operators, " of ", answers.operators.size(),
                     " operators lie outside what the parameters were fitted on"));
  }
  if (collectives > 0) {
    prediction.warnings.push_back(
        absl::StrCat(collectives, " of ", answers.collectives.size(),
                     " collectives lie outside what the parameters were fitted on"));
  }
  if (parameters.transferred) {
    prediction.warnings.push_back(absl::StrCat(
        "no framework parameters were fitted for accelerator ", job.cluster.accelerator.name));
  }
  if (operators > 0 || collectives > 0 || parameters.transferred) prediction.extrapolated = true;
}

void PredictTraining(const Job& job, const TrainingGraph& graph, const PortAnswers& answers,
                     const FrameworkParameters<double>& parameters, Prediction& prediction) {
  const auto& work = std::get<workload::TrainingWorkload>(job.workload);
  const TrainingTimes<double> times =
      TrainingStep(PriceTraining(graph, answers, job), parameters.training);
  prediction.breakdown = {{"matrix_multiply", times.matrix_multiply},
                          {"attention", times.attention},
                          {"memory_bound", times.memory_bound},
                          {"recompute", times.recompute},
                          {"tensor_parallel_exposed", times.tensor_parallel_exposed},
                          {"context_parallel_exposed", times.context_parallel_exposed},
                          {"expert_parallel_exposed", times.expert_parallel_exposed},
                          {"pipeline_send", times.pipeline_send},
                          {"pipeline_bubble", times.pipeline_bubble},
                          {"data_parallel_exposed", times.data_parallel_exposed},
                          {"optimizer", times.optimizer},
                          {"framework", times.framework}};
  prediction.total_seconds = Sum(prediction.breakdown);
  prediction.tokens_per_second = static_cast<double>(work.global_batch_size) *
                                 static_cast<double>(work.sequence_length) /
                                 prediction.total_seconds;
  SetIntervals(parameters, TotalAnswer(job), prediction);

  BindingShares shares;
  const double m = static_cast<double>(graph.micro_batch_count);
  const StageClass* busiest = &graph.stages.front().stage;
  for (const StageStep& step : graph.stages) {
    if (step.stage.LayerCount() > busiest->LayerCount()) busiest = &step.stage;
  }
  const auto add = [&](const TrainingBlocks& blocks, int64_t count) {
    for (const Block* block : {&blocks.forward, &blocks.backward, &blocks.recompute}) {
      shares.AddBlock(*block, answers, m * static_cast<double>(count));
    }
  };
  add(graph.dense, busiest->dense_layer_count);
  add(graph.mixture, busiest->mixture_layer_count);
  add(graph.embedding, busiest->has_embedding ? 1 : 0);
  add(graph.head, busiest->has_head ? 1 : 0);
  shares.AddCollectives(graph.send, answers, m);
  shares.AddCollectives(graph.stages.front().reduce, answers, 1);
  shares.Add("hbm_bandwidth", times.optimizer);
  shares.Add("pipeline_bubble", times.pipeline_bubble);
  shares.Add("framework", times.framework);
  prediction.binding = shares.Largest();
}

void PredictInference(const Job& job, const InferenceGraph& graph, const PortAnswers& answers,
                      const FrameworkParameters<double>& parameters, Prediction& prediction) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  const PricedInference priced =
      PriceInference(graph, answers, VectorAttentionRate(job, parameters.inference));
  InferenceTimes<double> prefill = PrefillTimes(priced, parameters.inference);
  InferenceTimes<double> decode = DecodeTimes(priced, parameters.inference);
  InferenceTimes<double> times = prefill;
  times.Add(decode);
  const double stretch = 1 / (1 - work.background_share);
  prediction.breakdown = {{"matrix_multiply", times.matrix_multiply},
                          {"attention", times.attention},
                          {"memory_bound", times.memory_bound},
                          {"tensor_parallel_exposed", times.tensor_parallel_exposed},
                          {"expert_parallel_exposed", times.expert_parallel_exposed},
                          {"pipeline_send", times.pipeline_send},
                          {"framework", times.framework}};
  if (work.background_share > 0) {
    prediction.breakdown.push_back({"background", (stretch - 1) * times.Total()});
  }
  prediction.total_seconds = Sum(prediction.breakdown);
  prediction.time_to_first_token_seconds = stretch * prefill.Total();
  if (graph.decode_step_count > 0) {
    prediction.inter_token_latency_seconds =
        stretch * decode.Total() / static_cast<double>(graph.decode_step_count);
  }
  const int64_t tokens = work.output_tokens > 0 ? work.output_tokens : work.prompt_tokens;
  prediction.tokens_per_second =
      static_cast<double>(work.batch_size) * static_cast<double>(tokens) / prediction.total_seconds;
  prediction.kv_cache_capacity_tokens = KvCacheCapacityTokens(job, parameters.memory);
  SetIntervals(parameters, TotalAnswer(job), prediction);

  BindingShares shares;
  const double steps = static_cast<double>(graph.decode_step_count) / graph.tokens_per_step;
  const double dense = static_cast<double>(graph.dense_layer_count);
  const double mixture = static_cast<double>(graph.mixture_layer_count);
  shares.AddBlock(graph.prefill_dense, answers, dense);
  shares.AddBlock(graph.prefill_mixture, answers, mixture);
  shares.AddBlock(graph.decode_dense, answers, dense * steps);
  shares.AddBlock(graph.decode_mixture, answers, mixture * steps);
  shares.AddBlock(graph.prefill_head, answers, 1);
  shares.AddBlock(graph.decode_head, answers, steps);
  const double points = static_cast<double>(graph.decode_points.size());
  for (const DecodePoint& point : graph.decode_points) {
    const auto add = [&](int index, int64_t layers) {
      if (layers == 0) return;
      const auto& estimate = answers.operators[static_cast<size_t>(index)];
      shares.Add(operator_cost::BindingName(estimate.binding),
                 estimate.seconds * static_cast<double>(layers) * steps / points);
    };
    add(point.full_index, graph.full_attention_layer_count);
    add(point.windowed_index, graph.windowed_layer_count);
  }
  shares.AddCollectives(graph.prefill_send, answers, 1);
  shares.AddCollectives(graph.decode_send, answers, steps);
  shares.Add("framework", times.framework);
  shares.Add("background", (stretch - 1) * times.Total());
  prediction.binding = shares.Largest();
}

// Times beside another job are upper bounds; where that job never stands in the way they are those
// of the job alone, so that the low ends of the intervals lie below those.
void NoteBackground(double share, Prediction& prediction) {
  if (share <= 0) return;
  const double alone = 1 - share;
  prediction.interval_low_seconds *= alone;
  for (auto* interval :
       {&prediction.time_to_first_token_interval, &prediction.inter_token_latency_interval}) {
    if (interval->has_value()) (*interval)->low *= alone;
  }
  prediction.warnings.push_back(absl::StrFormat(
      "a job beside this one takes %.0f %% of the GPUs' time: times are upper bounds, alone steps "
      "take %.0f %% of them",
      100 * share, 100 * alone));
}

absl::Status CheckProfile(const Job& job, const parameters::ParameterSet& set,
                          const PredictOptions& options, Prediction& prediction) {
  if (job.framework.empty()) return absl::OkStatus();
  const hardware::Accelerator& accelerator = job.cluster.accelerator;
  const parameters::ParameterSource source =
      parameters::ResolveSource(set, accelerator.name, accelerator.parameter_donor);
  if (set.HasProfile(source.accelerator, job.framework)) return absl::OkStatus();
  const std::vector<std::string> known = FrameworkProfiles(set, source.accelerator);
  if (known.empty()) return absl::OkStatus();
  // Real, but never measured on this accelerator: a misspelt name is known nowhere.
  const bool known_elsewhere =
      std::any_of(set.accelerators().begin(), set.accelerators().end(), [&](const auto& entry) {
        return set.HasProfile(entry.first, job.framework) ||
               set.HasProfile(entry.first, parameters::ProfileFamily(job.framework));
      });
  if (!known_elsewhere && !options.unknown_profile_is_default) {
    return base::UnknownName(absl::StrCat("framework profile of ", source.accelerator),
                             job.framework, known);
  }
  prediction.extrapolated = true;
  const std::string family = parameters::ProfileFamily(job.framework);
  if (set.HasProfile(source.accelerator, family)) {
    prediction.warnings.push_back(absl::StrCat("framework ", job.framework,
                                               " was not fitted: what is known of ", family,
                                               " and the accelerator's shared values were used"));
    return absl::OkStatus();
  }
  prediction.warnings.push_back(absl::StrCat("framework ", job.framework, " was not fitted on ",
                                             source.accelerator, "; its shared values were used"));
  return absl::OkStatus();
}

// Rates of a precision that only weights use (int4) are those of what it is multiplied in.
double PeakRate(const Job& job) {
  const bool weights_alone = job.precision == hardware::Precision::kInt4 ||
                             !job.cluster.accelerator.Supports(job.precision);
  return job.cluster.accelerator.MatrixRate(weights_alone ? hardware::Precision::kBf16
                                                          : job.precision);
}

}  // namespace

GraphOptions OptionsFor(const Job& job, const FrameworkParameters<double>& parameters) {
  const double fused =
      job.IsTraining() ? parameters.training.fused_attention : parameters.inference.fused_attention;
  const TrainingParameters<double>& training = parameters.training;
  return {.fused_attention = fused >= 0.5,
          .gradient_bytes = std::clamp(parameters.memory.gradient_bytes, 2.0, 4.0),
          .pass_tokens = std::llround(parameters.inference.pass_tokens),
          .schedule = job.serving.has_value() ? ScheduleFor(*job.serving, parameters)
                                              : serving::EngineSchedule(),
          .loss_pass_factor = training.loss_pass_factor,
          .fused_gradient_sum = training.fused_gradient_sum >= 0.5,
          .shard_messages_per_layer = training.shard_messages_per_layer,
          .reduce_bucket_bytes = training.reduce_bucket_bytes,
          .pipeline_send_split = job.plan.zero_stage == 0 || training.pipeline_send_split >= 0.5,
          .node_level_dispatch = job.IsTraining() && training.node_level_dispatch >= 0.5};
}

absl::StatusOr<PortAnswers> AskPorts(const Graph& graph, const Job& job,
                                     OperatorCostPort& operator_cost,
                                     NetworkTimePort& network_time) {
  PortAnswers answers;
  SEXTANT_ASSIGN_OR_RETURN(
      answers.operators,
      operator_cost.EstimateOperators(graph.operators, job.cluster.accelerator, job.framework));
  if (!graph.collectives.empty()) {
    const hardware::Cluster cluster = collectives::ApplyFaults(job.cluster, job.faults);
    SEXTANT_ASSIGN_OR_RETURN(answers.collectives, network_time.EstimateCollectives(
                                                      graph.collectives, cluster, job.framework));
  }
  if (answers.operators.size() != graph.operators.size() ||
      answers.collectives.size() != graph.collectives.size()) {
    return absl::InternalError("a port answered another number of items than it was asked");
  }
  return answers;
}

PricedTraining PriceTraining(const TrainingGraph& graph, const PortAnswers& answers,
                             const Job& job) {
  const PricedBlocks embedding = PriceBlocks(graph.embedding, answers);
  const PricedBlocks dense = PriceBlocks(graph.dense, answers);
  const PricedBlocks mixture = PriceBlocks(graph.mixture, answers);
  const PricedBlocks head = PriceBlocks(graph.head, answers);
  PricedTraining priced;
  for (const StageStep& step : graph.stages) {
    PricedStage stage;
    stage.rank_count = step.stage.rank_count;
    stage.slowdown = step.stage.slowdown;
    const auto add = [&](const PricedBlocks& blocks, int64_t count) {
      const double factor = static_cast<double>(count);
      stage.forward.AddScaled(blocks.forward, factor);
      stage.backward.AddScaled(blocks.backward, factor);
      stage.recompute.AddScaled(blocks.recompute, factor);
    };
    add(embedding, step.stage.has_embedding ? 1 : 0);
    add(dense, step.stage.dense_layer_count);
    add(mixture, step.stage.mixture_layer_count);
    add(head, step.stage.has_head ? 1 : 0);
    stage.reduce_seconds = PriceCollectives(step.reduce, answers);
    stage.optimizer_seconds = PriceBlock(step.optimizer, answers).memory_bound_seconds;
    priced.stages.push_back(stage);
  }
  priced.send_seconds = PriceCollectives(graph.send, answers);
  priced.tied_embedding_seconds = PriceCollectives(graph.tied_embedding, answers);
  priced.micro_batch_count = graph.micro_batch_count;
  priced.virtual_pipeline_size = job.plan.virtual_pipeline_size;
  priced.schedule = job.plan.schedule;
  const bool several_nodes = job.gpu_count > job.cluster.gpus_per_node;
  if (job.plan.pipeline_parallel_size > 1 && several_nodes) {
    priced.host_bound_group_size = static_cast<double>(job.plan.tensor_parallel_size);
  }
  return priced;
}

double VectorAttentionRate(const Job& job, const InferenceParameters<double>& parameters) {
  const workload::ModelArchitecture& model = job.model;
  const double group = static_cast<double>(model.attention_head_count) /
                       static_cast<double>(std::max<int64_t>(1, model.kv_head_count));
  if (group == parameters.matrix_attention_group) return 0;
  return parameters.vector_attention_share * job.cluster.accelerator.vector_flop_per_second;
}

PricedInference PriceInference(const InferenceGraph& graph, const PortAnswers& answers,
                               double vector_attention_rate) {
  const double dense = static_cast<double>(graph.dense_layer_count);
  const double mixture = static_cast<double>(graph.mixture_layer_count);
  PricedInference priced;
  priced.prefill = PriceBlock(graph.prefill_embedding, answers);
  priced.prefill.AddScaled(PriceBlock(graph.prefill_dense, answers), dense);
  priced.prefill.AddScaled(PriceBlock(graph.prefill_mixture, answers), mixture);
  priced.prefill.AddScaled(PriceBlock(graph.prefill_head, answers), 1);
  priced.prefill_send_seconds = PriceCollectives(graph.prefill_send, answers);
  priced.decode_step_count = graph.decode_step_count;
  priced.tokens_per_step = graph.tokens_per_step;
  priced.step_over_pass = graph.step_over_pass;
  priced.sequence_count = graph.sequence_count;
  priced.prefill_micro_batch_count = graph.sequence_count / graph.prefill_sequence_count;
  priced.decode_micro_batch_count = graph.sequence_count / graph.decode_sequence_count;
  priced.prefill_tokens = static_cast<double>(graph.prefill_sequence_count * graph.prompt_tokens);
  priced.slowest_stage_share = graph.slowest_stage_share;
  if (graph.decode_step_count == 0) return priced;
  priced.decode = PriceBlock(graph.decode_embedding, answers);
  priced.decode.AddScaled(PriceBlock(graph.decode_dense, answers), dense);
  priced.decode.AddScaled(PriceBlock(graph.decode_mixture, answers), mixture);
  priced.decode.AddScaled(PriceBlock(graph.decode_head, answers), 1);
  const double full = static_cast<double>(graph.full_attention_layer_count);
  const double windowed = static_cast<double>(graph.windowed_layer_count);
  priced.decode.kernel_count += full + windowed;  // the attention cores
  priced.decode_send_seconds = PriceCollectives(graph.decode_send, answers);
  for (const DecodePoint& point : graph.decode_points) {
    const auto seconds = [&](int index) {
      return DecodeAttentionSeconds(graph, answers, index, vector_attention_rate);
    };
    priced.contexts.push_back({point.context_tokens, full * seconds(point.full_index) +
                                                         windowed * seconds(point.windowed_index)});
  }
  return priced;
}

absl::StatusOr<PricedTraining> AskTraining(const Job& job,
                                           const FrameworkParameters<double>& parameters,
                                           OperatorCostPort& operator_cost,
                                           NetworkTimePort& network_time) {
  const TrainingGraph graph = BuildTrainingGraph(job, OptionsFor(job, parameters));
  SEXTANT_ASSIGN_OR_RETURN(const PortAnswers answers,
                           AskPorts(graph, job, operator_cost, network_time));
  return PriceTraining(graph, answers, job);
}

absl::StatusOr<PricedInference> AskInference(const Job& job,
                                             const FrameworkParameters<double>& parameters,
                                             OperatorCostPort& operator_cost,
                                             NetworkTimePort& network_time) {
  const InferenceGraph graph = BuildInferenceGraph(job, OptionsFor(job, parameters));
  SEXTANT_ASSIGN_OR_RETURN(const PortAnswers answers,
                           AskPorts(graph, job, operator_cost, network_time));
  return PriceInference(graph, answers, VectorAttentionRate(job, parameters.inference));
}

absl::StatusOr<Prediction> Predict(const Job& job, OperatorCostPort& operator_cost,
                                   NetworkTimePort& network_time, const PredictOptions& options) {
  SEXTANT_RETURN_IF_ERROR(workload::ValidateJob(job));
  SEXTANT_ASSIGN_OR_RETURN(const std::shared_ptr<const parameters::ParameterSet> set,
                           operator_cost.CurrentParameters());
  Prediction prediction;
  prediction.parameter_set = set->version();
  SEXTANT_RETURN_IF_ERROR(CheckProfile(job, *set, options, prediction));
  const FrameworkParameters<double> parameters = ParametersOf(*set, job);
  const GraphOptions graph_options = OptionsFor(job, parameters);

  if (job.IsTraining()) {
    const TrainingGraph graph = BuildTrainingGraph(job, graph_options);
    SEXTANT_ASSIGN_OR_RETURN(const PortAnswers answers,
                             AskPorts(graph, job, operator_cost, network_time));
    NoteExtrapolation(answers, parameters, job, prediction);
    PredictTraining(job, graph, answers, parameters, prediction);
  } else if (job.serving.has_value()) {
    const StepGraph graph = BuildStepGraph(job, graph_options);
    SEXTANT_ASSIGN_OR_RETURN(const PortAnswers answers,
                             AskPorts(graph, job, operator_cost, network_time));
    NoteExtrapolation(answers, parameters, job, prediction);
    SEXTANT_RETURN_IF_ERROR(
        PredictServing(job, graph, answers, parameters, options.serving_progress, prediction));
    SetIntervals(parameters, TotalAnswer(job), prediction);
  } else {
    const InferenceGraph graph = BuildInferenceGraph(job, graph_options);
    SEXTANT_ASSIGN_OR_RETURN(const PortAnswers answers,
                             AskPorts(graph, job, operator_cost, network_time));
    NoteExtrapolation(answers, parameters, job, prediction);
    PredictInference(job, graph, answers, parameters, prediction);
  }
  if (!job.IsTraining()) {
    NoteBackground(std::get<workload::InferenceWorkload>(job.workload).background_share,
                   prediction);
  }
  if (options.sensitivities) {
    SEXTANT_ASSIGN_OR_RETURN(prediction.sensitivities,
                             Sensitivities(job, parameters, operator_cost, network_time));
  }
  const double gpus = static_cast<double>(job.gpu_count);
  prediction.tokens_per_second_per_gpu = prediction.tokens_per_second / gpus;
  const Job batch = job.serving.has_value() ? AsBatch(job, prediction) : job;
  if (prediction.total_seconds > 0) {
    prediction.model_flops_utilization =
        ModelFlopCount(batch) / (prediction.total_seconds * gpus * PeakRate(job));
  }
  prediction.memory = PredictMemory(
      job.serving.has_value() ? LargestBatch(job, prediction, graph_options.schedule) : job,
      parameters.memory, graph_options.fused_attention);
  if (job.IsTraining()) {
    prediction.memory.largest_micro_batch_size =
        LargestMicroBatchSize(job, parameters.memory, graph_options.fused_attention);
  }
  if (!prediction.memory.fits &&
      prediction.memory.total_bytes <= prediction.memory.capacity_bytes) {
    prediction.warnings.push_back(
        "the shortfall counts device memory that the CUDA context and the allocator hold beside "
        "what is allocated");
  }
  return prediction;
}

}  // namespace sextant::orchestrator
