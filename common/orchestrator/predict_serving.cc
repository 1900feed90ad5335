// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/predict_serving.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/orchestrator/adapter_weights.h"
#include "common/orchestrator/inference_formula.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/pricing.h"
#include "common/serving/serving_simulation.h"

namespace sextant::orchestrator {
namespace {

using serving::Line;
using serving::Plane;
using workload::Job;

std::vector<double> Doubles(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

class Pricer {
 public:
  Pricer(const StepGraph& graph, const PortAnswers& answers,
         const InferenceParameters<double>& parameters)
      : graph_(graph), answers_(answers), p_(parameters) {}

  PricedBlock Layers(const PassPoint& point) const {
    PricedBlock block = PriceBlock(point.embedding, answers_);
    block.AddScaled(PriceBlock(point.dense, answers_),
                    static_cast<double>(graph_.dense_layer_count));
    block.AddScaled(PriceBlock(point.mixture, answers_),
                    static_cast<double>(graph_.mixture_layer_count));
    return block;
  }
  double Seconds(const PricedBlock& block) const {
    return block.matrix_seconds + block.attention_seconds + block.memory_bound_seconds +
           block.tensor_parallel_seconds * p_.tensor_parallel_factor +
           block.expert_parallel_seconds;
  }
  Line Passes(const std::vector<PassPoint>& points) const {
    std::vector<double> tokens;
    std::vector<double> seconds;
    for (const PassPoint& point : points) {
      tokens.push_back(static_cast<double>(point.token_count));
      seconds.push_back(Seconds(Layers(point)) + PriceCollectives(point.send, answers_));
    }
    return Line(std::move(tokens), std::move(seconds));
  }
  Line Heads() const {
    std::vector<double> tokens = {0};
    std::vector<double> seconds = {0};
    for (const HeadPoint& point : graph_.heads) {
      tokens.push_back(static_cast<double>(point.token_count));
      seconds.push_back(Seconds(PriceBlock(point.head, answers_)));
    }
    return Line(std::move(tokens), std::move(seconds));
  }
  // Attention of all layers; `vector_rate` as of DecodeAttentionSeconds.
  double Attention(const AttentionPoint& point, double vector_rate = 0) const {
    const auto seconds = [&](int index) {
      return DecodeAttentionSeconds(graph_, answers_, index, vector_rate);
    };
    return static_cast<double>(graph_.full_attention_layer_count) * seconds(point.full_index) +
           static_cast<double>(graph_.windowed_layer_count) * seconds(point.windowed_index);
  }
  Plane Grid(const std::vector<int64_t>& x, const std::vector<int64_t>& y,
             const std::vector<AttentionPoint>& points, double vector_rate = 0) const {
    std::vector<double> z;
    z.reserve(points.size());
    for (const AttentionPoint& point : points) z.push_back(Attention(point, vector_rate));
    return Plane(Doubles(x), Doubles(y), std::move(z));
  }
  // What one of many chunks adds to their common kernel.
  Plane Filled() const {
    const double floor = Attention(graph_.smallest_chunk);
    std::vector<double> z;
    for (size_t i = 0; i < graph_.chunks_filled.size(); ++i) {
      const size_t row = i / graph_.tokens_before.size();
      const double all = std::max(0.0, Attention(graph_.chunks_filled[i]) - floor);
      z.push_back(all / static_cast<double>(graph_.chunks_per_fill[row]));
    }
    return Plane(Doubles(graph_.chunk_tokens), Doubles(graph_.tokens_before), std::move(z));
  }

 private:
  const StepGraph& graph_;
  const PortAnswers& answers_;
  const InferenceParameters<double>& p_;
};

// Of one image encoder over images that it takes together.
Line ImageEncoding(const serving::Images& images, const StepGraph& graph, const Pricer& pricer,
                   const PortAnswers& answers) {
  std::vector<double> counts = {0};
  std::vector<double> seconds = {0};
  for (size_t i = 0; i < graph.image_counts.size(); ++i) {
    counts.push_back(static_cast<double>(graph.image_counts[i]));
    seconds.push_back(static_cast<double>(images.encoder_layer_count) *
                      pricer.Seconds(PriceBlock(graph.image_layers[i], answers)));
  }
  return Line(std::move(counts), std::move(seconds));
}

// What adapters add to a step: their kernels; their weights, read once each; two operations for
// each weight and token; and their way to the device where they are not resident.
void PriceAdapters(const Job& job, const StepGraph& graph, const PortAnswers& answers,
                   serving::StepTables& tables) {
  const serving::Adapters& adapters = job.serving->adapters;
  if (adapters.count == 0) return;
  const hardware::Accelerator& device = job.cluster.accelerator;
  const double weights = AdapterParameters(job.model, adapters.rank, job.plan.tensor_parallel_size);
  tables.adapter_kernels =
      static_cast<double>(graph.full_attention_layer_count + graph.windowed_layer_count) *
      PriceBlock(graph.adapter_kernels, answers).memory_bound_seconds;
  tables.adapter_read = 2 * weights / device.hbm_bandwidth_bytes_per_second;
  tables.adapter_token = 2 * weights / device.MatrixRate(hardware::Precision::kBf16);
  tables.adapter_load = 2 * weights / device.pcie_bandwidth_bytes_per_second;
}

Line Transfers(const StepGraph& graph, const PortAnswers& answers) {
  if (graph.transfer.empty()) return {};
  std::vector<double> seconds;
  for (const int index : graph.transfer) {
    seconds.push_back(answers.collectives[static_cast<size_t>(index)].seconds);
  }
  return Line(Doubles(graph.transfer_tokens), std::move(seconds));
}

int64_t ReplicaImages(const serving::Images& images) {
  return images.encoder_gpu_count == 0 ? images.per_request : 0;
}

void NoteSaturation(const serving::ServingReport& report, Prediction& prediction) {
  if (report.refused_request_count > 0) {
    prediction.warnings.push_back(
        absl::StrFormat("%d of %d requests were refused: their cache would not fit even alone",
                        report.refused_request_count, report.offered_request_count));
  }
  if (!report.saturated) return;
  prediction.warnings.push_back(absl::StrFormat(
      "saturated: the load is %.0f %% of the capacity of %.4g requests a second; latencies grow "
      "with the run, those of this one are lower bounds",
      100 * *report.load_fraction, *report.capacity_requests_per_second));
}

// Shares of what binds, in steps as large as those of the run.
std::vector<std::string> Binding(const StepGraph& graph, const PortAnswers& answers,
                                 const serving::ServingReport& report) {
  BindingShares shares;
  const auto add = [&](const PassPoint& point, double seconds) {
    const double layers = static_cast<double>(graph.dense_layer_count + graph.mixture_layer_count);
    shares.AddBlock(point.dense, answers,
                    seconds * static_cast<double>(graph.dense_layer_count) / layers);
    shares.AddBlock(point.mixture, answers,
                    seconds * static_cast<double>(graph.mixture_layer_count) / layers);
  };
  add(graph.prompt_passes.back(), report.prefill_seconds + report.mixed_seconds);
  add(graph.decode_passes[graph.decode_passes.size() / 2], report.decode_seconds);
  std::vector<std::string> names = shares.Largest();
  if (report.preemption_count > 0) names.insert(names.begin(), "kv_cache_capacity");
  return names;
}

}  // namespace

serving::EngineSchedule ScheduleFor(const serving::ServingLoad& load,
                                    const FrameworkParameters<double>& parameters) {
  const SchedulerParameters<double>& p = parameters.scheduler;
  return serving::ScheduleOf(load, {.max_batch_tokens = std::llround(p.max_batch_tokens),
                                    .max_batch_sequences = std::llround(p.max_batch_sequences),
                                    .chunked_prefill = p.chunked_prefill >= 0.5,
                                    .prefill_first = p.prefill_first >= 0.5});
}

serving::StepTables PriceSteps(const Job& job, const StepGraph& graph, const PortAnswers& answers,
                               const InferenceParameters<double>& parameters) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  const double vector_attention_rate = VectorAttentionRate(job, parameters);
  const Pricer pricer(graph, answers, parameters);
  serving::StepTables tables;
  tables.prompt_pass = pricer.Passes(graph.prompt_passes);
  tables.decode_pass = pricer.Passes(graph.decode_passes);
  tables.head = pricer.Heads();
  tables.decode_attention = pricer.Grid(graph.decode_sequences, graph.decode_contexts,
                                        graph.decode_attention, vector_attention_rate);
  tables.prompt_attention_alone =
      pricer.Grid(graph.chunk_tokens, graph.tokens_before, graph.chunk_alone);
  tables.prompt_attention_filled = pricer.Filled();
  tables.prompt_attention_floor = pricer.Attention(graph.smallest_chunk);
  const double cores =
      static_cast<double>(graph.full_attention_layer_count + graph.windowed_layer_count);
  tables.dispatch = parameters.dispatch_seconds *
                    (pricer.Layers(graph.decode_passes.front()).kernel_count + cores);
  tables.engine_step = parameters.step_seconds;
  tables.engine_prefill = std::max(0.0, parameters.prefill_seconds - parameters.step_seconds);
  tables.engine_per_sequence = parameters.sequence_seconds;
  PriceAdapters(job, graph, answers, tables);
  if (job.serving->images.encoder_gpu_count == 0) {
    tables.images = ImageEncoding(job.serving->images, graph, pricer, answers);
  }
  tables.pipeline_stages = job.plan.pipeline_parallel_size;
  tables.draft_share = serving::StepOverPass(work.speculation) - 1;
  tables.stretch = 1 / (1 - work.background_share);
  return tables;
}

absl::Status PredictServing(const Job& job, const StepGraph& graph, const PortAnswers& answers,
                            const FrameworkParameters<double>& parameters,
                            const serving::ProgressCheck& check, Prediction& prediction) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  const serving::ServingLoad& load = *job.serving;
  const int64_t replicas = job.plan.data_parallel_size;
  const int64_t capacity = KvCacheCapacityTokens(job, parameters.memory);
  const serving::StepCost cost(PriceSteps(job, graph, answers, parameters.inference));
  serving::Fleet fleet{.limits = {.kv_capacity_tokens = capacity / replicas,
                                  .page_tokens = work.kv_cache_page_tokens,
                                  .schedule = ScheduleFor(load, parameters),
                                  .shared_prefix_tokens = load.shared_prefix_tokens,
                                  .speculation = work.speculation,
                                  .seed = load.seed,
                                  .adapters = load.adapters,
                                  .images_per_request = ReplicaImages(load.images)},
                       .replica_count = replicas,
                       .prefill_replica_count = load.prefill_replica_count,
                       .transfer_seconds = Transfers(graph, answers)};
  if (load.images.per_request > 0 && load.images.encoder_gpu_count > 0) {
    const Pricer pricer(graph, answers, parameters.inference);
    fleet.encoder_count = load.images.encoder_gpu_count;
    fleet.encoder_seconds = ImageEncoding(load.images, graph, pricer, answers)
                                .At(static_cast<double>(load.images.per_request));
    fleet.embedding_seconds =
        answers.collectives[static_cast<size_t>(graph.embedding_transfer)].seconds;
  }
  SEXTANT_ASSIGN_OR_RETURN(
      serving::ServingReport report,
      serving::Simulate(load, work.prompt_tokens, work.output_tokens, fleet, cost, check));
  prediction.breakdown = {{"prefill_steps", report.prefill_seconds},
                          {"mixed_steps", report.mixed_seconds},
                          {"decode_steps", report.decode_seconds},
                          {"idle", report.idle_seconds}};
  for (const TimePart& part : prediction.breakdown) prediction.total_seconds += part.seconds;
  prediction.tokens_per_second =
      work.output_tokens > 0 ? report.output_tokens_per_second
                             : report.requests_per_second * static_cast<double>(work.prompt_tokens);
  prediction.kv_cache_capacity_tokens = capacity;
  if (!report.saturated && report.completed_request_count > 0) {
    prediction.time_to_first_token_seconds = report.time_to_first_token_seconds.mean;
    if (report.inter_token_latency_seconds.mean > 0) {
      prediction.inter_token_latency_seconds = report.inter_token_latency_seconds.mean;
    }
  }
  NoteSaturation(report, prediction);
  prediction.binding = Binding(graph, answers, report);
  prediction.serving = std::move(report);
  return absl::OkStatus();
}

Job AsBatch(const Job& job, const Prediction& prediction) {
  Job batch = job;
  batch.serving.reset();
  std::get<workload::InferenceWorkload>(batch.workload).batch_size =
      std::max<int64_t>(1, prediction.serving->completed_request_count);
  return batch;
}

Job LargestBatch(const Job& job, const Prediction& prediction,
                 const serving::EngineSchedule& schedule) {
  Job batch = AsBatch(job, prediction);
  batch.serving = job.serving;  // adapters and an encoder lie beside the weights
  auto& work = std::get<workload::InferenceWorkload>(batch.workload);
  const int64_t per_request = std::max<int64_t>(1, work.prompt_tokens + work.output_tokens);
  const int64_t held = prediction.kv_cache_capacity_tokens.value_or(0) / per_request;
  const int64_t wanted = job.serving->arrival == serving::Arrival::kClosedLoop
                             ? job.serving->concurrency
                             : schedule.max_batch_sequences * job.plan.data_parallel_size;
  work.batch_size = std::max<int64_t>(1, std::min(wanted, held));
  return batch;
}

}  // namespace sextant::orchestrator
