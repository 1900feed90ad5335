// SPDX-License-Identifier: Apache-2.0
// Rows of whole jobs: training steps and served requests.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/measured_rows.h"
#include "calibration/ingest/row_builder.h"
#include "calibration/ingest/text.h"
#include "common/hardware/accelerator.h"

namespace sextant::ingest {
namespace {

using Count = std::optional<int64_t>;

Count PositiveOf(int64_t value) { return value > 0 ? Count(value) : std::nullopt; }

// Sizes of the job's model, against those of the log.
void SetModel(const TrainingFacts& facts, const workload::Job* job, RowBuilder* row) {
  const workload::ModelArchitecture* model = job == nullptr ? nullptr : &job->model;
  row->Set("model", model != nullptr ? model->name : facts.model);
  row->Merge("hidden", facts.hidden_size,
             model != nullptr ? PositiveOf(model->hidden_size) : std::nullopt);
  row->Merge("layers", facts.layer_count,
             model != nullptr ? PositiveOf(model->layer_count) : std::nullopt);
  row->Merge("heads", facts.attention_head_count,
             model != nullptr ? PositiveOf(model->attention_head_count) : std::nullopt);
  if (model != nullptr) {
    row->Set("kv_heads", absl::StrCat(model->kv_head_count));
    if (model->ffn_size > 0) row->Set("ffn", absl::StrCat(model->ffn_size));
    row->Set("gated_ffn", model->gated_ffn ? "1" : "0");
    row->Set("vocab", absl::StrCat(model->vocabulary_size));
    row->Set("tied_embeddings", model->tied_embeddings ? "1" : "0");
    if (model->IsMixture()) {
      row->Set("experts", absl::StrCat(model->experts.expert_count));
      row->Set("topk", absl::StrCat(model->experts.experts_per_token));
    }
    return;
  }
  row->Merge("kv_heads", facts.kv_head_count, std::nullopt);
  row->Merge("ffn", facts.ffn_size, std::nullopt);
  // Megatron's default: four times the hidden size.
  if (!row->Has("ffn") && facts.hidden_size && !facts.gated_ffn.value_or(false)) {
    row->Set("ffn", absl::StrCat(*facts.hidden_size * 4));
  }
  row->Merge("vocab", facts.vocabulary_size, std::nullopt);
  if (facts.gated_ffn) row->Set("gated_ffn", *facts.gated_ffn ? "1" : "0");
  if (facts.untied_embeddings) row->Set("tied_embeddings", *facts.untied_embeddings ? "0" : "1");
  row->Merge("experts", facts.expert_count, std::nullopt);
  row->Merge("topk", facts.experts_per_token, std::nullopt);
  constexpr absl::string_view kRemedy = "--job";
  if (facts.model.empty()) {
    for (absl::string_view column : {"hidden", "layers", "heads", "ffn", "vocab"}) {
      row->Require(column, kRemedy);
    }
  }
}

void SetTrainingPlan(const TrainingFacts& facts, const IngestContext& context,
                     const workload::Job* job, RowBuilder* row) {
  const workload::ParallelPlan* plan = job == nullptr ? nullptr : &job->plan;
  const auto planned = [plan](int64_t workload::ParallelPlan::*size) {
    return plan == nullptr ? Count() : Count(plan->*size);
  };
  const auto* work =
      job == nullptr ? nullptr : std::get_if<workload::TrainingWorkload>(&job->workload);
  row->Merge(
      "gpus", facts.gpu_count,
      context.gpu_count ? context.gpu_count : (job == nullptr ? Count() : Count(job->gpu_count)));
  row->Merge("gbs", facts.global_batch_size,
             work == nullptr ? Count() : Count(work->global_batch_size));
  row->Merge("seq", facts.sequence_length,
             work == nullptr ? Count() : Count(work->sequence_length));
  row->Merge("mbs", facts.micro_batch_size, planned(&workload::ParallelPlan::micro_batch_size));
  row->Merge("tp", facts.tensor_parallel_size,
             planned(&workload::ParallelPlan::tensor_parallel_size));
  row->Merge("pp", facts.pipeline_parallel_size,
             planned(&workload::ParallelPlan::pipeline_parallel_size));
  row->Merge("vpp", facts.virtual_pipeline_size,
             planned(&workload::ParallelPlan::virtual_pipeline_size));
  row->Merge("cp", facts.context_parallel_size,
             planned(&workload::ParallelPlan::context_parallel_size));
  row->Merge("ep", facts.expert_parallel_size,
             planned(&workload::ParallelPlan::expert_parallel_size));
  row->Merge("dp", facts.data_parallel_size, planned(&workload::ParallelPlan::data_parallel_size));
  row->Merge("sp", facts.sequence_parallel ? Count(*facts.sequence_parallel ? 1 : 0) : Count(),
             plan == nullptr ? Count() : Count(plan->sequence_parallel ? 1 : 0));
  row->Merge("zero", facts.zero_stage, plan == nullptr ? Count() : Count(plan->zero_stage));
  row->Merge("recompute", facts.recompute,
             plan == nullptr ? "" : workload::RecomputeName(plan->recompute));
  row->Merge("precision", facts.precision,
             job == nullptr ? "" : hardware::PrecisionName(job->precision));
  if (plan != nullptr && plan->pipeline_parallel_size > 1) {
    row->Set("schedule", workload::PipelineScheduleName(plan->schedule));
  }
  for (absl::string_view column : {"gpus", "gbs", "seq", "mbs", "tp", "pp", "precision"}) {
    row->Require(column, "--job");
  }
}

std::string Fingerprint(const TrainingLogReading& reading) {
  RowFingerprint print;
  print.Add("training");
  print.Add(reading.framework);
  print.Add(reading.origin.time);
  for (const TrainingStep& step : reading.steps) {
    print.Add(static_cast<double>(step.iteration));
    print.Add(step.seconds.value_or(0));
    print.Add(step.tokens_per_second_per_gpu.value_or(0));
    print.Add(step.loss.value_or(0));
  }
  return print.Hex();
}

// Without the first step where there is another: it includes start-up.
std::optional<double> TokensPerGpu(const TrainingLogReading& reading) {
  std::vector<double> rates;
  for (const TrainingStep& step : reading.steps) {
    if (step.tokens_per_second_per_gpu.value_or(0) > 0) {
      rates.push_back(*step.tokens_per_second_per_gpu);
    }
  }
  if (rates.size() > 1) {
    rates.erase(rates.begin());
  } else if (rates.size() == 1 && reading.steps.front().iteration <= 1) {
    return std::nullopt;
  }
  return Median(rates);
}

}  // namespace

std::vector<MeasuredRow> RowsOf(const TrainingLogReading& reading, const IngestContext& context,
                                Refusals* refusals) {
  const workload::Job* job = context.job ? &*context.job : nullptr;
  RowBuilder row(RowKind::kTraining, context);
  if (job != nullptr && !job->IsTraining()) {
    refusals->Add("is a training log but the job given is no training job");
    return {};
  }
  row.SetOrigin(reading.origin);
  row.Set("framework", !context.software.empty()                   ? context.software
                       : job != nullptr && !job->framework.empty() ? job->framework
                                                                   : reading.framework);
  SetModel(reading.facts, job, &row);
  SetTrainingPlan(reading.facts, context, job, &row);
  if (job != nullptr) row.Set("gpus_per_node", absl::StrCat(job->cluster.gpus_per_node));
  row.Set("step_time_s", reading.step_seconds);
  const std::optional<double> rate = TokensPerGpu(reading);
  if (!reading.step_seconds) row.Set("tokens_per_s_per_gpu", rate);
  if (!reading.step_seconds &&
      (!rate || !absl::StrContains(reading.step_refusal, "no step time"))) {
    row.AddGap(reading.step_refusal);
  }
  if (reading.allocated_memory_bytes) {
    row.Set("mem_alloc_gb", *reading.allocated_memory_bytes * 1e-9);
  }
  if (reading.reserved_memory_bytes) row.Set("mem_gb", *reading.reserved_memory_bytes * 1e-9);
  row.Set("status", "ok");
  row.Note(reading.step_note);
  const bool skipped = std::all_of(reading.steps.begin(), reading.steps.end(),
                                   [](const TrainingStep& step) { return step.skipped_count > 0; });
  if (skipped) {
    row.Set("quality", "suspect: every step was skipped (loss scale overflow), none updated");
  }
  std::vector<MeasuredRow> rows;
  if (auto done = row.Finish(absl::StrCat("training-", Fingerprint(reading)), refusals)) {
    rows.push_back(std::move(*done));
  }
  return rows;
}

namespace {

std::string Fingerprint(const ServingRun& run) {
  RowFingerprint print;
  print.Add("serving");
  print.Add(run.tool);
  print.Add(run.model);
  print.Add(run.origin.time);
  for (const auto& number :
       {run.request_count, run.duration_seconds, run.time_to_first_token.mean_seconds,
        run.time_per_output_token.mean_seconds, run.inter_token_latency.mean_seconds,
        run.request_latency.mean_seconds, run.output_tokens_per_second, run.requests_per_second,
        run.max_concurrency, run.requests_per_second_offered}) {
    print.Add(number.value_or(-1));
  }
  return print.Hex();
}

std::optional<double> TokenLatency(const ServingRun& run) {
  return run.time_per_output_token.mean_seconds ? run.time_per_output_token.mean_seconds
                                                : run.inter_token_latency.mean_seconds;
}

std::optional<double> RequestLatency(const ServingRun& run) {
  if (run.request_latency.mean_seconds) return run.request_latency.mean_seconds;
  const auto token = TokenLatency(run);
  if (!run.time_to_first_token.mean_seconds || !token || !run.mean_output_tokens) {
    return std::nullopt;
  }
  return *run.time_to_first_token.mean_seconds +
         *token * std::max(*run.mean_output_tokens - 1, 0.0);
}

// How many requests ran at once: the limit of a closed loop, else Little's law (J. Little, 1961).
void SetLoad(const ServingRun& run, RowBuilder* row) {
  const auto latency = RequestLatency(run);
  std::optional<double> running;
  if (run.requests_per_second && latency) running = *run.requests_per_second * *latency;
  if (run.max_concurrency) {
    // A limit above what was sent never closed the loop.
    if (run.request_count)
      running = std::min(*run.max_concurrency, *run.request_count);
    else
      running = run.max_concurrency;
    row->Set("load", "closed_loop");
  } else if (run.requests_per_second_offered) {
    row->Set("load", "poisson");
    row->Note("requests at once by Little's law");
  } else if (run.offered_all_at_once) {
    row->Set("load", "offline");
    row->Note("requests at once by Little's law");
  }
  if (running) row->Set("batch_or_concurrency", std::max(1.0, std::round(*running)));
  row->Require("batch_or_concurrency", "a benchmark with its concurrency");
}

}  // namespace

std::vector<MeasuredRow> RowsOf(const ServingReading& reading, const IngestContext& context,
                                Refusals* refusals) {
  std::vector<MeasuredRow> rows;
  const workload::Job* job = context.job ? &*context.job : nullptr;
  if (job != nullptr && job->IsTraining()) {
    refusals->Add("is a serving benchmark but the job given is a training job");
    return rows;
  }
  for (const ServingRun& run : reading.runs) {
    if (!run.refusal.empty()) continue;
    RowBuilder row(RowKind::kInference, context);
    row.SetOrigin(run.origin);
    row.Set("framework", !context.software.empty()                   ? context.software
                         : job != nullptr && !job->framework.empty() ? job->framework
                                                                     : run.origin.software);
    row.Set("model", job != nullptr ? job->model.name : run.model);
    row.Require("model", "--job");
    row.Set("disaggregated", "0");
    if (job != nullptr) {
      row.Set("precision", hardware::PrecisionName(job->precision));
      row.Set("tp", absl::StrCat(job->plan.tensor_parallel_size));
      row.Set("pp", absl::StrCat(job->plan.pipeline_parallel_size));
      row.Set("ep", absl::StrCat(job->plan.expert_parallel_size));
      row.Set("dp", absl::StrCat(job->plan.data_parallel_size));
    }
    row.Merge(
        "gpus", run.gpu_count,
        context.gpu_count ? context.gpu_count : (job == nullptr ? Count() : Count(job->gpu_count)));
    row.Require("gpus", "--gpus or --job");
    SetLoad(run, &row);
    if (run.mean_input_tokens) {
      row.Set("input_len", std::max(1.0, std::round(*run.mean_input_tokens)));
    }
    if (run.mean_output_tokens) {
      row.Set("output_len", std::max(1.0, std::round(*run.mean_output_tokens)));
    }
    row.Require("input_len", "a benchmark that counts input tokens");
    row.Require("output_len", "a benchmark that counts output tokens");
    const auto milliseconds = [](std::optional<double> seconds) {
      return seconds ? std::make_optional(*seconds * 1e3) : std::nullopt;
    };
    if (run.offered_all_at_once && !run.max_concurrency) {
      row.Note("all requests at once: time to first token is queueing and left out");
    } else {
      row.Set("ttft_ms", milliseconds(run.time_to_first_token.mean_seconds));
      row.Set("e2e_s", run.request_latency.mean_seconds);
    }
    row.Set("itl_ms", milliseconds(TokenLatency(run)));
    row.Set("throughput_tok_s", run.output_tokens_per_second);
    row.Note(absl::StrCat("means over requests; throughput of output tokens; tool=", run.tool));
    if (auto done = row.Finish(absl::StrCat("serving-", Fingerprint(run)), refusals)) {
      rows.push_back(std::move(*done));
    }
  }
  return rows;
}

}  // namespace sextant::ingest
