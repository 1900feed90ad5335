// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/orchestrator/adapter_weights.h"
#include "common/orchestrator/image_encoder.h"
#include "common/orchestrator/kv_cache.h"
#include "common/orchestrator/stage_layout.h"

namespace sextant::orchestrator {
namespace {

using workload::Job;
using workload::ParallelPlan;

// Bytes of one stored weight of the layers, quantisation scales included: fp4 has a scale byte per
// 16 weights, int4 a 16-bit scale per 128.
double WeightBytes(hardware::Precision precision) {
  switch (precision) {
    case hardware::Precision::kFp4:
      return 0.5 + 1.0 / 16;
    case hardware::Precision::kInt4:
      return 0.5 + 2.0 / 128;
    default:
      return hardware::BytesPerElement(precision);
  }
}

double ActivationBytes(hardware::Precision precision) {
  const bool wide =
      precision == hardware::Precision::kFp32 || precision == hardware::Precision::kTf32;
  return wide ? 4 : 2;
}

struct Parts {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double logits = 0;
  double kv_cache = 0;
  double workspace = 0;

  double Total() const {
    return weights + gradients + optimizer + activations + logits + kv_cache + workspace;
  }
};

int64_t ToBytes(double bytes) {
  // Far above any device, and exact in double.
  return std::llround(std::min(bytes, 9e15));
}

MemoryPrediction Report(const Parts& parts, const Job& job, const MemoryParameters<double>& p) {
  MemoryPrediction memory;
  const std::array<MemoryPart, 7> all = {{{"weights", ToBytes(parts.weights)},
                                          {"gradients", ToBytes(parts.gradients)},
                                          {"optimizer", ToBytes(parts.optimizer)},
                                          {"activations", ToBytes(parts.activations)},
                                          {"logits", ToBytes(parts.logits)},
                                          {"kv_cache", ToBytes(parts.kv_cache)},
                                          {"workspace", ToBytes(parts.workspace)}}};
  for (const MemoryPart& part : all) {
    memory.breakdown.push_back(part);
    memory.total_bytes += part.bytes;
  }
  memory.capacity_bytes = job.cluster.accelerator.hbm_bytes;
  const double needed =
      static_cast<double>(memory.total_bytes) * (1 + p.fragmentation) + p.context_bytes;
  memory.reserved_bytes = ToBytes(static_cast<double>(memory.total_bytes) * (1 + p.fragmentation));
  memory.shortfall_bytes = std::max<int64_t>(0, ToBytes(needed) - memory.capacity_bytes);
  memory.fits = memory.shortfall_bytes == 0;
  return memory;
}

// Bytes of weights, gradients and optimizer states, per ZeRO stage (Rajbhandari et al. 2020, figure
// 1; FSDP is stage 3). Experts have data parallel groups of their own.
void AddStates(const Job& job, const StageClass& stage, const MemoryParameters<double>& p,
               Parts& parts) {
  const auto& work = std::get<workload::TrainingWorkload>(job.workload);
  const ParallelPlan& plan = job.plan;
  const double element = ActivationBytes(job.precision);
  const RankParameters all = CountRankParameters(job, stage);
  const RankParameters trained = CountTrainedParameters(job, stage);
  const int64_t group = plan.data_parallel_size * plan.context_parallel_size;
  const int64_t expert_group =
      std::max<int64_t>(1, group * plan.tensor_parallel_size /
                               (ExpertTensorParallelSize(plan) * plan.expert_parallel_size));
  const auto sharded = [&](double dense, double expert, int from_stage) {
    if (plan.zero_stage < from_stage) return dense + expert;
    return dense / static_cast<double>(ShardGroupSize(plan, group)) +
           expert / static_cast<double>(ShardGroupSize(plan, expert_group));
  };
  // The two directions of DualPipe each need the weights of a stage (DeepSeek-V3 2024, table 2).
  const double copies =
      plan.schedule == workload::PipelineSchedule::kDualPipe && plan.pipeline_parallel_size > 1 ? 2
                                                                                                : 1;
  parts.weights += copies * element * sharded(all.Dense(), all.expert, 3);
  if (plan.zero_stage >= 3 && stage.LayerCount() > 0) {
    // The layer at work and the one fetched ahead are whole.
    const double per_layer = (all.matrix + all.expert) / static_cast<double>(stage.LayerCount());
    const double shards = static_cast<double>(ShardGroupSize(plan, group));
    parts.weights += element * 2 * per_layer * (1 - 1 / shards);
  }
  parts.gradients += copies * p.gradient_bytes * sharded(trained.Dense(), trained.expert, 2);
  // Adam in mixed precision: fp32 master weights and two moments; SGD: the master weights alone.
  const double master = element < 4 ? 4 : 0;
  const double moments = work.optimizer == workload::Optimizer::kAdam ? 8 : 0;
  parts.optimizer += (master + moments) * sharded(trained.Dense(), trained.expert, 1);
}

// Bytes of the buffers with which ZeRO-1 and 2 exchange gradients and weights: there while the
// optimizer steps, when no activations are.
double ExchangeBytes(const Job& job, const StageClass& stage, const MemoryParameters<double>& p) {
  const int zero = job.plan.zero_stage;
  if (zero != 1 && zero != 2) return 0;
  return p.shard_buffer_bytes * CountTrainedParameters(job, stage).Total();
}

// Bytes of what the forward passes leave for the backward passes.
void AddActivations(const Job& job, const StageClass& stage, const MemoryParameters<double>& p,
                    bool fused_attention, Parts& parts) {
  const auto& work = std::get<workload::TrainingWorkload>(job.workload);
  const ParallelPlan& plan = job.plan;
  const double element = ActivationBytes(job.precision);
  const int64_t micro_batches =
      work.global_batch_size / (plan.micro_batch_size * plan.data_parallel_size);
  const double in_flight = MicroBatchesInFlight(plan, micro_batches, stage.first_rank);
  const double dense = LayerActivationBytes(job, false, fused_attention);
  const double mixture =
      stage.mixture_layer_count > 0 ? LayerActivationBytes(job, true, fused_attention) : 0;
  double saved = static_cast<double>(stage.dense_layer_count) * dense +
                 static_cast<double>(stage.mixture_layer_count) * mixture;
  saved *= in_flight;
  if (plan.recompute == workload::Recompute::kFull) {
    // One layer at a time is whole again while its backward pass runs.
    Job whole = job;
    whole.plan.recompute = workload::Recompute::kNone;
    saved += LayerActivationBytes(whole, stage.mixture_layer_count > 0, fused_attention);
  }
  parts.activations += p.activation_factor * saved * element / 2;
  if (stage.has_head) {
    const double tokens = static_cast<double>(plan.micro_batch_size) *
                          static_cast<double>(work.sequence_length) /
                          static_cast<double>(plan.context_parallel_size);
    parts.logits +=
        p.logits_bytes * tokens *
        static_cast<double>(VocabularyRowsPerRank(job.model, plan.tensor_parallel_size));
  }
}

Parts TrainingParts(const Job& job, const StageClass& stage, const MemoryParameters<double>& p,
                    bool fused_attention) {
  Parts step;
  AddStates(job, stage, p, step);
  step.workspace = p.workspace_bytes;
  Parts passes = step;
  step.gradients += ExchangeBytes(job, stage, p);
  AddActivations(job, stage, p, fused_attention, passes);
  return passes.Total() > step.Total() ? passes : step;
}

double InferenceWeightBytes(const Job& job, const StageClass& stage) {
  const RankParameters rank = CountRankParameters(job, stage);
  const double element = ActivationBytes(job.precision);
  return element * (rank.embedding + rank.output_head + rank.norm) +
         WeightBytes(job.precision) * (rank.matrix + rank.expert) + EncoderBytes(job) +
         ResidentAdapterBytes(job) * static_cast<double>(stage.LayerCount()) /
             static_cast<double>(job.model.layer_count);
}

// Buffers of the largest pass, of the longest prompt or the engine's budget of tokens: residual
// stream, the widest pair of tensors inside a layer, last logits.
double InferenceActivationBytes(const Job& job, const workload::InferenceWorkload& work) {
  constexpr double kPassTokens = 8192;  // the largest default of max_num_batched_tokens in vLLM
  const double element = ActivationBytes(job.precision);
  const double sequences = std::ceil(static_cast<double>(work.batch_size) /
                                     static_cast<double>(job.plan.data_parallel_size));
  const double tokens = std::min(sequences * static_cast<double>(work.prompt_tokens),
                                 std::max(kPassTokens, static_cast<double>(work.prompt_tokens)));
  const double tp = static_cast<double>(job.plan.tensor_parallel_size);
  const double ffn = static_cast<double>(std::max(
      job.model.ffn_size, job.model.experts.expert_ffn_size * job.model.experts.experts_per_token));
  return tokens * element *
             (3 * static_cast<double>(job.model.hidden_size) +
              (job.model.gated_ffn ? 3 : 2) * ffn / tp) +
         sequences * 4 * static_cast<double>(job.model.vocabulary_size);
}

// Cache of one sequence of `tokens` tokens on a rank of the stage, in whole pages. Layers of a
// hybrid model are taken as evenly spread over stages.
double StageKvBytes(const Job& job, const StageClass& stage,
                    const workload::InferenceWorkload& work, double tokens) {
  const double page = static_cast<double>(work.kv_cache_page_tokens);
  const double share =
      static_cast<double>(stage.LayerCount()) / static_cast<double>(job.model.layer_count);
  return share * KvCacheBytes(job.model, job.plan.tensor_parallel_size, work.kv_cache_precision,
                              std::ceil(tokens / page) * page);
}

Parts InferenceParts(const Job& job, const StageClass& stage, const MemoryParameters<double>& p) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  Parts parts;
  parts.weights = InferenceWeightBytes(job, stage);
  const double sequences = std::ceil(static_cast<double>(work.batch_size) /
                                     static_cast<double>(job.plan.data_parallel_size));
  parts.kv_cache = sequences * StageKvBytes(job, stage, work,
                                            static_cast<double>(work.prompt_tokens) +
                                                static_cast<double>(work.output_tokens));
  parts.activations = InferenceActivationBytes(job, work);
  parts.workspace = p.workspace_bytes;
  return parts;
}

}  // namespace

double LayerActivationBytes(const Job& job, bool mixture, bool fused_attention) {
  const auto& work = std::get<workload::TrainingWorkload>(job.workload);
  const workload::ModelArchitecture& m = job.model;
  const ParallelPlan& plan = job.plan;
  const double sequence = static_cast<double>(work.sequence_length);
  const double tokens = static_cast<double>(plan.micro_batch_size) * sequence /
                        static_cast<double>(plan.context_parallel_size);
  const double h = static_cast<double>(m.hidden_size);
  const double tp = static_cast<double>(plan.tensor_parallel_size);
  const double outside = plan.sequence_parallel ? tp : 1;  // split of what tensors alone leave
  if (plan.recompute == workload::Recompute::kFull) return 2 * tokens * h / outside;

  const bool dropout = m.layer_norm && m.linear_bias;
  // 8-bit training keeps the inputs of matrix products as they were multiplied.
  const double input = hardware::BytesPerElement(job.precision) <= 1 ? 1 : 2;
  // Inputs of two norms, of attention and of the feed-forward network; two dropout masks.
  const double replicated = h * (4 + 2 * input + (dropout ? 2 : 0));
  const double heads = static_cast<double>(m.attention_head_count);
  const double head = m.IsLatent() ? static_cast<double>(m.latent_attention.nope_head_size +
                                                         m.latent_attention.rope_head_size)
                                   : static_cast<double>(m.head_size);
  const double kv_heads = std::max(m.IsLatent() ? heads : static_cast<double>(m.kv_head_count), tp);
  const double attention = 2 * head * (2 * heads + 2 * kv_heads);  // q, k, v and the output
  const double per_ffn = (m.gated_ffn ? 4 : 2) + input;
  double ffn = static_cast<double>(m.ffn_size);
  double extra = 0;
  if (mixture) {
    const workload::MixtureOfExperts& e = m.experts;
    const double etp = static_cast<double>(ExpertTensorParallelSize(plan));
    const double visited = static_cast<double>(e.experts_per_token);
    // Dispatched tokens: each rank keeps top-k copies of its part, whatever the expert groups.
    extra = visited * input * h * etp / tp;
    ffn = static_cast<double>(e.expert_ffn_size) *
          (visited + static_cast<double>(e.shared_expert_count));
  }
  double bytes = tokens * (replicated / outside + (attention + per_ffn * ffn) / tp + extra);
  const bool scores_saved = !fused_attention && plan.recompute == workload::Recompute::kNone;
  if (scores_saved) {
    // Softmax output, and with dropout its mask and its output.
    bytes += tokens * (dropout ? 5 : 2) * heads * sequence / tp;
  }
  return bytes;
}

double MicroBatchesInFlight(const ParallelPlan& plan, int64_t micro_batch_count, int64_t rank) {
  const double m = static_cast<double>(micro_batch_count);
  const double p = static_cast<double>(plan.pipeline_parallel_size);
  if (plan.schedule == workload::PipelineSchedule::kGpipe) return m;
  // Two warm-ups meet in every rank: p + 1 at once (DeepSeek-V3 2024, table 2).
  if (plan.schedule == workload::PipelineSchedule::kDualPipe && p > 1) return std::min(m, p + 1);
  // A warm-up twice as long takes the place of the bubble (Qi et al. 2023, section 2.2).
  if (plan.schedule == workload::PipelineSchedule::kZeroBubbleH2) {
    return std::min(m, std::max(1.0, 2 * (p - static_cast<double>(rank)) - 1));
  }
  const double v = static_cast<double>(plan.virtual_pipeline_size);
  if (v <= 1) return std::min(m, p - static_cast<double>(rank));
  // Warm-up of Megatron's interleaved schedule, in chunks, and the one at work.
  const double chunks = 2 * (p - static_cast<double>(rank) - 1) + (v - 1) * p + 1;
  return std::min(m * v, chunks) / v;
}

int64_t KvCacheCapacityTokens(const Job& job, const MemoryParameters<double>& p) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  if (work.kv_cache_capacity_tokens > 0) return work.kv_cache_capacity_tokens;
  const double fraction =
      work.memory_fraction > 0 ? work.memory_fraction : p.inference_memory_fraction;
  const double page = static_cast<double>(work.kv_cache_page_tokens);
  const double sequence = std::max(
      page, std::ceil(static_cast<double>(work.prompt_tokens + work.output_tokens) / page) * page);
  double pages = std::numeric_limits<double>::infinity();
  for (const StageClass& stage : StageClasses(job)) {
    const double budget = static_cast<double>(job.cluster.accelerator.hbm_bytes) * fraction -
                          InferenceWeightBytes(job, stage) - InferenceActivationBytes(job, work) -
                          p.workspace_bytes;
    const double per_page = StageKvBytes(job, stage, work, sequence) * page / sequence;
    pages = std::min(pages, std::floor(std::max(0.0, budget) / per_page));
  }
  return static_cast<int64_t>(pages * page) * job.plan.data_parallel_size;
}

double ResidentTrainingBytes(const Job& job, const MemoryParameters<double>& p) {
  double most = 0;
  for (const StageClass& stage : StageClasses(job)) {
    Parts parts;
    AddStates(job, stage, p, parts);
    most = std::max(most, parts.Total() + ExchangeBytes(job, stage, p));
  }
  return most + p.workspace_bytes;
}

MemoryPrediction PredictMemory(const Job& job, const MemoryParameters<double>& p,
                               bool fused_attention) {
  Parts heaviest;
  for (const StageClass& stage : StageClasses(job)) {
    const Parts parts = job.IsTraining() ? TrainingParts(job, stage, p, fused_attention)
                                         : InferenceParts(job, stage, p);
    if (parts.Total() > heaviest.Total()) heaviest = parts;
  }
  return Report(heaviest, job, p);
}

int64_t LargestMicroBatchSize(const Job& job, const MemoryParameters<double>& p,
                              bool fused_attention) {
  const int64_t sequences = std::get<workload::TrainingWorkload>(job.workload).global_batch_size /
                            job.plan.data_parallel_size;
  std::vector<int64_t> divisors;
  for (int64_t size = 1; size * size <= sequences; ++size) {
    if (sequences % size != 0) continue;
    divisors.push_back(size);
    if (size * size != sequences) divisors.push_back(sequences / size);
  }
  std::sort(divisors.begin(), divisors.end());
  // Memory grows with the micro-batch: fewer are in flight only where all of them are.
  Job tried = job;
  const auto first_too_large =
      std::partition_point(divisors.begin(), divisors.end(), [&](int64_t size) {
        tried.plan.micro_batch_size = size;
        return PredictMemory(tried, p, fused_attention).fits;
      });
  return first_too_large == divisors.begin() ? 0 : *std::prev(first_too_large);
}

}  // namespace sextant::orchestrator
