// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/prediction.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using orchestrator::MemoryPart;
using orchestrator::Prediction;
using orchestrator::TimePart;
using workload::InferenceWorkload;
using workload::Job;
using workload::ParallelPlan;
using workload::TrainingWorkload;

// What counts as useful in model_flops_utilization.
constexpr absl::string_view kModelFlopsConvention =
    "no recomputation, causal attention as half of the full matrix, over the dense matrix rate";

void WritePlan(const ParallelPlan& plan, JsonWriter* json) {
  json->Key("plan");
  json->BeginObject();
  json->Field("tensor_parallel_size", plan.tensor_parallel_size);
  json->Field("sequence_parallel", plan.sequence_parallel);
  json->Field("pipeline_parallel_size", plan.pipeline_parallel_size);
  json->Field("virtual_pipeline_size", plan.virtual_pipeline_size);
  json->Field("context_parallel_size", plan.context_parallel_size);
  json->Field("expert_parallel_size", plan.expert_parallel_size);
  json->Field("data_parallel_size", plan.data_parallel_size);
  json->Field("micro_batch_size", plan.micro_batch_size);
  json->Field("zero_stage", plan.zero_stage);
  json->Field("schedule", workload::PipelineScheduleName(plan.schedule));
  json->Field("recompute", workload::RecomputeName(plan.recompute));
  json->EndObject();
}

std::string PlanText(const Job& job) {
  const ParallelPlan& plan = job.plan;
  std::vector<std::string> parts = {
      absl::StrCat("tensor ", plan.tensor_parallel_size,
                   plan.sequence_parallel ? " with sequence parallel" : ""),
      absl::StrCat("pipeline ", plan.pipeline_parallel_size,
                   plan.virtual_pipeline_size > 1
                       ? absl::StrCat(" (", plan.virtual_pipeline_size, " chunks each)")
                       : ""),
      absl::StrCat("data ", plan.data_parallel_size)};
  if (plan.context_parallel_size > 1) {
    parts.push_back(absl::StrCat("context ", plan.context_parallel_size));
  }
  if (plan.expert_parallel_size > 1) {
    parts.push_back(absl::StrCat("expert ", plan.expert_parallel_size));
  }
  if (job.IsTraining()) {
    parts.push_back(absl::StrCat("micro-batch ", plan.micro_batch_size));
    parts.push_back(absl::StrCat("ZeRO ", plan.zero_stage));
    parts.push_back(std::string(workload::PipelineScheduleName(plan.schedule)));
    parts.push_back(absl::StrCat("recompute ", workload::RecomputeName(plan.recompute)));
  }
  return absl::StrJoin(parts, ", ");
}

std::string WorkloadText(const Job& job) {
  if (const auto* training = std::get_if<TrainingWorkload>(&job.workload)) {
    return absl::StrCat("training, ", training->global_batch_size, " sequences of ",
                        training->sequence_length, " tokens a step, ",
                        workload::OptimizerName(training->optimizer));
  }
  const auto& inference = std::get<InferenceWorkload>(job.workload);
  return absl::StrCat("inference, ", inference.batch_size, " sequences, ", inference.prompt_tokens,
                      " prompt and ", inference.output_tokens, " output tokens each");
}

std::string NameOr(const std::string& name, const char* otherwise) {
  return name.empty() ? otherwise : Printable(name);
}

std::string QuestionText(const Job& job) {
  Table table({{""}, {""}});
  table.AddRow({"job", WorkloadText(job)});
  table.AddRow({"model", NameOr(job.model.name, "(inline)")});
  table.AddRow({"cluster",
                absl::StrCat(job.gpu_count, " x ", NameOr(job.cluster.accelerator.name, "(inline)"),
                             " of ", NameOr(job.cluster.name, "(inline)"), ", ",
                             hardware::PrecisionName(job.precision))});
  table.AddRow({"layout", PlanText(job)});
  if (!job.framework.empty()) table.AddRow({"framework", job.framework});
  return table.ToText();
}

void WritePercentiles(absl::string_view name, const serving::Percentiles& p, JsonWriter* json) {
  json->Key(name);
  json->BeginObject();
  json->Field("mean", p.mean);
  json->Field("p50", p.p50);
  json->Field("p90", p.p90);
  json->Field("p99", p.p99);
  json->EndObject();
}

void WriteServing(const serving::ServingReport& r, JsonWriter* json) {
  json->BeginObject();
  json->Field("offered_request_count", r.offered_request_count);
  json->Field("completed_request_count", r.completed_request_count);
  json->Field("refused_request_count", r.refused_request_count);
  json->Field("preemption_count", r.preemption_count);
  json->Field("step_count", r.step_count);
  json->Field("makespan_seconds", r.makespan_seconds);
  WritePercentiles("time_to_first_token_seconds", r.time_to_first_token_seconds, json);
  WritePercentiles("inter_token_latency_seconds", r.inter_token_latency_seconds, json);
  WritePercentiles("end_to_end_seconds", r.end_to_end_seconds, json);
  json->Field("requests_per_second", r.requests_per_second);
  json->Field("output_tokens_per_second", r.output_tokens_per_second);
  json->Field("goodput_requests_per_second", r.goodput_requests_per_second);
  json->Field("utilization", r.utilization);
  json->Field("peak_kv_fraction", r.peak_kv_fraction);
  json->Field("capacity_requests_per_second", r.capacity_requests_per_second);
  json->Field("load_fraction", r.load_fraction);
  json->Field("saturated", r.saturated);
  json->Field("adapter_load_count", r.adapter_load_count);
  json->Field("encoder_utilization", r.encoder_utilization);
  json->Field("tokens_per_decode_step", r.tokens_per_decode_step);
  json->EndObject();
}

std::string ServingText(const serving::ServingReport& r) {
  Table table({{"requests"},
               {"mean", Align::kRight},
               {"p50", Align::kRight},
               {"p90", Align::kRight},
               {"p99", Align::kRight}});
  const auto row = [&](const char* name, const serving::Percentiles& p) {
    table.AddRow({name, FormatSeconds(p.mean), FormatSeconds(p.p50), FormatSeconds(p.p90),
                  FormatSeconds(p.p99)});
  };
  row("first token", r.time_to_first_token_seconds);
  row("each next token", r.inter_token_latency_seconds);
  row("whole request", r.end_to_end_seconds);
  std::string text = absl::StrCat(
      r.completed_request_count, " of ", r.offered_request_count, " requests completed, ",
      r.refused_request_count, " refused, ", r.preemption_count, " pre-empted; ",
      FormatRate(r.requests_per_second, "requests"), ", within limits ",
      FormatRate(r.goodput_requests_per_second, "requests"), "; engines busy ",
      FormatShare(r.utilization), ", cache at most ", FormatShare(r.peak_kv_fraction), " full");
  if (r.capacity_requests_per_second.has_value()) {
    absl::StrAppend(&text, "; load ", FormatShare(r.load_fraction.value_or(0)), " of capacity ",
                    FormatRate(*r.capacity_requests_per_second, "requests"),
                    r.saturated ? ": SATURATED, latencies are lower bounds" : "");
  }
  if (r.adapter_load_count > 0) {
    absl::StrAppend(&text, "; ", r.adapter_load_count, " adapters fetched");
  }
  if (r.encoder_utilization.has_value()) {
    absl::StrAppend(&text, "; image encoders busy ", FormatShare(*r.encoder_utilization));
  }
  if (r.tokens_per_decode_step.has_value()) {
    absl::StrAppend(&text,
                    absl::StrFormat("; %.2f tokens a decode step", *r.tokens_per_decode_step));
  }
  return absl::StrCat(table.ToText(), text, "\n");
}

std::string WithInterval(double seconds, const std::optional<parameters::Interval>& interval) {
  if (!interval.has_value()) return FormatSeconds(seconds);
  return absl::StrCat(FormatSeconds(seconds), "  (90 % interval ", FormatSeconds(interval->low),
                      " to ", FormatSeconds(interval->high), ")");
}

// Both ends under "<name>_interval_low_seconds" and "..._high_seconds", null without an interval.
void WriteInterval(absl::string_view name, const std::optional<parameters::Interval>& interval,
                   JsonWriter* json) {
  const auto end = [&](double parameters::Interval::*member) {
    return interval ? std::optional<double>((*interval).*member) : std::nullopt;
  };
  json->Field(absl::StrCat(name, "_interval_low_seconds"), end(&parameters::Interval::low));
  json->Field(absl::StrCat(name, "_interval_high_seconds"), end(&parameters::Interval::high));
}

std::string AnswerText(const Job& job, const Prediction& prediction) {
  Table table({{""}, {""}});
  table.AddRow({job.IsTraining() ? "step time"
                : job.serving    ? "run"
                                 : "batch time",
                WithInterval(prediction.total_seconds,
                             parameters::Interval{prediction.interval_low_seconds,
                                                  prediction.interval_high_seconds})});
  if (prediction.time_to_first_token_seconds.has_value()) {
    table.AddRow({"first token", WithInterval(*prediction.time_to_first_token_seconds,
                                              prediction.time_to_first_token_interval)});
  }
  if (prediction.inter_token_latency_seconds.has_value()) {
    table.AddRow({"each next token", WithInterval(*prediction.inter_token_latency_seconds,
                                                  prediction.inter_token_latency_interval)});
  }
  table.AddRow(
      {"throughput",
       absl::StrCat(FormatRate(prediction.tokens_per_second, "tokens"), ", ",
                    FormatRate(prediction.tokens_per_second_per_gpu, "tokens"), " per GPU")});
  table.AddRow(
      {"model FLOPs utilization", absl::StrCat(FormatShare(prediction.model_flops_utilization),
                                               "  (", kModelFlopsConvention, ")")});
  const orchestrator::MemoryPrediction& memory = prediction.memory;
  table.AddRow({"memory per GPU",
                absl::StrCat(FormatBytes(memory.total_bytes), " of ",
                             FormatBytes(memory.capacity_bytes), ": ",
                             memory.fits ? std::string("fits")
                                         : absl::StrCat("DOES NOT FIT, short of ",
                                                        FormatBytes(memory.shortfall_bytes)))});
  if (memory.largest_micro_batch_size.has_value()) {
    table.AddRow(
        {"largest micro-batch that fits", *memory.largest_micro_batch_size > 0
                                              ? absl::StrCat(*memory.largest_micro_batch_size)
                                              : std::string("none")});
  }
  if (prediction.kv_cache_capacity_tokens.has_value()) {
    table.AddRow(
        {"KV cache capacity", absl::StrCat(*prediction.kv_cache_capacity_tokens, " tokens")});
  }
  if (!prediction.binding.empty()) {
    table.AddRow({"limited by", absl::StrJoin(prediction.binding, ", ")});
  }
  table.AddRow({"parameter set", absl::StrCat(prediction.parameter_set,
                                              prediction.extrapolated ? " (extrapolated)" : "")});
  return table.ToText();
}

}  // namespace

std::string PredictionJson(const Job& job, const Prediction& prediction) {
  JsonWriter json;
  json.BeginObject();
  json.Field("kind", job.IsTraining() ? "training" : "inference");
  json.FieldOrNull("model", job.model.name);
  json.FieldOrNull("cluster", job.cluster.name);
  json.FieldOrNull("accelerator", job.cluster.accelerator.name);
  json.Field("gpu_count", job.gpu_count);
  json.Field("precision", hardware::PrecisionName(job.precision));
  json.FieldOrNull("framework", job.framework);
  WritePlan(job.plan, &json);

  json.Field("total_seconds", prediction.total_seconds);
  json.Field("interval_low_seconds", prediction.interval_low_seconds);
  json.Field("interval_high_seconds", prediction.interval_high_seconds);
  json.Field("tokens_per_second", prediction.tokens_per_second);
  json.Field("tokens_per_second_per_gpu", prediction.tokens_per_second_per_gpu);
  json.Field("model_flops_utilization", prediction.model_flops_utilization);
  json.Field("model_flops_convention", kModelFlopsConvention);
  json.Field("time_to_first_token_seconds", prediction.time_to_first_token_seconds);
  json.Field("inter_token_latency_seconds", prediction.inter_token_latency_seconds);
  WriteInterval("time_to_first_token", prediction.time_to_first_token_interval, &json);
  WriteInterval("inter_token_latency", prediction.inter_token_latency_interval, &json);
  json.Field("kv_cache_capacity_tokens", prediction.kv_cache_capacity_tokens);

  json.Key("serving");
  if (prediction.serving.has_value()) {
    WriteServing(*prediction.serving, &json);
  } else {
    json.Null();
  }

  json.Field("fits", prediction.memory.fits);
  json.Field("memory_bytes", prediction.memory.total_bytes);
  json.Field("memory_capacity_bytes", prediction.memory.capacity_bytes);
  json.Field("shortfall_bytes", prediction.memory.shortfall_bytes);
  json.Field("memory_reserved_bytes", prediction.memory.reserved_bytes);
  json.Field("largest_micro_batch_size", prediction.memory.largest_micro_batch_size);
  json.Key("memory_breakdown");
  json.BeginObject();
  for (const MemoryPart& part : prediction.memory.breakdown) json.Field(part.name, part.bytes);
  json.EndObject();
  json.Key("breakdown");
  json.BeginObject();
  for (const TimePart& part : prediction.breakdown) json.Field(part.name, part.seconds);
  json.EndObject();
  json.Field("binding", prediction.binding);
  json.Key("sensitivities");
  json.BeginObject();
  for (const orchestrator::Sensitivity& s : prediction.sensitivities) {
    json.Field(s.resource, s.elasticity);
  }
  json.EndObject();

  json.Field("parameter_set", prediction.parameter_set);
  json.Field("extrapolated", prediction.extrapolated);
  json.Field("warnings", prediction.warnings);
  json.EndObject();
  return json.Finish();
}

std::string PredictionText(const Job& job, const Prediction& prediction) {
  std::string text = absl::StrCat(QuestionText(job), "\n", AnswerText(job, prediction));

  if (prediction.serving.has_value()) {
    absl::StrAppend(&text, "\n", ServingText(*prediction.serving));
  }

  Table time({{"where the time goes"}, {"time", Align::kRight}, {"share", Align::kRight}});
  for (const TimePart& part : prediction.breakdown) {
    if (part.seconds == 0) continue;
    time.AddRow(
        {part.name, FormatSeconds(part.seconds),
         FormatShare(prediction.total_seconds > 0 ? part.seconds / prediction.total_seconds : 0)});
  }
  absl::StrAppend(&text, "\n", time.ToText());

  if (!prediction.sensitivities.empty()) {
    const char* what =
        prediction.serving.has_value() ? "changes whole requests by" : "changes the time by";
    Table faster({{"10 % more of"}, {what, Align::kRight}});
    for (const orchestrator::Sensitivity& s : prediction.sensitivities) {
      const double change = std::pow(1.1, s.elasticity) - 1;
      faster.AddRow(
          {s.resource, absl::StrCat(change < 0 ? "-" : "", FormatShare(std::abs(change)))});
    }
    absl::StrAppend(&text, "\n", faster.ToText());
  }

  Table memory({{"memory per GPU"}, {"size", Align::kRight}, {"share", Align::kRight}});
  const double capacity_bytes =
      static_cast<double>(std::max<int64_t>(prediction.memory.capacity_bytes, 1));
  for (const MemoryPart& part : prediction.memory.breakdown) {
    if (part.bytes == 0) continue;
    memory.AddRow({part.name, FormatBytes(part.bytes),
                   FormatShare(static_cast<double>(part.bytes) / capacity_bytes)});
  }
  absl::StrAppend(&text, "\n", memory.ToText());

  if (!prediction.warnings.empty()) absl::StrAppend(&text, "\nwarnings\n");
  for (const std::string& warning : prediction.warnings) {
    absl::StrAppend(&text, "  ", Printable(warning), "\n");
  }
  return text;
}

std::string ShortfallMessage(const Prediction& prediction) {
  const MemoryPart* largest = nullptr;
  for (const MemoryPart& part : prediction.memory.breakdown) {
    if (largest == nullptr || part.bytes > largest->bytes) largest = &part;
  }
  return absl::StrCat("the job does not fit: it needs ", prediction.memory.total_bytes,
                      " bytes per GPU of ", prediction.memory.capacity_bytes, ", a shortfall of ",
                      prediction.memory.shortfall_bytes, " bytes (",
                      FormatBytes(prediction.memory.shortfall_bytes), ")",
                      largest == nullptr ? ""
                                         : absl::StrCat("; the largest part is ", largest->name,
                                                        " with ", FormatBytes(largest->bytes)));
}

}  // namespace sextant::cli
