// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/resilience.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/job_reader.h"
#include "common/catalog/reliability.h"
#include "common/resilience/checkpoint.h"
#include "common/wire/convert_resilience.h"
#include "services/cli/commands/predict.h"
#include "services/cli/library.h"
#include "services/cli/render/message_json.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

std::string ReportText(const types::v1::GoodputReport& r) {
  Table head({{""}, {""}});
  head.AddRow({"reliability", absl::StrCat(r.profile(), ", ", r.gpu_count(), " GPUs, ",
                                           r.spare_node_count(), " spare nodes")});
  head.AddRow({"interrupted",
               absl::StrCat("every ", FormatSeconds(r.mean_seconds_between_interruptions()))});
  head.AddRow(
      {"checkpoint", absl::StrCat(FormatBytes(static_cast<int64_t>(r.checkpoint_bytes())), " in ",
                                  FormatSeconds(r.checkpoint_seconds()), ", every ", FormatSeconds(r.checkpoint_interval_seconds()),
                                  "; best ", FormatSeconds(r.best_checkpoint_interval_seconds()),
                                  ", Young ", FormatSeconds(r.young_interval_seconds()), ", Daly ",
                                  FormatSeconds(r.daly_interval_seconds()))});
  head.AddRow({"throughput", absl::StrCat(FormatRate(r.useful_tokens_per_second(), "tokens"),
                                          " of ", FormatRate(r.tokens_per_second(), "tokens"))});
  Table shares({{"where the time goes"}, {"share", Align::kRight}});
  shares.AddRow({"steps that count", FormatShare(r.useful_share())});
  shares.AddRow({"checkpoints", FormatShare(r.checkpoint_share())});
  shares.AddRow({"lost steps", FormatShare(r.rework_share())});
  shares.AddRow({"detection and restart", FormatShare(r.recovery_share())});
  shares.AddRow({"waiting for nodes", FormatShare(r.waiting_share())});
  shares.AddRow({"stragglers", FormatShare(r.straggler_share())});
  return absl::StrCat(head.ToText(), "\n", shares.ToText());
}

}  // namespace

absl::StatusOr<ExitCode> AnswerResilience(const CommonOptions& common,
                                          const ResilienceOptions& options, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(options.job_file));
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  SEXTANT_ASSIGN_OR_RETURN(
      const workload::Job job,
      catalog::ReadJob(text, options.job_file == "-" ? "stdin" : options.job_file,
                       options.overrides, catalog));
  if (!job.IsTraining()) {
    base::Violations violations;
    violations.Add("training", "is missing; resilience is about training runs");
    return violations.ToStatus();
  }
  resilience::GoodputQuestion question{
      .gpu_count = job.gpu_count,
      .spare_node_count = options.spare_node_count,
      .checkpoint_interval_seconds = options.checkpoint_interval_seconds};
  SEXTANT_ASSIGN_OR_RETURN(question.profile, catalog::FindReliability(catalog, options.profile));
  if (options.straggler_share.has_value()) {
    question.profile.straggler_share = *options.straggler_share;
  }
  question.profile.checkpoint_seconds =
      options.checkpoint_seconds.value_or(resilience::CheckpointSeconds(job, question.profile));
  SEXTANT_ASSIGN_OR_RETURN(const resilience::Goodput goodput,
                           resilience::ExpectedGoodput(question));
  SEXTANT_ASSIGN_OR_RETURN(const orchestrator::Prediction prediction,
                           PredictionOf(common, job, catalog, /*sensitivities=*/false, terminal));
  types::v1::GoodputReport report = wire::ToProto(goodput);
  report.set_profile(options.profile);
  report.set_gpu_count(question.gpu_count);
  report.set_spare_node_count(question.spare_node_count);
  report.set_tokens_per_second(prediction.tokens_per_second);
  report.set_useful_tokens_per_second(prediction.tokens_per_second * goodput.useful_share);
  report.set_checkpoint_bytes(resilience::CheckpointBytes(job));
  report.set_checkpoint_seconds(question.profile.checkpoint_seconds);
  report.set_parameter_set(prediction.parameter_set);
  terminal.Print(common.output == "json" ? MessageJson(report) : ReportText(report));
  return ExitCode::kOk;
}

}  // namespace sextant::cli
