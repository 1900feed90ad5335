// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/advice.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/wire/convert.h"
#include "google/protobuf/util/json_util.h"
#include "services/cli/render/prediction.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

std::string EnergyText(const energy::Estimate& joules) {
  constexpr double kJoulesPerKilowattHour = 3.6e6;
  return absl::StrFormat("%.4g kWh (%.4g to %.4g)", joules.value / kJoulesPerKilowattHour,
                         joules.low / kJoulesPerKilowattHour, joules.high / kJoulesPerKilowattHour);
}

}  // namespace

std::string AdviceText(const workload::Job& job, const advise::Advice& advice) {
  if (advice.gpu_count == 0) return "";  // the reason says it all
  Table head({{""}, {""}});
  head.AddRow({advice.feasible ? "advised" : "nearest", absl::StrCat(advice.gpu_count, " GPUs")});
  if (advice.suggested_time_limit_seconds > 0) {
    head.AddRow({"run", absl::StrCat(FormatSeconds(advice.run_seconds), "  (90 % interval ",
                                     FormatSeconds(advice.run_low_seconds), " to ",
                                     FormatSeconds(advice.run_high_seconds), ")")});
    head.AddRow({"time limit", absl::StrCat(advice.suggested_time_limit_seconds, " s (",
                                            advice.suggested_time_limit_seconds / 60, " min)")});
  }
  head.AddRow({"memory head-room",
               absl::StrCat(FormatBytes(advice.memory_headroom_bytes), " on the heaviest GPU")});
  const std::string of = advice.run_seconds > 0 ? "" : " of a step";
  if (advice.energy_joules) {
    head.AddRow({absl::StrCat("energy", of), EnergyText(*advice.energy_joules)});
  }
  if (advice.cost_dollars) {
    head.AddRow({absl::StrCat("cost", of),
                 absl::StrFormat("%.4g $ (%.4g to %.4g)", advice.cost_dollars->value,
                                 advice.cost_dollars->low, advice.cost_dollars->high)});
  }
  std::string text =
      absl::StrCat(head.ToText(), "\n",
                   PredictionText(advise::AdvisedJob(job, advice), advice.prediction));
  if (advice.curve.empty()) return text;
  Table curve({{"GPUs", Align::kRight},
               {"step or batch", Align::kRight},
               {"speed-up", Align::kRight},
               {"efficiency", Align::kRight}});
  for (const advise::SpeedUp& step : advice.curve) {
    curve.AddRow({absl::StrCat(step.gpu_count), FormatSeconds(step.total_seconds),
                  FormatNumber(step.speed_up), FormatShare(step.efficiency)});
  }
  return absl::StrCat(text, "\n", curve.ToText());
}

std::string AdviceEnvironment(const workload::Job& job, const advise::Advice& advice) {
  std::string text;
  const auto add = [&](absl::string_view key, const auto& value) {
    absl::StrAppend(&text, "SEXTANT_", key, "=",
                    absl::StrReplaceAll(absl::StrCat(value), {{"\n", " "}}), "\n");
  };
  const workload::ParallelPlan& plan = advice.plan;
  add("FEASIBLE", advice.feasible ? 1 : 0);
  add("REASON", advice.reason);
  add("GPU_COUNT", advice.gpu_count);
  add("TIME_LIMIT_MINUTES", advice.suggested_time_limit_seconds / 60);
  add("RUN_SECONDS", FormatNumber(advice.run_seconds));
  add("STEP_SECONDS", FormatNumber(advice.prediction.total_seconds));
  add("TENSOR_PARALLEL_SIZE", plan.tensor_parallel_size);
  add("SEQUENCE_PARALLEL", plan.sequence_parallel ? 1 : 0);
  add("PIPELINE_PARALLEL_SIZE", plan.pipeline_parallel_size);
  add("VIRTUAL_PIPELINE_SIZE", plan.virtual_pipeline_size);
  add("CONTEXT_PARALLEL_SIZE", plan.context_parallel_size);
  add("EXPERT_PARALLEL_SIZE", plan.expert_parallel_size);
  add("DATA_PARALLEL_SIZE", plan.data_parallel_size);
  add("MICRO_BATCH_SIZE", plan.micro_batch_size);
  add("ZERO_STAGE", plan.zero_stage);
  add("SCHEDULE", workload::PipelineScheduleName(plan.schedule));
  add("RECOMPUTE", workload::RecomputeName(plan.recompute));
  add("PARAMETER_SET", advice.prediction.parameter_set);
  std::string json;
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  static_cast<void>(google::protobuf::util::MessageToJsonString(
      wire::ToProto(advise::AdvisedJob(job, advice)), &json, print));
  add("JOB", json);
  return text;
}

}  // namespace sextant::cli
