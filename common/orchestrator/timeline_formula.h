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

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_TIMELINE_FORMULA_H_
