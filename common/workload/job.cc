// SPDX-License-Identifier: Apache-2.0
#include "common/workload/job.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/violations.h"

namespace sextant::workload {
namespace {

constexpr std::array<absl::string_view, 6> kScheduleNames = {"gpipe", "1f1b",  "interleaved",
                                                             "zb-h1", "zb-h2", "dualpipe"};
constexpr std::array<absl::string_view, 2> kStageSplitNames = {"even", "compute"};
constexpr std::array<absl::string_view, 2> kContextModeNames = {"ring", "all-to-all"};
constexpr std::array<absl::string_view, 3> kRecomputeNames = {"none", "selective", "full"};
constexpr std::array<absl::string_view, 2> kOptimizerNames = {"adam", "sgd"};

constexpr int64_t kLargestCount = int64_t{1} << 31;
constexpr int64_t kLargestSequence = int64_t{1} << 31;

template <typename Enum, size_t N>
absl::StatusOr<Enum> ParseWord(const std::array<absl::string_view, N>& names,
                               absl::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(names, ", ")));
}

bool RequireCount(base::Violations& violations, absl::string_view field, int64_t value,
                  int64_t low = 1, int64_t high = kLargestCount) {
  if (value >= low && value <= high) return true;
  violations.Add(field, absl::StrCat("is ", value, " but must be between ", low, " and ", high));
  return false;
}

// "is 3 but must divide attention_head_count 32; use 1, 2, 4, 8, 16 or 32"
void RequireDivides(base::Violations& violations, absl::string_view field, int64_t value,
                    absl::string_view whole_name, int64_t whole) {
  if (value < 1 || whole < 1 || whole % value == 0) return;
  std::vector<int64_t> divisors = Divisors(whole);
  if (divisors.size() > 12) divisors.resize(12);
  violations.Add(field, absl::StrCat("is ", value, " but must divide ", whole_name, " ", whole,
                                     "; use ", absl::StrJoin(divisors, ", ")));
}

void ValidatePlanSizes(base::Violations& violations, const Job& job) {
  const ParallelPlan& plan = job.plan;
  bool counts_ok = RequireCount(violations, "gpu_count", job.gpu_count);
  const std::array<std::pair<absl::string_view, int64_t>, 7> sizes = {{
      {"plan.tensor_parallel_size", plan.tensor_parallel_size},
      {"plan.pipeline_parallel_size", plan.pipeline_parallel_size},
      {"plan.virtual_pipeline_size", plan.virtual_pipeline_size},
      {"plan.context_parallel_size", plan.context_parallel_size},
      {"plan.expert_parallel_size", plan.expert_parallel_size},
      {"plan.data_parallel_size", plan.data_parallel_size},
      {"plan.micro_batch_size", plan.micro_batch_size},
  }};
  for (const auto& [field, value] : sizes) counts_ok &= RequireCount(violations, field, value);
  RequireCount(violations, "plan.zero_stage", plan.zero_stage, 0, 3);
  if (!counts_ok) return;
  // In double: the product of legal sizes may exceed 64 bits.
  const double product = static_cast<double>(plan.tensor_parallel_size) *
                         static_cast<double>(plan.pipeline_parallel_size) *
                         static_cast<double>(plan.context_parallel_size) *
                         static_cast<double>(plan.data_parallel_size);
  if (product != static_cast<double>(job.gpu_count)) {
    violations.Add("gpu_count",
                   absl::StrCat("is ", job.gpu_count, " but tensor ", plan.tensor_parallel_size,
                                " x pipeline ", plan.pipeline_parallel_size, " x context ",
                                plan.context_parallel_size, " x data ", plan.data_parallel_size,
                                " parallel sizes multiply to ", product,
                                "; change gpu_count or a parallel size so that they are equal"));
  }
  if (job.cluster.node_count > 0 && job.cluster.gpus_per_node > 0) {
    const int64_t available = job.cluster.node_count * job.cluster.gpus_per_node;
    if (job.gpu_count > available) {
      violations.Add("gpu_count", absl::StrCat("is ", job.gpu_count, " but cluster ",
                                               job.cluster.name, " has ", available, " GPUs"));
    }
  }
}

void ValidateStages(base::Violations& violations, const Job& job) {
  const ParallelPlan& plan = job.plan;
  if (!plan.stage_layer_counts.empty()) {
    const double chunks = static_cast<double>(plan.pipeline_parallel_size) *
                          static_cast<double>(plan.virtual_pipeline_size);
    if (static_cast<double>(plan.stage_layer_counts.size()) != chunks) {
      violations.Add("plan.stage_layer_counts",
                     absl::StrCat("has ", plan.stage_layer_counts.size(),
                                  " entries but must have pipeline_parallel_size x "
                                  "virtual_pipeline_size = ",
                                  chunks));
    }
    double sum = 0;
    for (size_t i = 0; i < plan.stage_layer_counts.size(); ++i) {
      const int64_t layers = plan.stage_layer_counts[i];
      sum += static_cast<double>(layers);
      if (layers < 0) {
        violations.Add(absl::StrCat("plan.stage_layer_counts[", i, "]"),
                       absl::StrCat("is ", layers, " but must not be negative"));
      }
    }
    if (sum != static_cast<double>(job.model.layer_count)) {
      violations.Add(
          "plan.stage_layer_counts",
          absl::StrCat("sums to ", sum, " but must sum to layer_count ", job.model.layer_count));
    }
  }
  const bool new_schedule = plan.schedule == PipelineSchedule::kZeroBubbleH1 ||
                            plan.schedule == PipelineSchedule::kZeroBubbleH2 ||
                            plan.schedule == PipelineSchedule::kDualPipe;
  if (new_schedule && plan.virtual_pipeline_size > 1) {
    violations.Add("plan.schedule",
                   absl::StrCat("is \"", PipelineScheduleName(plan.schedule),
                                "\" but virtual_pipeline_size is above 1; use \"interleaved\""));
  }
  if (plan.schedule == PipelineSchedule::kDualPipe && plan.pipeline_parallel_size % 2 != 0) {
    violations.Add("plan.schedule",
                   "is \"dualpipe\" but pipeline_parallel_size is odd; its two directions need an "
                   "even one");
  }
}

void ValidatePlanAgainstModel(base::Violations& violations, const Job& job) {
  const ParallelPlan& plan = job.plan;
  const ModelArchitecture& model = job.model;
  const int64_t tp = plan.tensor_parallel_size;
  RequireDivides(violations, "plan.tensor_parallel_size", tp, "attention_head_count",
                 model.attention_head_count);
  if (!model.IsLatent() && tp >= 1 && model.kv_head_count >= 1 && tp % model.kv_head_count != 0 &&
      model.kv_head_count % tp != 0) {
    violations.Add("plan.tensor_parallel_size",
                   absl::StrCat("is ", tp, " but must divide kv_head_count ", model.kv_head_count,
                                ", or be a multiple of it so that KV heads are replicated"));
  }
  const bool has_dense_layer = !model.IsMixture() || model.experts.dense_layer_count > 0;
  if (has_dense_layer) {
    RequireDivides(violations, "plan.tensor_parallel_size", tp, "ffn_size", model.ffn_size);
  }
  if (plan.pipeline_parallel_size >= 1 && plan.virtual_pipeline_size >= 1) {
    const double chunks = static_cast<double>(plan.pipeline_parallel_size) *
                          static_cast<double>(plan.virtual_pipeline_size);
    // A split by arithmetic may leave stages without layers, one listed by hand too.
    const bool may_be_empty =
        plan.stage_split == StageSplit::kCompute || !plan.stage_layer_counts.empty();
    if (chunks > static_cast<double>(model.layer_count) && !may_be_empty) {
      violations.Add("plan.pipeline_parallel_size",
                     absl::StrCat("times virtual_pipeline_size is ", chunks,
                                  " but must be at most layer_count ", model.layer_count));
    }
  }
  if (plan.virtual_pipeline_size > 1 && plan.pipeline_parallel_size == 1) {
    violations.Add("plan.virtual_pipeline_size",
                   absl::StrCat("is ", plan.virtual_pipeline_size,
                                " but needs pipeline_parallel_size of at least 2; use 1"));
  }
  if (plan.schedule == PipelineSchedule::kGpipe && plan.virtual_pipeline_size > 1) {
    violations.Add("plan.schedule",
                   "is \"gpipe\" but virtual_pipeline_size is above 1; use \"interleaved\"");
  }
  ValidateStages(violations, job);
  if (plan.shard_group_size > 0) {
    RequireDivides(violations, "plan.shard_group_size", plan.shard_group_size,
                   "the data x context parallel ranks",
                   plan.data_parallel_size * plan.context_parallel_size);
  }
  if (plan.context_mode == ContextMode::kAllToAll && plan.context_parallel_size > 1 && tp >= 1) {
    RequireDivides(violations, "plan.context_parallel_size", plan.context_parallel_size,
                   "the attention heads of a tensor parallel rank",
                   model.attention_head_count / tp);
  }
  if (plan.expert_tensor_parallel_size > 0) {
    RequireDivides(violations, "plan.expert_tensor_parallel_size", plan.expert_tensor_parallel_size,
                   "experts.expert_ffn_size", model.experts.expert_ffn_size);
    RequireDivides(violations, "plan.expert_tensor_parallel_size", plan.expert_tensor_parallel_size,
                   "plan.tensor_parallel_size", tp);
  }
  if (plan.expert_parallel_size > 1) {
    if (!model.IsMixture()) {
      violations.Add("plan.expert_parallel_size",
                     absl::StrCat("is ", plan.expert_parallel_size, " but model ", model.name,
                                  " has no experts; use 1"));
    } else {
      RequireDivides(violations, "plan.expert_parallel_size", plan.expert_parallel_size,
                     "experts.expert_count", model.experts.expert_count);
      RequireDivides(
          violations, "plan.expert_parallel_size", plan.expert_parallel_size,
          "the data x context x tensor parallel ranks",
          plan.data_parallel_size * plan.context_parallel_size * plan.tensor_parallel_size);
    }
  }
}

void ValidateTraining(base::Violations& violations, const Job& job, const TrainingWorkload& work) {
  const bool batch_ok =
      RequireCount(violations, "training.global_batch_size", work.global_batch_size);
  const bool sequence_ok = RequireCount(violations, "training.sequence_length",
                                        work.sequence_length, 1, kLargestSequence);
  if (work.lora_rank < 0 || work.lora_rank > job.model.hidden_size) {
    violations.Add("training.lora_rank",
                   absl::StrCat("is ", work.lora_rank, " but must be between 0 and hidden_size ",
                                job.model.hidden_size));
  }
  const ParallelPlan& plan = job.plan;
  if (batch_ok && plan.micro_batch_size >= 1 && plan.data_parallel_size >= 1 &&
      plan.micro_batch_size <= kLargestCount && plan.data_parallel_size <= kLargestCount) {
    const int64_t round = plan.micro_batch_size * plan.data_parallel_size;
    if (work.global_batch_size % round != 0) {
      violations.Add(
          "training.global_batch_size",
          absl::StrCat("is ", work.global_batch_size,
                       " but must be a multiple of micro_batch_size ", plan.micro_batch_size,
                       " x data_parallel_size ", plan.data_parallel_size, " = ", round));
    } else if (plan.schedule == PipelineSchedule::kDualPipe && plan.pipeline_parallel_size > 1 &&
               (work.global_batch_size / round) % 2 != 0) {
      violations.Add("training.global_batch_size",
                     absl::StrCat("gives ", work.global_batch_size / round,
                                  " micro-batches but dualpipe needs an even number"));
    } else if (plan.virtual_pipeline_size > 1 &&
               (work.global_batch_size / round) %
                       std::max<int64_t>(plan.pipeline_parallel_size, 1) !=
                   0) {
      violations.Add("training.global_batch_size",
                     absl::StrCat("gives ", work.global_batch_size / round,
                                  " micro-batches but an interleaved schedule needs a multiple of "
                                  "pipeline_parallel_size ",
                                  plan.pipeline_parallel_size));
    }
  }
  if (sequence_ok) {
    RequireDivides(violations, "plan.context_parallel_size", plan.context_parallel_size,
                   "sequence_length", work.sequence_length);
    const int64_t learned = job.model.learned_position_count;
    if (learned > 0 && work.sequence_length > learned) {
      violations.Add("training.sequence_length",
                     absl::StrCat("is ", work.sequence_length, " but model ", job.model.name,
                                  " has ", learned, " learned positions"));
    }
  }
}

void ValidateInference(base::Violations& violations, const Job& job,
                       const InferenceWorkload& work) {
  RequireCount(violations, "inference.prompt_tokens", work.prompt_tokens, 1, kLargestSequence);
  RequireCount(violations, "inference.output_tokens", work.output_tokens, 0, kLargestSequence);
  RequireCount(violations, "inference.batch_size", work.batch_size);
  RequireCount(violations, "inference.kv_cache_page_tokens", work.kv_cache_page_tokens, 1, 65'536);
  RequireCount(violations, "inference.kv_cache_capacity_tokens", work.kv_cache_capacity_tokens, 0,
               int64_t{1} << 50);
  if (!(work.memory_fraction >= 0 && work.memory_fraction <= 1)) {
    violations.Add("inference.memory_fraction",
                   absl::StrCat("is ", work.memory_fraction, " but must be between 0 and 1"));
  }
  const auto between = [&](absl::string_view field, double value, double high) {
    if (value >= 0 && value <= high) return;
    violations.Add(field, absl::StrCat("is ", value, " but must be between 0 and ", high));
  };
  RequireCount(violations, "inference.speculation.draft_tokens", work.speculation.draft_tokens, 0,
               64);
  between("inference.speculation.acceptance", work.speculation.acceptance, 1);
  between("inference.speculation.draft_cost", work.speculation.draft_cost, 100);
  between("inference.background_share", work.background_share, 0.95);
  if (job.plan.virtual_pipeline_size > 1) {
    violations.Add("plan.virtual_pipeline_size", "is above 1 but inference has none; use 1");
  }
  if (job.plan.context_parallel_size > 1) {
    violations.Add("plan.context_parallel_size", "is above 1 but inference has none; use 1");
  }
}

}  // namespace

absl::string_view PipelineScheduleName(PipelineSchedule schedule) {
  return kScheduleNames[static_cast<size_t>(schedule)];
}
absl::string_view StageSplitName(StageSplit split) {
  return kStageSplitNames[static_cast<size_t>(split)];
}
absl::string_view ContextModeName(ContextMode mode) {
  return kContextModeNames[static_cast<size_t>(mode)];
}
absl::string_view RecomputeName(Recompute recompute) {
  return kRecomputeNames[static_cast<size_t>(recompute)];
}
absl::string_view OptimizerName(Optimizer optimizer) {
  return kOptimizerNames[static_cast<size_t>(optimizer)];
}
absl::StatusOr<PipelineSchedule> ParsePipelineSchedule(absl::string_view name) {
  return ParseWord<PipelineSchedule>(kScheduleNames, name);
}
absl::StatusOr<StageSplit> ParseStageSplit(absl::string_view name) {
  return ParseWord<StageSplit>(kStageSplitNames, name);
}
absl::StatusOr<ContextMode> ParseContextMode(absl::string_view name) {
  return ParseWord<ContextMode>(kContextModeNames, name);
}
absl::StatusOr<Recompute> ParseRecompute(absl::string_view name) {
  return ParseWord<Recompute>(kRecomputeNames, name);
}
absl::StatusOr<Optimizer> ParseOptimizer(absl::string_view name) {
  return ParseWord<Optimizer>(kOptimizerNames, name);
}

std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  for (int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

absl::Status ValidateJob(const Job& job) {
  base::Violations violations;
  for (const base::Violation& v : base::ViolationsOf(ValidateModelArchitecture(job.model))) {
    violations.Add(absl::StrCat("model.", v.field), v.description);
  }
  for (const base::Violation& v : base::ViolationsOf(hardware::ValidateCluster(job.cluster))) {
    violations.Add(absl::StrCat("cluster.", v.field), v.description);
  }
  ValidatePlanSizes(violations, job);
  ValidatePlanAgainstModel(violations, job);
  if (const auto* training = std::get_if<TrainingWorkload>(&job.workload)) {
    ValidateTraining(violations, job, *training);
  } else {
    ValidateInference(violations, job, std::get<InferenceWorkload>(job.workload));
  }
  if (job.serving.has_value()) {
    if (job.IsTraining()) {
      violations.Add("serving", "is given for a training job; it goes with inference");
    }
    const absl::Status valid =
        serving::ValidateServingLoad(*job.serving, job.plan.data_parallel_size);
    for (const base::Violation& v : base::ViolationsOf(valid)) {
      violations.Add(absl::StrCat("serving.", v.field), v.description);
    }
  }
  // Engines multiply 4-bit weights in 16 bits where the device has no 4-bit rate.
  const bool weights_alone = !job.IsTraining() && job.precision == hardware::Precision::kFp4;
  if (!weights_alone && !job.cluster.accelerator.Supports(job.precision)) {
    violations.Add("precision",
                   absl::StrCat("is ", std::string(hardware::PrecisionName(job.precision)), " but ",
                                job.cluster.accelerator.name, " has no matrix rate for it"));
  }
  for (size_t i = 0; i < job.faults.size(); ++i) {
    const Fault& fault = job.faults[i];
    const std::string path = absl::StrCat("faults[", i, "]");
    if (fault.scope != "network" && fault.scope != "node" && fault.scope != "rank") {
      violations.Add(path + ".scope", absl::StrCat("is \"", fault.scope.substr(0, 64),
                                                   "\" but must be one of network, node, rank"));
    }
    if (!(fault.slowdown >= 1 && fault.slowdown <= 1e6)) {
      violations.Add(path + ".slowdown",
                     absl::StrCat("is ", fault.slowdown, " but must be between 1 and 1000000"));
    }
    if (fault.scope == "rank" && !job.IsTraining()) {
      violations.Add(path + ".scope", "is \"rank\", which only training jobs know");
    }
    if (fault.scope != "rank" && fault.index != -1) {
      violations.Add(path + ".index", absl::StrCat("is ", fault.index,
                                                   " but links of one node cannot be told apart; "
                                                   "only scope \"rank\" has an index"));
    } else if (fault.index < -1 || fault.index >= std::max<int64_t>(job.gpu_count, 1)) {
      violations.Add(
          path + ".index",
          absl::StrCat("is ", fault.index, " but must be between -1 and ", job.gpu_count - 1));
    }
    if (!(fault.bandwidth_fraction > 0 && fault.bandwidth_fraction <= 1)) {
      violations.Add(path + ".bandwidth_fraction",
                     absl::StrCat("is ", fault.bandwidth_fraction, " but must be in (0, 1]"));
    }
  }
  return violations.ToStatus();
}

absl::Status ValidateOpenJob(const Job& job) {
  base::Violations violations;
  violations.RequireAtLeast<int64_t>("gpu_count", job.gpu_count, 1);
  Job small = job;
  small.gpu_count = 1;
  small.plan = {};
  small.faults.clear();
  const auto starts_with = [](const base::Violation& v, absl::string_view prefix) {
    return v.field.compare(0, prefix.size(), prefix.data(), prefix.size()) == 0;
  };
  for (const base::Violation& v : base::ViolationsOf(ValidateJob(small))) {
    // Pools of a fleet are counted against data parallel ranks.
    if (!starts_with(v, "serving.")) violations.Add(v.field, v.description);
  }
  for (const base::Violation& v : base::ViolationsOf(ValidateJob(job))) {
    if (starts_with(v, "faults")) violations.Add(v.field, v.description);
  }
  return violations.ToStatus();
}

}  // namespace sextant::workload
