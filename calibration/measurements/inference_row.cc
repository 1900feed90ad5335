// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "calibration/measurements/model_columns.h"
#include "calibration/measurements/profile_id.h"
#include "calibration/measurements/row_reader.h"

namespace sextant::calibration {

absl::string_view InferenceMetricName(InferenceMetric metric) {
  switch (metric) {
    case InferenceMetric::kTimeToFirstToken:
      return "ttft";
    case InferenceMetric::kInterTokenLatency:
      return "itl";
    case InferenceMetric::kEndToEnd:
      return "e2e";
    case InferenceMetric::kThroughput:
      return "throughput";
  }
  return "e2e";
}

namespace {

void ReadPlan(RowReader& row, RowFacts* facts, workload::Job* job) {
  workload::ParallelPlan& plan = job->plan;
  plan.pipeline_parallel_size = row.IntegerOr("pp", 1, &facts->warnings);
  const auto gpus = row.Integer("gpus");
  if (row.Has("tp")) {
    plan.tensor_parallel_size = row.RequiredInteger("tp");
  } else if (gpus && *gpus % plan.pipeline_parallel_size == 0) {
    plan.tensor_parallel_size = *gpus / plan.pipeline_parallel_size;
    facts->warnings.push_back(
        absl::StrCat("tp not stated: gpus / pp = ", plan.tensor_parallel_size, " assumed"));
  } else {
    row.Missing("tp");
  }
  // Sources write 0 where experts are not split.
  const int64_t ep = row.Integer("ep", 0).value_or(1);
  plan.expert_parallel_size = ep == 0 || !job->model.IsMixture() ? 1 : ep;
  const int64_t split = plan.tensor_parallel_size * plan.pipeline_parallel_size;
  plan.data_parallel_size = 1;
  if (const auto dp = row.Integer("dp")) {
    plan.data_parallel_size = *dp;
  } else if (gpus && split > 0 && *gpus % split == 0) {
    plan.data_parallel_size = *gpus / split;
  }
  job->gpu_count = gpus.value_or(split * plan.data_parallel_size);
  if (!gpus) facts->warnings.push_back(absl::StrCat("gpus not stated: ", job->gpu_count));
}

// A static batch ends after ttft + itl (output_len - 1). Where a source's end-to-end time is far
// from that, it belongs to another number of tokens, and so does the throughput derived from it.
void DropContradictions(int64_t output_tokens, InferenceRow* row) {
  constexpr double kLargestRatio = 1.5;
  double first = 0;
  double next = 0;
  double total = 0;
  for (const InferenceMeasurement& measured : row->measured) {
    if (measured.metric == InferenceMetric::kTimeToFirstToken) first = measured.seconds;
    if (measured.metric == InferenceMetric::kInterTokenLatency) next = measured.seconds;
    if (measured.metric == InferenceMetric::kEndToEnd) total = measured.seconds;
  }
  if (first <= 0 || next <= 0 || total <= 0 || output_tokens < 2) return;
  const double sum = first + next * static_cast<double>(output_tokens - 1);
  if (total * kLargestRatio >= sum && total <= sum * kLargestRatio) return;
  for (InferenceMeasurement& measured : row->measured) {
    if (measured.metric == InferenceMetric::kEndToEnd ||
        measured.metric == InferenceMetric::kThroughput) {
      measured.skip_reason = absl::StrCat(
          "e2e_s ", total, " contradicts ttft + itl (output_len - 1) = ", sum, " of the same row");
    }
  }
}

// TensorRT-LLM's published engines of 8-bit weights keep the cache in 8 bits too (its performance
// overview builds them with --kv_cache_dtype fp8); other engines keep it in 16 unless told
// otherwise.
bool QuantisesCache(absl::string_view profile, hardware::Precision weights) {
  const bool tensorrt = absl::StrContains(profile, "tensorrt") ||
                        absl::StartsWith(profile, "trtllm") || absl::StartsWith(profile, "nim");
  return tensorrt && (weights == hardware::Precision::kFp8 || weights == hardware::Precision::kFp4);
}

// LLM-Inference-Bench measured its A100s on Polaris, whose nodes have four of 40 GB (the paper's
// table of platforms; ALCF's description of the machine).
void CorrectAccelerator(RowFacts* facts) {
  if (!absl::StrContains(facts->source, "LLM-Inference-Bench") ||
      facts->accelerator != "a100-sxm4-80gb") {
    return;
  }
  facts->accelerator = "a100-sxm4-40gb";
  facts->warnings.push_back("accelerator read as a100-sxm4-40gb: the source ran on Polaris");
}

}  // namespace

InferenceRow ReadInferenceRow(RowReader& row, Lookups& lookups) {
  InferenceRow result;
  result.facts = ReadFacts(row, "framework");
  RowFacts& facts = result.facts;
  CorrectAccelerator(&facts);
  workload::Job& job = result.job;
  // A note in parentheses tells one build of an engine from others of the same name ("vLLM
  // (Splitwise ISCA24 profiling)", of 2023, without captured graphs).
  facts.profile = ProfileId(absl::StrReplaceAll(row.Text("framework"), {{"(", ""}, {")", ""}}));
  job.framework = facts.profile;
  const absl::string_view load = row.Text("load");

  if (const auto ms = row.Positive("ttft_ms")) {
    result.measured.push_back({InferenceMetric::kTimeToFirstToken, *ms * 1e-3, ""});
  }
  if (const auto ms = row.Positive("itl_ms")) {
    result.measured.push_back({InferenceMetric::kInterTokenLatency, *ms * 1e-3, ""});
  }
  if (const auto s = row.Positive("e2e_s")) {
    result.measured.push_back({InferenceMetric::kEndToEnd, *s, ""});
  }
  if (const auto rate = row.Positive("throughput_tok_s")) {
    result.measured.push_back({InferenceMetric::kThroughput, 1 / *rate, ""});
  }
  result.throughput_counts_prompt = absl::StrContains(row.Text("metric_notes"), "input+output");
  // TensorRT-LLM 0.6.1 prints its A100 table without the "/GPU" of its H100 table, yet its numbers
  // are those of one GPU: with four, Llama-70B has a quarter of what 0.9.0 prints for the instance.
  result.throughput_per_gpu =
      absl::StrContains(row.Text("metric_notes"), "source header 'Throughput (out tok/s)'");
  if (result.throughput_per_gpu) facts.warnings.push_back("throughput read as of one GPU");
  if (result.measured.empty() && row.violations().empty()) {
    facts.skip_reason = "no ttft_ms, itl_ms, e2e_s or throughput_tok_s was measured";
    return result;
  }
  if (row.Text("disaggregated") == "1" && !row.Has("tp")) {
    facts.skip_reason =
        "prefill and decode run on different instances: one static batch is not comparable";
    return result;
  }
  if (load == "poisson" && !row.Has("input_len")) {
    facts.skip_reason = "request lengths are not stated: no static batch is comparable";
    return result;
  }

  job.model = ReadModel(row, lookups, &facts);
  ReadPlan(row, &facts, &job);
  workload::InferenceWorkload work;
  work.prompt_tokens = row.RequiredInteger("input_len");
  work.output_tokens = row.RequiredInteger("output_len", 0);
  work.batch_size = row.RequiredInteger("batch_or_concurrency");
  if (const auto precision = ReadPrecision(row, "precision")) {
    job.precision = *precision;
  } else if (!row.Has("precision")) {
    const bool fp8 = absl::EndsWith(absl::AsciiStrToUpper(row.Text("model")), "FP8");
    job.precision = fp8 ? hardware::Precision::kFp8 : hardware::Precision::kBf16;
    facts.warnings.push_back(
        absl::StrCat("precision not stated: ", hardware::PrecisionName(job.precision), " assumed"));
  }
  const bool wide =
      job.precision == hardware::Precision::kFp32 || job.precision == hardware::Precision::kFp16;
  work.kv_cache_precision = wide ? job.precision : hardware::Precision::kBf16;
  if (QuantisesCache(facts.profile, job.precision)) {
    work.kv_cache_precision = hardware::Precision::kFp8;
    facts.warnings.push_back(
        "kv_dtype not stated: fp8 assumed, as this engine's 8-bit builds have");
  }
  job.workload = work;
  DropContradictions(work.output_tokens, &result);
  const auto cluster = ReadCluster(row, lookups, 0, &facts);
  if (cluster != nullptr) job.cluster = *cluster;
  if (load == "closed_loop") {
    // Clients that each send their next request when the last one ended.
    job.serving =
        serving::ServingLoad{.concurrency = work.batch_size,
                             .max_batch_sequences = std::max<int64_t>(256, work.batch_size)};
  } else if (load != "static" && work.batch_size > 1) {
    facts.warnings.push_back(absl::StrCat("load ", load.empty() ? "not stated" : load,
                                          ": predicted as one static batch, without queueing"));
  }
  if (row.violations().empty()) {
    const absl::Status valid = workload::ValidateJob(job);
    for (const base::Violation& violation : base::ViolationsOf(valid)) {
      row.violations().Add(violation.field, violation.description);
    }
  }
  facts.refusal = row.Refusal();
  return result;
}

}  // namespace sextant::calibration
