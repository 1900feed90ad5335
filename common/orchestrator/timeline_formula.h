// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_TIMELINE_FORMULA_H_
#define SEXTANT_COMMON_ORCHESTRATOR_TIMELINE_FORMULA_H_

#include <cstdint>
#include <vector>

#include "common/orchestrator/framework_parameters.h"

// How priced work lies on a timeline. Templates on the scalar: double serves, ceres::Jet fits.
// Kinks: host dispatch against device time, communication against what hides it, the slowest stage.
namespace sextant::orchestrator {

// Times of a block's kernels and collectives alone, as the ports answered.
struct PricedBlock {
  double matrix_seconds = 0;
  double attention_seconds = 0;
  double memory_bound_seconds = 0;
  double tensor_parallel_seconds = 0;
  double context_parallel_seconds = 0;
  double expert_parallel_seconds = 0;
  double sharded_data_seconds = 0;
  double kernel_count = 0;

  void AddScaled(const PricedBlock& other, double factor) {
    matrix_seconds += factor * other.matrix_seconds;
    attention_seconds += factor * other.attention_seconds;
    memory_bound_seconds += factor * other.memory_bound_seconds;
    tensor_parallel_seconds += factor * other.tensor_parallel_seconds;
    context_parallel_seconds += factor * other.context_parallel_seconds;
    expert_parallel_seconds += factor * other.expert_parallel_seconds;
    sharded_data_seconds += factor * other.sharded_data_seconds;
    kernel_count += factor * other.kernel_count;
  }
};

// One class of pipeline ranks: a micro-batch through all of its chunks, and its end of a step.
struct PricedStage {
  int64_t rank_count = 1;
  PricedBlock forward;
  PricedBlock backward;
  PricedBlock recompute;
  double reduce_seconds = 0;
  double optimizer_seconds = 0;
};

struct PricedTraining {
  std::vector<PricedStage> stages;
  double send_seconds = 0;  // of one micro-batch on one rank
  double tied_embedding_seconds = 0;
  int64_t micro_batch_count = 1;
  int64_t virtual_pipeline_size = 1;
};

// Parts that sum to Total().
template <typename T>
struct TrainingTimes {
  T matrix_multiply = T(0);
  T attention = T(0);
  T memory_bound = T(0);
  T recompute = T(0);
  T tensor_parallel_exposed = T(0);
  T context_parallel_exposed = T(0);
  T expert_parallel_exposed = T(0);
  T pipeline_send = T(0);
  T pipeline_bubble = T(0);
  T data_parallel_exposed = T(0);
  T optimizer = T(0);
  T framework = T(0);

  T Total() const {
    return matrix_multiply + attention + memory_bound + recompute + tensor_parallel_exposed +
           context_parallel_exposed + expert_parallel_exposed + pipeline_send + pipeline_bubble +
           data_parallel_exposed + optimizer + framework;
  }
};

template <typename T>
T Larger(const T& a, const T& b) {
  return a > b ? a : b;
}
template <typename T>
T Smaller(const T& a, const T& b) {
  return a < b ? a : b;
}

// What is left of `communication` when a share of it may run behind `window`. Never negative.
template <typename T>
T ExposedSeconds(const T& communication, const T& hidden_share, const T& window) {
  return communication - Smaller(T(hidden_share * communication), window);
}

template <typename T>
struct ComputeTimes {
  T matrix;
  T attention;
  T memory_bound;
  T dispatch_excess;  // host time that the device waits for

  T Device() const { return matrix + attention + memory_bound; }
  T Total() const { return Device() + dispatch_excess; }
};

template <typename T, typename Parameters>
ComputeTimes<T> BlockCompute(const PricedBlock& block, const Parameters& p) {
  ComputeTimes<T> times{.matrix = block.matrix_seconds * p.compute_slowdown,
                        .attention = block.attention_seconds * p.compute_slowdown,
                        .memory_bound = block.memory_bound_seconds * p.memory_pass_factor,
                        .dispatch_excess = T(0)};
  times.dispatch_excess = Larger(T(block.kernel_count * p.dispatch_seconds - times.Device()), T(0));
  return times;
}

// One micro-batch on one rank of a stage, without sends.
template <typename T>
TrainingTimes<T> StageMicroBatch(const PricedStage& stage, const TrainingParameters<T>& p) {
  TrainingTimes<T> times;
  const ComputeTimes<T> forward = BlockCompute<T>(stage.forward, p);
  const ComputeTimes<T> backward = BlockCompute<T>(stage.backward, p);
  const ComputeTimes<T> recompute = BlockCompute<T>(stage.recompute, p);
  times.matrix_multiply = forward.matrix + backward.matrix;
  times.attention = forward.attention + backward.attention;
  times.memory_bound = forward.memory_bound + backward.memory_bound;
  times.recompute = recompute.Device();
  times.framework = forward.dispatch_excess + backward.dispatch_excess + recompute.dispatch_excess +
                    p.micro_batch_seconds;
  for (const PricedBlock* block : {&stage.forward, &stage.backward, &stage.recompute}) {
    const T compute = (block->matrix_seconds + block->attention_seconds) * p.compute_slowdown;
    times.tensor_parallel_exposed +=
        ExposedSeconds(T(block->tensor_parallel_seconds), p.tensor_parallel_hidden, compute);
    // The ring exchange of keys and values runs behind the attention of the piece at hand.
    times.context_parallel_exposed += ExposedSeconds(
        T(block->context_parallel_seconds), T(1), T(block->attention_seconds * p.compute_slowdown));
    times.expert_parallel_exposed += T(block->expert_parallel_seconds);
    times.data_parallel_exposed +=
        ExposedSeconds(T(block->sharded_data_seconds), p.data_parallel_hidden, compute);
  }
  return times;
}

// One optimizer step. GPipe, 1F1B and interleaved 1F1B take equally long but for the bubble, which
// interleaving divides by the number of chunks (Narayanan et al. 2021, section 2.2); a pipeline of
// unequal stages runs at the pace of its slowest. O(stage classes).
template <typename T>
TrainingTimes<T> TrainingStep(const PricedTraining& job, const TrainingParameters<T>& p) {
  TrainingTimes<T> pace;
  T pace_total(0);
  T all_stages(0);
  T end_exposed(0);
  T end_optimizer(0);
  for (const PricedStage& stage : job.stages) {
    TrainingTimes<T> times = StageMicroBatch(stage, p);
    times.pipeline_send = T(job.send_seconds);
    const T total = times.Total();
    all_stages += total * static_cast<double>(stage.rank_count);
    if (total > pace_total) {
      pace = times;
      pace_total = total;
    }
    // Gradients of one micro-batch's backward pass are what a reduction can run behind.
    const T exposed = ExposedSeconds(T(stage.reduce_seconds), p.data_parallel_hidden,
                                     T(BlockCompute<T>(stage.backward, p).Total() +
                                       BlockCompute<T>(stage.recompute, p).Total()));
    const T optimizer = stage.optimizer_seconds * p.memory_pass_factor;
    if (exposed + optimizer > end_exposed + end_optimizer) {
      end_exposed = exposed;
      end_optimizer = optimizer;
    }
  }
  const double m = static_cast<double>(job.micro_batch_count);
  TrainingTimes<T> step;
  step.matrix_multiply = pace.matrix_multiply * m;
  step.attention = pace.attention * m;
  step.memory_bound = pace.memory_bound * m;
  step.recompute = pace.recompute * m;
  step.tensor_parallel_exposed = pace.tensor_parallel_exposed * m;
  step.context_parallel_exposed = pace.context_parallel_exposed * m;
  step.expert_parallel_exposed = pace.expert_parallel_exposed * m;
  step.pipeline_send = pace.pipeline_send * m;
  step.pipeline_bubble = (all_stages - pace_total) / static_cast<double>(job.virtual_pipeline_size);
  step.data_parallel_exposed =
      pace.data_parallel_exposed * m + end_exposed + job.tied_embedding_seconds;
  step.optimizer = end_optimizer;
  step.framework = pace.framework * m + p.step_seconds;
  return step;
}

// Attention of one decode step, over all layers, at one context length.
struct PricedContext {
  int64_t context_tokens = 0;
  double attention_seconds = 0;
};
struct PricedInference {
  PricedBlock prefill;  // all stages one after another, head included
  PricedBlock decode;   // one step without the attention core, head included
  double prefill_send_seconds = 0;
  double decode_send_seconds = 0;
  std::vector<PricedContext> contexts;  // increasing
  int64_t decode_step_count = 0;
  int64_t sequence_count = 1;
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
};

template <typename T>
InferenceTimes<T> InferencePass(const PricedBlock& block, double send_seconds,
                                const T& engine_seconds, const InferenceParameters<T>& p) {
  const ComputeTimes<T> compute = BlockCompute<T>(block, p);
  InferenceTimes<T> times;
  times.matrix_multiply = compute.matrix;
  times.attention = compute.attention;
  times.memory_bound = compute.memory_bound;
  times.tensor_parallel_exposed = block.tensor_parallel_seconds * p.tensor_parallel_factor;
  times.expert_parallel_exposed = T(block.expert_parallel_seconds);
  times.pipeline_send = T(send_seconds);
  times.framework = compute.dispatch_excess + engine_seconds;
  return times;
}

// Time to the first token.
template <typename T>
InferenceTimes<T> PrefillTimes(const PricedInference& job, const InferenceParameters<T>& p) {
  return InferencePass(job.prefill, job.prefill_send_seconds, p.prefill_seconds, p);
}

// All decode steps. Attention is a straight line between two context points, and summed exactly
// over the steps between them. Zero without decode steps.
template <typename T>
InferenceTimes<T> DecodeTimes(const PricedInference& job, const InferenceParameters<T>& p) {
  InferenceTimes<T> all;
  if (job.decode_step_count == 0 || job.contexts.empty()) return all;
  double attention_sum = 0;
  if (job.contexts.size() == 1) {
    attention_sum = job.contexts[0].attention_seconds * static_cast<double>(job.decode_step_count);
  }
  for (size_t i = 0; i + 1 < job.contexts.size(); ++i) {
    const PricedContext& a = job.contexts[i];
    const PricedContext& b = job.contexts[i + 1];
    const double count = static_cast<double>(b.context_tokens - a.context_tokens + 1);
    attention_sum += count * (a.attention_seconds + b.attention_seconds) / 2;
    if (i > 0) attention_sum -= a.attention_seconds;  // counted by the piece before
  }
  PricedBlock mean = job.decode;
  mean.attention_seconds += attention_sum / static_cast<double>(job.decode_step_count);
  all = InferencePass(
      mean, job.decode_send_seconds,
      T(p.step_seconds + p.sequence_seconds * static_cast<double>(job.sequence_count)), p);
  const double steps = static_cast<double>(job.decode_step_count);
  all.matrix_multiply = all.matrix_multiply * steps;
  all.attention = all.attention * steps;
  all.memory_bound = all.memory_bound * steps;
  all.tensor_parallel_exposed = all.tensor_parallel_exposed * steps;
  all.expert_parallel_exposed = all.expert_parallel_exposed * steps;
  all.pipeline_send = all.pipeline_send * steps;
  all.framework = all.framework * steps;
  return all;
}

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_TIMELINE_FORMULA_H_
