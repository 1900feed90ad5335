// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_INFERENCE_FORMULA_H_
#define SEXTANT_COMMON_ORCHESTRATOR_INFERENCE_FORMULA_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/timeline_formula.h"

// How priced prefill and decode passes of one static batch lie on a timeline. Templates on the
// scalar: double serves, ceres::Jet fits. Kinks: host dispatch against device time, the first stage
// against the last micro-batch.
namespace sextant::orchestrator {

// Attention of one decode step, over all layers, at one context length.
struct PricedContext {
  int64_t context_tokens = 0;
  double attention_seconds = 0;
};

// Passes are of one micro-batch: what a pipelined engine splits a batch into.
struct PricedInference {
  PricedBlock prefill;  // all stages one after another, head included
  PricedBlock decode;   // one step without the attention core, head included
  double prefill_send_seconds = 0;
  double decode_send_seconds = 0;
  std::vector<PricedContext> contexts;  // increasing
  int64_t decode_step_count = 0;  // tokens after the first
  int64_t sequence_count = 1;  // of the whole batch on one replica
  int64_t prefill_micro_batch_count = 1;
  int64_t decode_micro_batch_count = 1;
  double prefill_tokens = 0;       // of one micro-batch
  double slowest_stage_share = 1;  // of a pass through all pipeline stages
  double tokens_per_step = 1;      // that a step yields in the mean
  double step_over_pass = 1;       // with the drafts that its pass checks
};

// Parts that sum to Total().
template <typename T>
struct InferenceTimes {
  T matrix_multiply = T(0);
  T attention = T(0);
  T memory_bound = T(0);
  T tensor_parallel_exposed = T(0);
  T expert_parallel_exposed = T(0);
  T pipeline_send = T(0);
  T framework = T(0);

  T Total() const {
    return matrix_multiply + attention + memory_bound + tensor_parallel_exposed +
           expert_parallel_exposed + pipeline_send + framework;
  }
  void Add(const InferenceTimes& other) {
    matrix_multiply += other.matrix_multiply;
    attention += other.attention;
    memory_bound += other.memory_bound;
    tensor_parallel_exposed += other.tensor_parallel_exposed;
    expert_parallel_exposed += other.expert_parallel_exposed;
    pipeline_send += other.pipeline_send;
    framework += other.framework;
  }
  void Scale(double factor) {
    matrix_multiply = matrix_multiply * factor;
    attention = attention * factor;
    memory_bound = memory_bound * factor;
    tensor_parallel_exposed = tensor_parallel_exposed * factor;
    expert_parallel_exposed = expert_parallel_exposed * factor;
    pipeline_send = pipeline_send * factor;
    framework = framework * factor;
  }
};

// One micro-batch through all stages, without what the engine adds once per step.
template <typename T>
InferenceTimes<T> InferencePass(const PricedBlock& block, double send_seconds,
                                const InferenceParameters<T>& p) {
  InferenceTimes<T> times;
  times.matrix_multiply = T(block.matrix_seconds);
  times.attention = T(block.attention_seconds);
  times.memory_bound = T(block.memory_bound_seconds);
  times.tensor_parallel_exposed = block.tensor_parallel_seconds * p.tensor_parallel_factor;
  times.expert_parallel_exposed = T(block.expert_parallel_seconds);
  times.pipeline_send = T(send_seconds);
  const double device = block.matrix_seconds + block.attention_seconds + block.memory_bound_seconds;
  times.framework = Larger(T(block.kernel_count * p.dispatch_seconds - device), T(0));
  return times;
}

// Time to the first token. Micro-batches follow one another through the stages: the first takes a
// whole pass, each further one the slowest stage's time.
template <typename T>
InferenceTimes<T> PrefillTimes(const PricedInference& job, const InferenceParameters<T>& p) {
  InferenceTimes<T> times = InferencePass(job.prefill, job.prefill_send_seconds, p);
  const double passes = static_cast<double>(job.prefill_micro_batch_count);
  times.Scale(1 + (passes - 1) * job.slowest_stage_share);
  const T beyond = Larger(T(job.prefill_tokens - p.pass_tokens), T(0));
  times.framework += p.prefill_seconds + p.prompt_token_seconds * passes * beyond;
  return times;
}

// Attention of the mean decode step. It is a straight line between two context points, and summed
// exactly over the steps between them. O(contexts).
inline double MeanDecodeAttentionSeconds(const PricedInference& job) {
  if (job.contexts.size() == 1) return job.contexts[0].attention_seconds;
  double sum = 0;
  for (size_t i = 0; i + 1 < job.contexts.size(); ++i) {
    const PricedContext& a = job.contexts[i];
    const PricedContext& b = job.contexts[i + 1];
    const double count = static_cast<double>(b.context_tokens - a.context_tokens + 1);
    sum += count * (a.attention_seconds + b.attention_seconds) / 2;
    if (i > 0) sum -= a.attention_seconds;  // counted by the piece before
  }
  return sum / static_cast<double>(job.decode_step_count);
}

// All decode steps. With fewer micro-batches than stages a token waits for its own pass, with more
// the slowest stage is always busy. Zero without decode steps.
template <typename T>
InferenceTimes<T> DecodeTimes(const PricedInference& job, const InferenceParameters<T>& p) {
  if (job.decode_step_count == 0 || job.contexts.empty()) return {};
  PricedBlock mean = job.decode;
  mean.attention_seconds += MeanDecodeAttentionSeconds(job);
  InferenceTimes<T> times = InferencePass(mean, job.decode_send_seconds, p);
  times.Scale(
      std::max(1.0, static_cast<double>(job.decode_micro_batch_count) * job.slowest_stage_share));
  times.Scale(job.step_over_pass);
  times.framework += p.step_seconds + p.sequence_seconds * static_cast<double>(job.sequence_count);
  times.Scale(static_cast<double>(job.decode_step_count) / job.tokens_per_step);
  return times;
}

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_INFERENCE_FORMULA_H_
