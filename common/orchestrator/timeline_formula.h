// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_TIMELINE_FORMULA_H_
#define SEXTANT_COMMON_ORCHESTRATOR_TIMELINE_FORMULA_H_

#include <cstdint>
#include <vector>

#include "common/orchestrator/framework_parameters.h"
#include "common/workload/job.h"

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
  double weight_gradient_seconds = 0;  // part of matrix_seconds
  double tensor_collective_count = 0;

  void AddScaled(const PricedBlock& other, double factor) {
    matrix_seconds += factor * other.matrix_seconds;
    attention_seconds += factor * other.attention_seconds;
    memory_bound_seconds += factor * other.memory_bound_seconds;
    tensor_parallel_seconds += factor * other.tensor_parallel_seconds;
    context_parallel_seconds += factor * other.context_parallel_seconds;
    expert_parallel_seconds += factor * other.expert_parallel_seconds;
    sharded_data_seconds += factor * other.sharded_data_seconds;
    kernel_count += factor * other.kernel_count;
    weight_gradient_seconds += factor * other.weight_gradient_seconds;
    tensor_collective_count += factor * other.tensor_collective_count;
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
  double slowdown = 1;  // kernel time of its slowest rank over a healthy one's
};

struct PricedTraining {
  std::vector<PricedStage> stages;
  double send_seconds = 0;  // of one micro-batch on one rank
  double tied_embedding_seconds = 0;
  int64_t micro_batch_count = 1;
  int64_t virtual_pipeline_size = 1;
  workload::PipelineSchedule schedule = workload::PipelineSchedule::k1f1b;
  // Ranks of a tensor parallel group in a pipelined job over several nodes; otherwise 0.
  double host_bound_group_size = 0;
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

template <typename T>
T AttentionSlowdown(const TrainingParameters<T>& p) {
  return p.attention_slowdown;
}
template <typename T>
T AttentionSlowdown(const InferenceParameters<T>&) {
  return T(1);
}

template <typename T, typename Parameters>
ComputeTimes<T> BlockCompute(const PricedBlock& block, const Parameters& p) {
  ComputeTimes<T> times{
      .matrix = block.matrix_seconds * p.compute_slowdown,
      .attention = block.attention_seconds * p.compute_slowdown * AttentionSlowdown(p),
      .memory_bound = block.memory_bound_seconds * p.memory_pass_factor,
      .dispatch_excess = T(0)};
  times.dispatch_excess = Larger(T(block.kernel_count * p.dispatch_seconds - times.Device()), T(0));
  return times;
}

// One micro-batch on one rank of a stage, without sends.
template <typename T>
TrainingTimes<T> StageMicroBatch(const PricedTraining& job, const PricedStage& stage,
                                 const TrainingParameters<T>& p) {
  TrainingTimes<T> times;
  const double slow = stage.slowdown;
  times.framework = T(p.micro_batch_seconds);
  for (const PricedBlock* block : {&stage.forward, &stage.backward, &stage.recompute}) {
    const ComputeTimes<T> compute = BlockCompute<T>(*block, p);
    if (block == &stage.recompute) {
      times.recompute += compute.Device() * slow;
    } else {
      times.matrix_multiply += compute.matrix * slow;
      times.attention += compute.attention * slow;
      times.memory_bound += compute.memory_bound * slow;
    }
    const T window = (compute.matrix + compute.attention) * slow;
    const T tensor =
        ExposedSeconds(T(block->tensor_parallel_seconds), p.tensor_parallel_hidden, window);
    // The ring exchange of keys and values runs behind the attention of the piece at hand.
    const T context =
        ExposedSeconds(T(block->context_parallel_seconds), T(1), T(compute.attention * slow));
    const T sharded =
        ExposedSeconds(T(block->sharded_data_seconds), p.data_parallel_hidden, window);
    // DualPipe runs the exchange of one direction's tokens behind the other direction's compute.
    const bool dual = job.schedule == workload::PipelineSchedule::kDualPipe;
    const T expert = ExposedSeconds(T(block->expert_parallel_seconds), T(dual ? 1.0 : 0.0), window);
    times.tensor_parallel_exposed += tensor;
    times.context_parallel_exposed += context;
    times.data_parallel_exposed += sharded;
    times.expert_parallel_exposed += expert;
    // The host issues kernels and collectives while the device works on earlier ones.
    const T host = block->kernel_count * p.dispatch_seconds + block->tensor_collective_count *
                                                                  job.host_bound_group_size *
                                                                  p.collective_host_seconds;
    const T device = compute.Device() * slow + tensor + context + sharded + expert;
    times.framework += Larger(T(host - device), T(0));
  }
  return times;
}

// Work of a stage that a pipeline waits for at the start and the end of a step, per stage that is
// not the slowest. 1F1B and GPipe: forward and backward, F + B. Interleaving divides it by the
// chunks (Narayanan et al. 2021, section 2.2). Zero bubble (Qi et al. 2023, section 2), W the part
// of B that is weight gradients: F + B - 2 W for H1 and F + B - 3 W for H2. DualPipe of p ranks
// (DeepSeek-V3 2024, table 2): (p / 2 - 1)(F&B + B - 3 W) in all. None is below zero.
template <typename T>
T BubbleSeconds(const PricedTraining& job, const PricedStage& stage,
                const TrainingTimes<T>& micro_batch, const TrainingParameters<T>& p) {
  const T total = micro_batch.Total();
  const T weight = stage.backward.weight_gradient_seconds * p.compute_slowdown * stage.slowdown;
  switch (job.schedule) {
    case workload::PipelineSchedule::kZeroBubbleH1:
      return Larger(T(total - 2.0 * weight), T(0));
    case workload::PipelineSchedule::kZeroBubbleH2:
      return Larger(T(total - 3.0 * weight), T(0));
    case workload::PipelineSchedule::kDualPipe: {
      // The backward pass in proportion to its kernels.
      const T forward = BlockCompute<T>(stage.forward, p).Device() * stage.slowdown;
      double ranks = 0;
      for (const PricedStage& other : job.stages) ranks += static_cast<double>(other.rank_count);
      const double share = ranks > 2 ? (ranks / 2 - 1) / (ranks - 1) : 0;
      return Larger(T(total + (total - forward) - 3.0 * weight), T(0)) * share;
    }
    default:
      return total / static_cast<double>(job.virtual_pipeline_size);
  }
}

// Share of pipeline sends that runs behind compute: of an interleaved schedule as the framework
// does it, of DualPipe all.
template <typename T>
T ExposedSend(const PricedTraining& job, const TrainingParameters<T>& p) {
  if (job.schedule == workload::PipelineSchedule::kDualPipe) return T(0);
  const T hidden = job.virtual_pipeline_size > 1 ? p.pipeline_send_hidden : T(0);
  return job.send_seconds * (1.0 - hidden);
}

// One optimizer step: the slowest stage works through all micro-batches while the others wait for
// it, filled and drained by BubbleSeconds of each other stage. O(stage classes).
template <typename T>
TrainingTimes<T> TrainingStep(const PricedTraining& job, const TrainingParameters<T>& p) {
  TrainingTimes<T> pace;
  T pace_total(0);
  T pace_bubble(0);
  T all_bubbles(0);
  T end_exposed(0);
  T end_optimizer(0);
  for (const PricedStage& stage : job.stages) {
    TrainingTimes<T> times = StageMicroBatch(job, stage, p);
    times.pipeline_send = ExposedSend(job, p);
    const T total = times.Total();
    const T bubble = BubbleSeconds(job, stage, times, p);
    all_bubbles += bubble * static_cast<double>(stage.rank_count);
    if (total > pace_total) {
      pace = times;
      pace_total = total;
      pace_bubble = bubble;
    }
    // Gradients of one micro-batch's backward pass are what a reduction can run behind.
    const T exposed = ExposedSeconds(T(stage.reduce_seconds), p.data_parallel_hidden,
                                     T(BlockCompute<T>(stage.backward, p).Total() +
                                       BlockCompute<T>(stage.recompute, p).Total()));
    const T optimizer = stage.optimizer_seconds * p.memory_pass_factor * stage.slowdown;
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
  step.pipeline_bubble = all_bubbles - pace_bubble;
  step.data_parallel_exposed =
      pace.data_parallel_exposed * m + end_exposed + job.tied_embedding_seconds;
  step.optimizer = end_optimizer;
  step.framework = pace.framework * m + p.step_seconds;
  return step;
}

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_TIMELINE_FORMULA_H_
