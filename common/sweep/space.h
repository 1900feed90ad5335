// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_SPACE_H_
#define SEXTANT_COMMON_SWEEP_SPACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/workload/job.h"

namespace sextant::sweep {

// Values that one dimension of the plan may take. Neither `all` nor values: the base job's value.
struct Choice {
  bool all = false;  // every legal value
  std::vector<int64_t> values;

  bool IsFixed() const { return !all && values.empty(); }
  friend bool operator==(const Choice&, const Choice&) = default;
};

// What a plan may be. Words and flags are choices of their numbers (schedule, recompute as the
// enumerators; sequence_parallel 0 or 1). `all` means:
//   tensor, pipeline, context, data parallel: every factorisation of the GPU count that the model
//     and the sequence allow (uneven stages included)
//   virtual_pipeline: chunk counts that divide the layers evenly
//   expert_parallel: divisors of the experts that divide the ranks they lie in
//   micro_batch: divisors of what one replica gets of the batch
//   zero_stage 0..3; sequence_parallel 0, 1; schedule; recompute: every word
struct PlanSpace {
  Choice tensor_parallel_size;
  Choice pipeline_parallel_size;
  Choice virtual_pipeline_size;
  Choice context_parallel_size;
  Choice expert_parallel_size;
  Choice data_parallel_size;  // fixed means: what makes the sizes multiply to the GPU count
  Choice micro_batch_size;
  Choice zero_stage;
  Choice sequence_parallel;
  Choice schedule;
  Choice recompute;

  friend bool operator==(const PlanSpace&, const PlanSpace&) = default;
};

// The dimensions under their names in ParallelPlan, in the order above.
struct PlanDimension {
  absl::string_view name;
  Choice PlanSpace::*choice;
};
inline constexpr PlanDimension kPlanDimensions[] = {
    {"tensor_parallel_size", &PlanSpace::tensor_parallel_size},
    {"pipeline_parallel_size", &PlanSpace::pipeline_parallel_size},
    {"virtual_pipeline_size", &PlanSpace::virtual_pipeline_size},
    {"context_parallel_size", &PlanSpace::context_parallel_size},
    {"expert_parallel_size", &PlanSpace::expert_parallel_size},
    {"data_parallel_size", &PlanSpace::data_parallel_size},
    {"micro_batch_size", &PlanSpace::micro_batch_size},
    {"zero_stage", &PlanSpace::zero_stage},
    {"sequence_parallel", &PlanSpace::sequence_parallel},
    {"schedule", &PlanSpace::schedule},
    {"recompute", &PlanSpace::recompute},
};

// Every rule that the choices themselves break: values below 1, unknown enumerators.
// Field paths "plan.tensor_parallel_size", ...
absl::Status ValidatePlanSpace(const PlanSpace& space);

// One point of a plan space: what a sweep varies of a plan, in 40 bytes.
struct Layout {
  int32_t tensor = 1;
  int32_t pipeline = 1;
  int32_t chunks = 1;
  int32_t context = 1;
  int32_t expert = 1;
  int32_t data = 1;
  int32_t micro_batch = 1;
  int8_t zero = 0;
  int8_t sequence_parallel = 0;
  int8_t schedule = 0;
  int8_t recompute = 0;

  // Writes this point to `plan`; its other fields stay.
  void ApplyTo(workload::ParallelPlan& plan) const;
  static Layout Of(const workload::ParallelPlan& plan);

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Points that share the sizes that multiply to the GPU count: the unit of work, and of a shard.
struct Cell {
  int32_t tensor = 1;
  int32_t pipeline = 1;
  int32_t context = 1;
  int32_t data = 1;

  friend bool operator==(const Cell&, const Cell&) = default;
};

// The cells of `space` for `base` (its model, workload, cluster and gpu_count), in increasing order
// of (tensor, pipeline, context). Sizes that cannot be legal are never listed: each loop runs over
// the divisors of what is left. O(cells x divisors).
std::vector<Cell> EnumerateCells(const PlanSpace& space, const workload::Job& base);

// The points of one cell, in a fixed order. A dimension that makes no difference in a point keeps
// one value, the first that was given: sequence parallelism without tensor parallelism, ZeRO on one
// rank, schedules without a pipeline. More than one chunk per rank is the interleaved schedule.
// Points are legal by construction, but for rules of single schedules: ValidateJob has the last
// word.
std::vector<Layout> EnumerateLayouts(const PlanSpace& space, const workload::Job& base,
                                     const Cell& cell);
int64_t CountLayouts(const PlanSpace& space, const workload::Job& base, const Cell& cell);

// Why divisors of the GPU count are not among the values of a size that may be anything
// ("tensor_parallel_size 3, 6, 12: must divide attention_head_count 64"), one sentence per size.
std::vector<std::string> ExplainExclusions(const PlanSpace& space, const workload::Job& base);

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_SPACE_H_
