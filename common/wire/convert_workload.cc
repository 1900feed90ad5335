// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <variant>

#include "common/wire/convert.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

void FillPlan(const workload::ParallelPlan& plan, types::v1::ParallelPlan& proto) {
  proto.set_tensor_parallel_size(plan.tensor_parallel_size);
  proto.set_sequence_parallel(plan.sequence_parallel);
  proto.set_pipeline_parallel_size(plan.pipeline_parallel_size);
  proto.set_virtual_pipeline_size(plan.virtual_pipeline_size);
  proto.set_context_parallel_size(plan.context_parallel_size);
  proto.set_expert_parallel_size(plan.expert_parallel_size);
  proto.set_data_parallel_size(plan.data_parallel_size);
  proto.set_micro_batch_size(plan.micro_batch_size);
  proto.set_zero_stage(plan.zero_stage);
  proto.set_schedule(std::string(workload::PipelineScheduleName(plan.schedule)));
  proto.set_recompute(std::string(workload::RecomputeName(plan.recompute)));
  proto.set_stage_split(std::string(workload::StageSplitName(plan.stage_split)));
  for (const int64_t layers : plan.stage_layer_counts) proto.add_stage_layer_counts(layers);
  proto.set_expert_tensor_parallel_size(plan.expert_tensor_parallel_size);
  proto.set_shard_group_size(plan.shard_group_size);
  proto.set_context_mode(std::string(workload::ContextModeName(plan.context_mode)));
}

workload::TrainingWorkload ReadTraining(Reader& reader, const types::v1::TrainingWorkload& proto) {
  return {.global_batch_size = proto.global_batch_size(),
          .sequence_length = proto.sequence_length(),
          .optimizer = reader.Word("training.optimizer", proto.optimizer(),
                                   workload::ParseOptimizer, workload::Optimizer::kAdam),
          .lora_rank = proto.lora_rank()};
}

workload::InferenceWorkload ReadInference(Reader& reader,
                                          const types::v1::InferenceWorkload& proto) {
  return {
      .prompt_tokens = proto.prompt_tokens(),
      .output_tokens = proto.output_tokens(),
      .batch_size = proto.has_batch_size() ? proto.batch_size() : 1,
      .kv_cache_precision = reader.Word("inference.kv_cache_precision", proto.kv_cache_precision(),
                                        hardware::ParsePrecision, hardware::Precision::kBf16),
      .kv_cache_page_tokens = proto.has_kv_cache_page_tokens() ? proto.kv_cache_page_tokens() : 16,
      .kv_cache_capacity_tokens = proto.kv_cache_capacity_tokens(),
      .memory_fraction = proto.memory_fraction(),
      .speculation = {.draft_tokens = proto.speculation().draft_tokens(),
                      .acceptance = proto.speculation().acceptance(),
                      .draft_cost = proto.speculation().draft_cost()},
      .captured_graphs = proto.has_captured_graphs()
                             ? std::optional<bool>(proto.captured_graphs())
                             : std::nullopt,
      .background_share = proto.background_share()};
}

}  // namespace

types::v1::ModelArchitecture ToProto(const workload::ModelArchitecture& m) {
  types::v1::ModelArchitecture proto;
  proto.set_name(m.name);
  proto.set_hidden_size(m.hidden_size);
  proto.set_layer_count(m.layer_count);
  proto.set_attention_head_count(m.attention_head_count);
  proto.set_kv_head_count(m.kv_head_count);
  proto.set_head_size(m.head_size);
  proto.set_ffn_size(m.ffn_size);
  proto.set_gated_ffn(m.gated_ffn);
  proto.set_vocabulary_size(m.vocabulary_size);
  proto.set_tied_embeddings(m.tied_embeddings);
  proto.set_learned_position_count(m.learned_position_count);
  proto.set_linear_bias(m.linear_bias);
  proto.set_qkv_bias(m.qkv_bias);
  proto.set_layer_norm(m.layer_norm);
  proto.set_causal(m.causal);
  proto.set_sliding_window(m.sliding_window);
  proto.set_full_attention_interval(m.full_attention_interval);
  proto.set_gated_attention(m.gated_attention);
  if (m.linear_attention != workload::LinearAttention()) {
    const workload::LinearAttention& l = m.linear_attention;
    types::v1::LinearAttention& linear = *proto.mutable_linear_attention();
    linear.set_key_head_count(l.key_head_count);
    linear.set_value_head_count(l.value_head_count);
    linear.set_key_head_size(l.key_head_size);
    linear.set_value_head_size(l.value_head_size);
    linear.set_convolution_size(l.convolution_size);
  }
  proto.set_patch_input_size(m.patch_input_size);
  proto.set_vocabulary_multiple(m.vocabulary_multiple);
  if (m.latent_attention != workload::LatentAttention()) {
    const workload::LatentAttention& l = m.latent_attention;
    types::v1::LatentAttention& latent = *proto.mutable_latent_attention();
    latent.set_query_lora_rank(l.query_lora_rank);
    latent.set_kv_lora_rank(l.kv_lora_rank);
    latent.set_rope_head_size(l.rope_head_size);
    latent.set_nope_head_size(l.nope_head_size);
    latent.set_value_head_size(l.value_head_size);
  }
  if (m.experts != workload::MixtureOfExperts()) {
    const workload::MixtureOfExperts& e = m.experts;
    types::v1::MixtureOfExperts& experts = *proto.mutable_experts();
    experts.set_expert_count(e.expert_count);
    experts.set_experts_per_token(e.experts_per_token);
    experts.set_expert_ffn_size(e.expert_ffn_size);
    experts.set_shared_expert_count(e.shared_expert_count);
    experts.set_dense_layer_count(e.dense_layer_count);
    experts.set_shared_ffn_size(e.shared_ffn_size);
    experts.set_load_imbalance(e.load_imbalance);
  }
  return proto;
}

absl::StatusOr<workload::ModelArchitecture> FromProto(const types::v1::ModelArchitecture& proto) {
  Reader reader;
  workload::ModelArchitecture m;
  m.name = proto.name();
  m.hidden_size = proto.hidden_size();
  m.layer_count = proto.layer_count();
  m.attention_head_count = proto.attention_head_count();
  const types::v1::LatentAttention& latent = proto.latent_attention();
  m.latent_attention = {.query_lora_rank = latent.query_lora_rank(),
                        .kv_lora_rank = latent.kv_lora_rank(),
                        .rope_head_size = latent.rope_head_size(),
                        .nope_head_size = latent.nope_head_size(),
                        .value_head_size = latent.value_head_size()};
  m.kv_head_count = proto.kv_head_count();
  m.head_size = proto.head_size();
  // Latent attention has no such heads: nothing to default.
  if (!m.IsLatent()) {
    if (m.kv_head_count == 0) m.kv_head_count = m.attention_head_count;
    if (m.head_size == 0 && m.attention_head_count > 0 &&
        m.hidden_size % m.attention_head_count == 0) {
      m.head_size = m.hidden_size / m.attention_head_count;
    }
  }
  m.ffn_size = proto.ffn_size();
  m.gated_ffn = proto.gated_ffn();
  m.vocabulary_size = proto.vocabulary_size();
  m.tied_embeddings = proto.tied_embeddings();
  m.learned_position_count = proto.learned_position_count();
  m.linear_bias = proto.linear_bias();
  m.qkv_bias = proto.qkv_bias();
  m.layer_norm = proto.layer_norm();
  if (proto.has_causal()) m.causal = proto.causal();
  m.sliding_window = proto.sliding_window();
  if (proto.has_full_attention_interval()) {
    m.full_attention_interval = proto.full_attention_interval();
  }
  m.gated_attention = proto.gated_attention();
  const types::v1::LinearAttention& linear = proto.linear_attention();
  m.linear_attention = {.key_head_count = linear.key_head_count(),
                        .value_head_count = linear.value_head_count(),
                        .key_head_size = linear.key_head_size(),
                        .value_head_size = linear.value_head_size(),
                        .convolution_size = linear.convolution_size()};
  m.patch_input_size = proto.patch_input_size();
  m.vocabulary_multiple = proto.vocabulary_multiple();
  const types::v1::MixtureOfExperts& experts = proto.experts();
  m.experts = {
      .expert_count = experts.expert_count(),
      .experts_per_token = experts.experts_per_token(),
      .expert_ffn_size = experts.expert_ffn_size(),
      .shared_expert_count = experts.shared_expert_count(),
      .dense_layer_count = experts.dense_layer_count(),
      .shared_ffn_size = experts.shared_ffn_size(),
      .load_imbalance = experts.has_load_imbalance()
                            ? reader.Finite("experts.load_imbalance", experts.load_imbalance())
                            : 1};
  return reader.Finish(std::move(m));
}

types::v1::ParallelPlan ToProto(const workload::ParallelPlan& plan) {
  types::v1::ParallelPlan proto;
  FillPlan(plan, proto);
  return proto;
}

absl::StatusOr<workload::ParallelPlan> FromProto(const types::v1::ParallelPlan& proto) {
  Reader reader;
  workload::ParallelPlan plan;
  if (proto.has_tensor_parallel_size()) plan.tensor_parallel_size = proto.tensor_parallel_size();
  plan.sequence_parallel = proto.sequence_parallel();
  if (proto.has_pipeline_parallel_size()) {
    plan.pipeline_parallel_size = proto.pipeline_parallel_size();
  }
  if (proto.has_virtual_pipeline_size()) plan.virtual_pipeline_size = proto.virtual_pipeline_size();
  if (proto.has_context_parallel_size()) plan.context_parallel_size = proto.context_parallel_size();
  if (proto.has_expert_parallel_size()) plan.expert_parallel_size = proto.expert_parallel_size();
  if (proto.has_data_parallel_size()) plan.data_parallel_size = proto.data_parallel_size();
  if (proto.has_micro_batch_size()) plan.micro_batch_size = proto.micro_batch_size();
  plan.zero_stage = reader.Int("zero_stage", proto.zero_stage());
  plan.schedule = reader.Word("schedule", proto.schedule(), workload::ParsePipelineSchedule,
                              workload::PipelineSchedule::k1f1b);
  plan.recompute = reader.Word("recompute", proto.recompute(), workload::ParseRecompute,
                               workload::Recompute::kNone);
  plan.stage_split = reader.Word("stage_split", proto.stage_split(), workload::ParseStageSplit,
                                 workload::StageSplit::kEven);
  plan.stage_layer_counts.assign(proto.stage_layer_counts().begin(),
                                 proto.stage_layer_counts().end());
  plan.expert_tensor_parallel_size = proto.expert_tensor_parallel_size();
  plan.shard_group_size = proto.shard_group_size();
  plan.context_mode = reader.Word("context_mode", proto.context_mode(), workload::ParseContextMode,
                                  workload::ContextMode::kRing);
  return reader.Finish(std::move(plan));
}

types::v1::Job ToProto(const workload::Job& job) {
  types::v1::Job proto;
  *proto.mutable_model() = ToProto(job.model);
  *proto.mutable_cluster() = ToProto(job.cluster);
  proto.set_gpu_count(job.gpu_count);
  proto.set_precision(std::string(hardware::PrecisionName(job.precision)));
  if (const auto* training = std::get_if<workload::TrainingWorkload>(&job.workload)) {
    types::v1::TrainingWorkload& out = *proto.mutable_training();
    out.set_global_batch_size(training->global_batch_size);
    out.set_sequence_length(training->sequence_length);
    out.set_optimizer(std::string(workload::OptimizerName(training->optimizer)));
    out.set_lora_rank(training->lora_rank);
  } else {
    const auto& inference = std::get<workload::InferenceWorkload>(job.workload);
    types::v1::InferenceWorkload& out = *proto.mutable_inference();
    out.set_prompt_tokens(inference.prompt_tokens);
    out.set_output_tokens(inference.output_tokens);
    out.set_batch_size(inference.batch_size);
    out.set_kv_cache_precision(std::string(hardware::PrecisionName(inference.kv_cache_precision)));
    out.set_kv_cache_page_tokens(inference.kv_cache_page_tokens);
    out.set_kv_cache_capacity_tokens(inference.kv_cache_capacity_tokens);
    out.set_memory_fraction(inference.memory_fraction);
    out.mutable_speculation()->set_draft_tokens(inference.speculation.draft_tokens);
    out.mutable_speculation()->set_acceptance(inference.speculation.acceptance);
    out.mutable_speculation()->set_draft_cost(inference.speculation.draft_cost);
    if (inference.captured_graphs) out.set_captured_graphs(*inference.captured_graphs);
    out.set_background_share(inference.background_share);
  }
  FillPlan(job.plan, *proto.mutable_plan());
  if (job.serving.has_value()) *proto.mutable_serving() = ToProto(*job.serving);
  proto.set_framework(job.framework);
  for (const workload::Fault& fault : job.faults) {
    types::v1::Fault& out = *proto.add_faults();
    out.set_scope(fault.scope);
    out.set_bandwidth_fraction(fault.bandwidth_fraction);
    out.set_index(fault.index);
    out.set_slowdown(fault.slowdown);
  }
  return proto;
}

absl::StatusOr<workload::Job> FromProto(const types::v1::Job& proto) {
  Reader reader;
  workload::Job job;
  if (proto.has_model()) {
    job.model = reader.Nested("model", FromProto(proto.model()));
  } else {
    reader.Missing("model", "give a model by name, by file or as a mapping");
  }
  if (proto.has_cluster()) {
    job.cluster = reader.Nested("cluster", FromProto(proto.cluster()));
  } else {
    reader.Missing("cluster", "give a cluster by name, by file or as a mapping");
  }
  if (proto.has_gpu_count()) job.gpu_count = proto.gpu_count();
  job.precision = reader.Word("precision", proto.precision(), hardware::ParsePrecision,
                              hardware::Precision::kBf16);
  if (proto.has_serving()) job.serving = reader.Nested("serving", FromProto(proto.serving()));
  switch (proto.workload_case()) {
    case types::v1::Job::kTraining:
      job.workload = ReadTraining(reader, proto.training());
      break;
    case types::v1::Job::kInference:
      job.workload = ReadInference(reader, proto.inference());
      break;
    case types::v1::Job::WORKLOAD_NOT_SET:
      reader.Missing("training", "give the workload: training or inference");
      break;
  }
  job.plan = reader.Nested("plan", FromProto(proto.plan()));
  job.framework = proto.framework();
  for (int i = 0; i < proto.faults_size(); ++i) {
    const types::v1::Fault& fault = proto.faults(i);
    job.faults.push_back(
        {.scope = fault.scope(),
         .bandwidth_fraction =
             fault.has_bandwidth_fraction()
                 ? reader.Finite(absl::StrCat("faults[", i, "].bandwidth_fraction"),
                                 fault.bandwidth_fraction())
                 : 1,
         .index = fault.has_index() ? fault.index() : -1,
         .slowdown = fault.has_slowdown()
                         ? reader.Finite(absl::StrCat("faults[", i, "].slowdown"), fault.slowdown())
                         : 1});
  }
  return reader.Finish(std::move(job));
}

}  // namespace sextant::wire
