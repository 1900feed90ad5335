// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/what_if.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/job_reader.h"
#include "common/hardware/what_if.h"
#include "sextant/types/v1/technology.pb.h"
#include "services/cli/commands/predict.h"
#include "services/cli/library.h"
#include "services/cli/render/message_json.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

double Span(const types::v1::TornadoBar& bar) {
  return std::abs(bar.divided_seconds() - bar.multiplied_seconds());
}

std::string ReportText(const types::v1::TornadoReport& r) {
  Table head({{""}, {""}});
  head.AddRow({"model", Printable(r.model())});
  head.AddRow({"accelerator", r.accelerator()});
  head.AddRow({"as it is", FormatSeconds(r.total_seconds())});
  const std::string factor = FormatNumber(r.factor());
  Table bars({{"property"},
              {absl::StrCat("/ ", factor), Align::kRight},
              {absl::StrCat("x ", factor), Align::kRight},
              {"between them", Align::kRight},
              {"does not fit"}});
  for (const types::v1::TornadoBar& bar : r.bars()) {
    const double change = 100 * (bar.divided_seconds() - bar.multiplied_seconds()) /
                          r.total_seconds();
    bars.AddRow({bar.property(), FormatSeconds(bar.divided_seconds()),
                 FormatSeconds(bar.multiplied_seconds()), FormatPercent(change),
                 bar.divided_fits() ? (bar.multiplied_fits() ? "" : "multiplied") : "divided"});
  }
  return absl::StrCat(head.ToText(), "\n", bars.ToText());
}

}  // namespace

absl::StatusOr<ExitCode> AnswerWhatIf(const CommonOptions& common, const WhatIfOptions& options,
                                      Terminal& terminal) {
  if (!(options.factor > 1 && options.factor <= 1000)) {
    base::Violations violations;
    violations.Add("--factor",
                   absl::StrCat("is ", options.factor, " but must be above 1 and at most 1000"));
    return violations.ToStatus();
  }
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(options.job_file));
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  SEXTANT_ASSIGN_OR_RETURN(
      const workload::Job job,
      catalog::ReadJob(text, options.job_file == "-" ? "stdin" : options.job_file,
                       options.overrides, catalog));
  const auto predict = [&](absl::string_view property, double factor) {
    workload::Job changed = job;
    // Factors need no tables.
    const absl::Status status = hardware::Apply(
        {.scale = {{std::string(property), factor}}}, hardware::Technologies(), changed.cluster);
    return status.ok() ? PredictionOf(common, changed, catalog, /*sensitivities=*/false, terminal)
                       : absl::StatusOr<orchestrator::Prediction>(status);
  };
  SEXTANT_ASSIGN_OR_RETURN(
      const orchestrator::Prediction now,
      PredictionOf(common, job, catalog, /*sensitivities=*/false, terminal));
  types::v1::TornadoReport report;
  report.set_model(job.model.name);
  report.set_accelerator(job.cluster.accelerator.name);
  report.set_parameter_set(now.parameter_set);
  report.set_factor(options.factor);
  report.set_total_seconds(now.total_seconds);
  for (const std::string& property : hardware::ScalableProperties()) {
    SEXTANT_ASSIGN_OR_RETURN(const auto divided, predict(property, 1 / options.factor));
    SEXTANT_ASSIGN_OR_RETURN(const auto multiplied, predict(property, options.factor));
    types::v1::TornadoBar& bar = *report.add_bars();
    bar.set_property(property);
    bar.set_divided_seconds(divided.total_seconds);
    bar.set_multiplied_seconds(multiplied.total_seconds);
    bar.set_divided_fits(divided.memory.fits);
    bar.set_multiplied_fits(multiplied.memory.fits);
  }
  std::stable_sort(report.mutable_bars()->begin(), report.mutable_bars()->end(),
                   [](const auto& a, const auto& b) { return Span(a) > Span(b); });
  terminal.Print(common.output == "json" ? MessageJson(report) : ReportText(report));
  return ExitCode::kOk;
}

}  // namespace sextant::cli
