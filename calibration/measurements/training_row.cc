// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "calibration/measurements/model_columns.h"
#include "calibration/measurements/row_reader.h"

namespace sextant::calibration {
namespace {

// The first word of a field such as "selective (minimal_flash)".
std::string FirstWord(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  return words.empty() ? std::string() : words[0];
}

// Adapters are part of a model's name ("Llama-2-70B LoRA r16"); 16 is the rank where it says none.
int64_t LoraRank(RowReader& row, RowFacts* facts) {
  const absl::string_view name = row.Text("model");
  if (!absl::StrContains(name, "LoRA")) return 0;
  int64_t rank = 0;
  for (const absl::string_view word : absl::StrSplit(name, ' ', absl::SkipEmpty())) {
    if (word.front() == 'r' && absl::SimpleAtoi(word.substr(1), &rank) && rank > 0) return rank;
  }
  facts->warnings.push_back("LoRA rank not stated: 16 assumed");
  return 16;
}

void ReadPlan(RowReader& row, RowFacts* facts, UnstatedPlan* unstated, workload::Job* job) {
  workload::ParallelPlan& plan = job->plan;
  std::vector<std::string>* warnings = &facts->warnings;
  plan.tensor_parallel_size = row.Integer("tp").value_or(1);
  plan.pipeline_parallel_size = row.Integer("pp").value_or(1);
  plan.micro_batch_size = row.Integer("mbs").value_or(1);
  *unstated = {.tensor_parallel_size = !row.Has("tp"),
               .pipeline_parallel_size = !row.Has("pp"),
               .context_parallel_size = !row.Has("tp") && !row.Has("cp"),
               .micro_batch_size = !row.Has("mbs"),
               .sequence_parallel = !row.Has("sp") && !absl::StartsWith(facts->suite, "vtrain"),
               .zero_stage = !row.Has("zero") && !absl::StartsWith(facts->suite, "vtrain"),
               .recompute = !row.Has("recompute") && !absl::StartsWith(facts->suite, "vtrain")};
  plan.sequence_parallel = row.IntegerOr("sp", 0, warnings, 0) != 0;
  plan.virtual_pipeline_size = row.IntegerOr("vpp", 1, warnings);
  plan.context_parallel_size = row.IntegerOr("cp", 1, warnings);
  plan.expert_parallel_size = row.IntegerOr("ep", 1, warnings);
  plan.zero_stage = static_cast<int>(row.IntegerOr("zero", 0, warnings, 0));
  const double split = static_cast<double>(plan.tensor_parallel_size) *
                       static_cast<double>(plan.pipeline_parallel_size) *
                       static_cast<double>(plan.context_parallel_size);
  const auto gpus = row.Integer("gpus");
  const auto dp = row.Integer("dp");
  if (gpus && dp) {
    job->gpu_count = *gpus;
    plan.data_parallel_size = *dp;
  } else if (gpus && split > 0) {
    job->gpu_count = *gpus;
    const double share = static_cast<double>(*gpus) / split;
    if (share < 1 || share != std::floor(share)) {
      row.violations().Add("gpus", absl::StrCat("is ", *gpus, " but must be a multiple of tp x pp ",
                                                "x cp = ", split));
    } else {
      plan.data_parallel_size = static_cast<int64_t>(share);
      warnings->push_back(absl::StrCat("dp not stated: gpus / (tp pp cp) = ", share));
    }
  } else if (!row.Has("gpus")) {
    row.Missing("gpus");
  }

  const std::string recompute = FirstWord(row.Text("recompute"));
  if (recompute.empty()) {
    warnings->push_back(unstated->recompute ? "recompute not stated: the least that fits in memory"
                                            : "recompute not stated: none assumed");
  } else if (const auto parsed = workload::ParseRecompute(recompute); parsed.ok()) {
    plan.recompute = *parsed;
  } else {
    row.violations().Add("recompute", OneLine(parsed.status()));
  }
  if (unstated->zero_stage) warnings->push_back("zero not stated: 1 where 0 does not fit");
  const std::string schedule(row.Text("schedule"));
  if (plan.virtual_pipeline_size > 1) {
    plan.schedule = workload::PipelineSchedule::kInterleaved;
  } else if (!schedule.empty() && schedule != "interleaved") {
    if (const auto parsed = workload::ParsePipelineSchedule(schedule); parsed.ok()) {
      plan.schedule = *parsed;
    } else {
      row.violations().Add("schedule", OneLine(parsed.status()));
    }
  } else if (plan.pipeline_parallel_size > 1) {
    warnings->push_back("schedule or vpp not stated: 1f1b assumed");
  }
  if (job->framework == "nanotron" && plan.pipeline_parallel_size > 1) {
    // nanotron cuts by the compute costs that its models state, the head among them.
    plan.stage_split = workload::StageSplit::kCompute;
  }
  if (job->framework == "torchtitan" && plan.pipeline_parallel_size > 1 &&
      plan.micro_batch_size % plan.pipeline_parallel_size == 0) {
    // The batch that it states is a data parallel rank's: a pipeline cuts it into as many
    // micro-batches as it has stages (pipeline_parallel_microbatches).
    plan.micro_batch_size /= plan.pipeline_parallel_size;
  }
}

}  // namespace

TrainingRow ReadTrainingRow(RowReader& row, Lookups& lookups) {
  TrainingRow result;
  result.facts = ReadFacts(row, "framework");
  RowFacts& facts = result.facts;
  workload::Job& job = result.job;
  result.status = row.Has("status") ? std::string(row.Text("status")) : "ok";

  job.framework = facts.profile;
  job.model = ReadModel(row, lookups, &facts);
  workload::TrainingWorkload work;
  work.global_batch_size = row.RequiredInteger("gbs");
  work.sequence_length = row.RequiredInteger("seq");
  work.lora_rank = LoraRank(row, &facts);
  job.workload = work;
  ReadPlan(row, &facts, &result.unstated, &job);
  if (!row.Has("precision")) {
    const bool vtrain = absl::StartsWith(facts.suite, "vtrain");
    job.precision = vtrain ? hardware::Precision::kFp16 : hardware::Precision::kBf16;
    facts.warnings.push_back(absl::StrCat("precision not stated: ", vtrain ? "fp16" : "bf16",
                                          " mixed precision assumed"));
  } else if (const auto precision = ReadPrecision(row, "precision")) {
    job.precision = *precision;
  }
  const int64_t per_node = row.Integer("gpus_per_node").value_or(0);
  // One GPU alone says nothing about the nodes of the cluster.
  const auto cluster = ReadCluster(row, lookups, job.gpu_count > per_node ? per_node : 0, &facts);
  if (cluster != nullptr) {
    job.cluster = *cluster;
    const int64_t nodes = (job.gpu_count + cluster->gpus_per_node - 1) / cluster->gpus_per_node;
    if (nodes > 1 && !cluster->network_stated) {
      facts.warnings.push_back("the fabric between nodes is not stated by the source");
    }
  }

  auto step = row.Positive("step_time_s");
  const auto rate = row.Positive("tokens_per_s_per_gpu");
  if (!step && rate && work.global_batch_size > 0 && work.sequence_length > 0) {
    step = static_cast<double>(work.global_batch_size) * static_cast<double>(work.sequence_length) /
           (*rate * static_cast<double>(job.gpu_count));
    facts.warnings.push_back("step time derived from tokens_per_s_per_gpu");
  }
  auto memory = row.Positive("mem_alloc_gb");
  result.memory_is_allocated = memory.has_value();
  // The same whatever the micro-batch, and little above weights, gradients and optimizer states.
  result.memory_is_resident = memory.has_value() && job.framework == "nanotron";
  const auto reported = row.Positive("mem_gb");
  if (memory && reported) result.measured_reserved_bytes = static_cast<int64_t>(*reported * 1e9);
  if (!memory) memory = reported;
  if (memory) result.measured_memory_bytes = static_cast<int64_t>(*memory * 1e9);

  bool known_status = true;
  // The verdict of the run; times of runs that failed are no step times.
  if (result.status == "ok") {
    result.measured_seconds = step;
    result.measured_fits = true;
  } else if (result.status == "oom") {
    result.measured_fits = false;
  } else if (result.status == "memory_only") {
    result.measured_fits = true;
  } else if (result.status == "throughput_only" || result.status == "example_log") {
    result.measured_seconds = step;
    if (step || memory) result.measured_fits = true;
  } else if (result.status != "failed_other" && result.status != "time_to_train_only" &&
             result.status != "unsupported") {
    known_status = false;
    row.violations().Add("status", absl::StrCat("is \"", result.status, "\", an unknown word"));
  }
  const bool judged = result.status == "oom" || result.status == "failed_other";
  if (known_status && !judged && !result.measured_seconds && !result.measured_memory_bytes) {
    facts.skip_reason =
        absl::StrCat("status ", result.status, ": no step time and no memory were measured");
    return result;
  }
  if (row.violations().empty() && !result.unstated.AnySize()) {
    const absl::Status valid = workload::ValidateJob(job);
    for (const base::Violation& violation : base::ViolationsOf(valid)) {
      row.violations().Add(violation.field, violation.description);
    }
  }
  facts.refusal = row.Refusal();
  return result;
}

}  // namespace sextant::calibration
