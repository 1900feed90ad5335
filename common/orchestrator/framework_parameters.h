// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_FRAMEWORK_PARAMETERS_H_
#define SEXTANT_COMMON_ORCHESTRATOR_FRAMEWORK_PARAMETERS_H_

#include <array>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/hardware/accelerator.h"
#include "common/parameters/parameter_descriptor.h"
#include "common/parameters/parameter_set.h"
#include "common/parameters/spread.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// What a training framework adds to the time of its kernels. Members in descriptor order.
template <typename T>
struct TrainingParameters {
  T step_seconds;
  T micro_batch_seconds;
  T dispatch_seconds;
  T compute_slowdown;
  T memory_pass_factor;
  T tensor_parallel_hidden;
  T data_parallel_hidden;
  T collective_host_seconds;
  T attention_slowdown;
  T fused_attention;
  T loss_pass_factor;
  T fused_gradient_sum;
  T pipeline_send_hidden;
  T pipeline_send_split;
  T shard_messages_per_layer;
  T reduce_bucket_bytes;
  T node_level_dispatch;

  static TrainingParameters FromArray(const T* v) {
    return {v[0], v[1],  v[2],  v[3],  v[4],  v[5],  v[6],  v[7], v[8],
            v[9], v[10], v[11], v[12], v[13], v[14], v[15], v[16]};
  }
};
inline constexpr absl::string_view kTrainingBlock = "training";
// The first eight are fitted; the rest are facts about a framework's code, held in a fit.
inline constexpr size_t kFittedTrainingParameters = 8;
inline constexpr std::array<parameters::ParameterDescriptor, 17> kTrainingDescriptors = {{
    {"step_seconds", 0.01, 0, 10,
     "Host time of one optimizer step outside all kernels (data loading, logging), seconds"},
    {"micro_batch_seconds", 1e-3, 0, 1,
     "Host time of one micro-batch on one pipeline rank that no kernel hides, seconds"},
    {"dispatch_seconds", 4e-6, 0, 1e-3,
     "Host time to issue one kernel; a stream costs the larger of dispatch and device, seconds"},
    {"compute_slowdown", 1, 1, 2,
     "Kernel time inside a long run over its time alone (power-capped clocks, cold caches)"},
    {"memory_pass_factor", 1, 0.2, 6,
     "Memory traffic of the framework's element-wise work over that of the fused kernels"},
    {"tensor_parallel_hidden", 0.1, 0, 1,
     "Share of tensor parallel communication that runs behind compute"},
    {"data_parallel_hidden", 0.5, 0, 1,
     "Share of data parallel communication that may run behind the backward pass"},
    {"collective_host_seconds", 0, 0, 1e-2,
     "Host time that each tensor parallel collective adds per rank of its group in a pipelined job "
     "over several nodes, seconds"},
    {"attention_slowdown", 1, 0.5, 6,
     "Attention kernels of the framework over the accelerator's fitted ones (older generations)"},
    {"fused_attention", 1, 0, 1,
     "1: attention is one FlashAttention kernel; 0: separate scores, softmax and context kernels"},
    {"loss_pass_factor", 1, 1, 16,
     "Memory traffic of the framework's cross-entropy over that of one fused kernel"},
    {"fused_gradient_sum", 1, 0, 1,
     "1: weight gradients of micro-batches are summed inside the matrix kernels; 0: by kernels of "
     "their own"},
    {"pipeline_send_hidden", 0, 0, 1,
     "Share of pipeline sends of an interleaved schedule that runs behind compute"},
    {"pipeline_send_split", 1, 0, 1,
     "0: where ZeRO shards, each tensor parallel rank sends a whole activation; 1: its part of it"},
    {"shard_messages_per_layer", 0, 0, 64,
     "Messages per layer in which ZeRO-1 and 2 exchange gradients and weights; 0: one for all"},
    {"reduce_bucket_bytes", 0, 0, 1e12,
     "Bytes of one message in which gradients are all-reduced without ZeRO; 0: one for all"},
    {"node_level_dispatch", 0, 0, 1,
     "1: a token goes to each node of its experts once and spreads inside it; 0: once per expert"},
}};

// What an inference engine adds to the time of its kernels.
template <typename T>
struct InferenceParameters {
  T step_seconds;
  T prefill_seconds;
  T prompt_token_seconds;
  T sequence_seconds;
  T dispatch_seconds;
  T pass_tokens;
  T tensor_parallel_factor;
  T fused_attention;
  T vector_attention_share;
  T matrix_attention_group;
  T eager_dispatch_seconds;

  static InferenceParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]};
  }
};
inline constexpr absl::string_view kInferenceBlock = "inference";
inline constexpr size_t kDispatchParameter = 4;  // of kInferenceDescriptors
inline constexpr std::array<parameters::ParameterDescriptor, 11> kInferenceDescriptors = {{
    {"step_seconds", 5e-4, 0, 1, "Engine time of one decode step outside all kernels, seconds"},
    {"prefill_seconds", 2e-3, 0, 1, "Engine time of one prefill outside all kernels, seconds"},
    {"prompt_token_seconds", 0, 0, 1e-3,
     "Engine time of a prefill for each prompt token of a pass beyond pass_tokens (buffers that "
     "the "
     "allocator fetches anew), whatever the tensor parallel size, seconds"},
    // Unmeasured engines in Python: vLLM 0.5 spent 29 % of its time scheduling and preparing inputs
    // beside 38 % on the GPU with Llama-3-8B on one H100 under a saturating load (vLLM blog,
    // "vLLM v0.6.0", September 2024): some 7 ms a step of 256 sequences.
    {"sequence_seconds", 3e-5, 0, 1e-2,
     "Engine time of one decode step for each sequence of the batch, seconds"},
    {"dispatch_seconds", 1e-6, 0, 1e-3,
     "Host time to issue one kernel (near 0 with captured graphs), seconds"},
    {"pass_tokens", 2048, 128, 1e6,
     "Prompt tokens that the engine sizes a pass for: a pipelined engine splits larger batches "
     "(2048: vLLM's max_num_batched_tokens, FasterTransformer's local batch)"},
    {"tensor_parallel_factor", 1, 0.2, 4,
     "Time of the engine's tensor parallel collectives over that of NCCL (below 1: custom "
     "all-reduce or overlap)"},
    {"fused_attention", 1, 0, 1,
     "1: prefill attention is one FlashAttention kernel; 0: separate kernels"},
    {"vector_attention_share", 0, 0, 1,
     "Share of the vector rate at which decode attention multiplies query head by query head; 0: "
     "heads of a group together on matrix units"},
    {"matrix_attention_group", 0, 0, 128,
     "Query heads of a key head for which such an engine uses matrix units all the same; 0: none"},
    // What fits vLLM of 2023 (splitwise), which captured none: 23 us on H100 hosts, 37 us on A100.
    {"eager_dispatch_seconds", 2.5e-5, 0, 1e-3,
     "Host time to issue one kernel where a job asks for steps without captured graphs, seconds"},
}};

// What a framework holds beside what the model needs.
template <typename T>
struct MemoryParameters {
  T context_bytes;
  T workspace_bytes;
  T activation_factor;
  T gradient_bytes;
  T logits_bytes;
  T fragmentation;
  T inference_memory_fraction;
  T shard_buffer_bytes;

  static MemoryParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
  }
};
inline constexpr absl::string_view kMemoryBlock = "memory";
inline constexpr std::array<parameters::ParameterDescriptor, 8> kMemoryDescriptors = {{
    {"context_bytes", 1.5e9, 0, 8e9,
     "Held outside the allocator: CUDA context, kernels, NCCL channels, bytes"},
    {"workspace_bytes", 0.5e9, 0, 8e9,
     "Allocated on every rank whatever the model: cuBLAS and communication workspaces, bytes"},
    {"activation_factor", 1, 0.5, 4,
     "Saved activations over those of Korthikanti et al. 2022, equation 2 and its variants"},
    {"gradient_bytes", 4, 0, 8, "Bytes of gradient buffers per trained parameter of a rank"},
    {"logits_bytes", 6, 2, 20, "Peak bytes per logit of one micro-batch on the last stage"},
    {"fragmentation", 0.04, 0, 0.5,
     "Device memory that the caching allocator cannot use, over what is allocated"},
    {"inference_memory_fraction", 0.9, 0.3, 1,
     "Share of device memory that an engine gives to weights, activations and KV cache"},
    {"shard_buffer_bytes", 0, 0, 8,
     "Bytes of exchange buffers per trained parameter of a rank under ZeRO-1 and 2"},
}};

// How an engine plans its steps where a job does not say.
template <typename T>
struct SchedulerParameters {
  T max_batch_tokens;
  T max_batch_sequences;
  T chunked_prefill;
  T prefill_first;

  static SchedulerParameters FromArray(const T* v) { return {v[0], v[1], v[2], v[3]}; }
};
inline constexpr absl::string_view kSchedulerBlock = "scheduler";
inline constexpr std::array<parameters::ParameterDescriptor, 4> kSchedulerDescriptors = {{
    {"max_batch_tokens", 8192, 1, 16777216, "Tokens of one engine step (vLLM on H100, TRT-LLM)"},
    {"max_batch_sequences", 256, 1, 1048576, "Sequences of one engine step"},
    {"chunked_prefill", 1, 0, 1, "1: prompts are cut to the step's budget; 0: in one piece"},
    {"prefill_first", 0, 0, 1, "1: decode waits while prompts are at hand; 0: both share steps"},
}};

// Answers with an interval of their own: a training step, and one whose tensor parallel groups span
// nodes (contention that no fabric states makes most of these several times longer); a batch of
// requests without queueing; a run of requests under a serving load. The order is that of kAnswers.
enum class Answer : int {
  kTrainingStep,
  kTrainingStepTensorAcrossNodes,
  kBatchFirstToken,
  kBatchNextToken,
  kBatch,
  kServingFirstToken,
  kServingNextToken,
  kServingRun,
};
// The block of its spread, and the spread where nobody measured the software. Those were set by
// hand after a look at published numbers of frameworks and engines that were not fitted (fit and
// validate rows alike): they run longer rather than shorter than what their kernels need, and
// queues amplify what is wrong with a step.
struct AnswerDescriptor {
  absl::string_view block;
  parameters::Spread unmeasured;
};
inline constexpr std::array<AnswerDescriptor, 8> kAnswers = {{
    {"training.step", {-0.25, 0.45}},
    {"training.step_tensor_across_nodes", {-0.25, 1.5}},
    {"batch.first_token", {-0.3, 0.4}},
    {"batch.next_token", {-0.25, 0.35}},
    {"batch.total", {-0.25, 0.4}},
    {"serving.first_token", {-0.6, 1.0}},
    {"serving.next_token", {-0.3, 0.3}},
    {"serving.total", {-0.35, 0.45}},
}};
inline constexpr size_t kAnswerCount = kAnswers.size();

// Which answer the total of a valid `job` is.
Answer TotalAnswer(const workload::Job& job);

// Everything fitted that the orchestrator itself uses.
template <typename T>
struct FrameworkParameters {
  TrainingParameters<T> training;
  InferenceParameters<T> inference;
  MemoryParameters<T> memory;
  SchedulerParameters<T> scheduler;
  std::array<parameters::Spread, kAnswerCount> spread;
  bool transferred = false;  // from another accelerator, or nothing was fitted

  const parameters::Spread& SpreadOf(Answer answer) const {
    return spread[static_cast<size_t>(answer)];
  }
};

// The values for (accelerator, profile): the profile's, else the accelerator's shared ones, else
// its donor's, else the descriptors' initial ones. O(parameters x log set).
FrameworkParameters<double> ResolveFrameworkParameters(const parameters::ParameterSet& set,
                                                       const hardware::Accelerator& accelerator,
                                                       absl::string_view profile);

// Profiles of `accelerator` with at least one such value, sorted: frameworks and engines, not
// kernel libraries.
std::vector<std::string> FrameworkProfiles(const parameters::ParameterSet& set,
                                           absl::string_view accelerator);

// Those of a job's accelerator and framework, with what the job itself says of its steps.
FrameworkParameters<double> ParametersOf(const parameters::ParameterSet& set,
                                         const workload::Job& job);

// Every parameter of this room under its full key, for ValidateParameterSet.
std::vector<parameters::KeyedDescriptor> FrameworkDescriptors();

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_FRAMEWORK_PARAMETERS_H_
