// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using calibration::RowStatus;
using calibration::ValidationGroup;
using calibration::ValidationReport;
using calibration::ValidationRow;

void WriteRow(const ValidationRow& row, JsonWriter* json) {
  json->BeginLineObject();
  json->Field("id", row.id);
  json->Field("kind", row.kind);
  json->FieldOrNull("metric", row.metric);
  json->FieldOrNull("suite", row.suite);
  json->FieldOrNull("family", row.family);
  json->FieldOrNull("source", row.source);
  json->FieldOrNull("accelerator", row.accelerator);
  json->Field("status", calibration::RowStatusName(row.status));
  json->FieldOrNull("reason", row.reason);
  json->FieldOrNull("quality", row.quality);
  json->Field("measured_seconds", row.measured_seconds);
  json->Field("predicted_seconds", row.predicted_seconds);
  json->Field("error_percent", row.error_percent);
  json->Field("interval_low_seconds", row.interval_low_seconds);
  json->Field("interval_high_seconds", row.interval_high_seconds);
  json->Field("extrapolated", row.extrapolated);
  json->Field("warnings", row.warnings);
  if (row.kind == "training") {
    json->Field("measured_memory_bytes", row.measured_memory_bytes);
    json->Field("predicted_memory_bytes", row.predicted_memory_bytes);
    json->Field("measured_fits", row.measured_fits);
    json->Field("predicted_fits", row.predicted_fits);
  }
  json->EndObject();
}

void WriteGroup(const ValidationGroup& group, JsonWriter* json) {
  json->BeginLineObject();
  json->FieldOrNull("suite", group.suite);
  json->FieldOrNull("accelerator", group.accelerator);
  json->Field("kind", group.kind);
  json->FieldOrNull("family", group.family);
  json->FieldOrNull("metric", group.metric);
  json->Field("count", group.count);
  json->Field("refused", group.refused);
  json->Field("skipped", group.skipped);
  json->Field("suspect", group.suspect);
  json->Field("mape_percent", group.mape_percent);
  json->Field("median_ape_percent", group.median_ape_percent);
  json->Field("p90_ape_percent", group.p90_ape_percent);
  json->Field("bias_percent", group.bias_percent);
  json->Field("interval_coverage_percent", group.interval_coverage_percent);
  json->Field("interval_width_percent", group.interval_width_percent);
  json->EndObject();
}

std::string SecondsOrDash(const std::optional<double>& seconds) {
  return seconds.has_value() ? FormatSeconds(*seconds) : "-";
}

// "4.2 %": errors that have no sign.
std::string PercentOrDash(const std::optional<double>& percent) {
  return percent.has_value() ? FormatShare(*percent / 100) : "-";
}

std::string SignedPercentOrDash(const std::optional<double>& percent) {
  return percent.has_value() ? FormatPercent(*percent) : "-";
}

std::string Note(const ValidationRow& row) {
  if (row.status != RowStatus::kOk) {
    return absl::StrCat(calibration::RowStatusName(row.status), ": ", row.reason);
  }
  if (!row.quality.empty()) return row.quality;
  if (!row.counted) return "not counted";
  return row.extrapolated ? "extrapolated" : "";
}

std::string RowsText(const ValidationReport& report) {
  Table table({{"suite"},
               {"id"},
               {"metric"},
               {"predicted", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight},
               {"90 % interval", Align::kRight},
               {"note"}});
  for (const ValidationRow& row : report.rows) {
    const bool has_interval =
        row.interval_low_seconds.has_value() && row.interval_high_seconds.has_value();
    table.AddRow({row.suite, row.id, row.metric, SecondsOrDash(row.predicted_seconds),
                  SecondsOrDash(row.measured_seconds), SignedPercentOrDash(row.error_percent),
                  has_interval ? absl::StrCat(FormatSeconds(*row.interval_low_seconds), " to ",
                                              FormatSeconds(*row.interval_high_seconds))
                               : "-",
                  Note(row)});
  }
  return table.ToText();
}

std::string GroupsText(const ValidationReport& report) {
  Table table({{"suite"},
               {"accelerator"},
               {"kind"},
               {"family or metric"},
               {"rows", Align::kRight},
               {"not counted", Align::kRight},
               {"refused", Align::kRight},
               {"skipped", Align::kRight},
               {"MAPE", Align::kRight},
               {"median", Align::kRight},
               {"p90", Align::kRight},
               {"bias", Align::kRight},
               {"in interval", Align::kRight}});
  for (const ValidationGroup& group : report.groups) {
    table.AddRow({group.suite, group.accelerator, group.kind,
                  group.family.empty() ? group.metric : group.family, absl::StrCat(group.count),
                  absl::StrCat(group.suspect), absl::StrCat(group.refused),
                  absl::StrCat(group.skipped), PercentOrDash(group.mape_percent),
                  PercentOrDash(group.median_ape_percent), PercentOrDash(group.p90_ape_percent),
                  SignedPercentOrDash(group.bias_percent),
                  PercentOrDash(group.interval_coverage_percent)});
  }
  return table.ToText();
}

// Over the rows that count, whatever their group.
std::string SuitesText(const ValidationReport& report) {
  std::map<std::string, std::vector<double>> errors_percent;
  for (const ValidationRow& row : report.rows) {
    if (row.status != RowStatus::kOk || !row.counted || !row.error_percent.has_value()) continue;
    errors_percent[row.suite].push_back(std::abs(*row.error_percent));
  }
  Table table(
      {{"suite"}, {"rows", Align::kRight}, {"MAPE", Align::kRight}, {"worst", Align::kRight}});
  for (const auto& [suite, errors] : errors_percent) {
    double sum_percent = 0;
    for (const double error : errors) sum_percent += error;
    table.AddRow({suite, absl::StrCat(errors.size()),
                  PercentOrDash(sum_percent / static_cast<double>(errors.size())),
                  PercentOrDash(*std::max_element(errors.begin(), errors.end()))});
  }
  return table.ToText();
}

// How often the memory model says the same as the run: fits or out of memory.
std::string VerdictsText(const ValidationReport& report) {
  int64_t judged = 0;
  int64_t right = 0;
  for (const ValidationRow& row : report.rows) {
    if (!row.measured_fits.has_value() || !row.predicted_fits.has_value()) continue;
    ++judged;
    right += *row.measured_fits == *row.predicted_fits ? 1 : 0;
  }
  if (judged == 0) return "";
  return absl::StrCat("memory verdict (fits or not): right in ", right, " of ", judged, " runs\n");
}

}  // namespace

std::string ValidationJson(const ValidationReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Field("parameter_set", report.parameter_set);
  json.Key("rows");
  json.BeginArray();
  for (const ValidationRow& row : report.rows) WriteRow(row, &json);
  json.EndArray();
  json.Key("groups");
  json.BeginArray();
  for (const ValidationGroup& group : report.groups) WriteGroup(group, &json);
  json.EndArray();
  json.EndObject();
  return json.Finish();
}

std::string ValidationText(const ValidationReport& report, bool with_rows) {
  return absl::StrCat(with_rows ? absl::StrCat(RowsText(report), "\n") : "", GroupsText(report),
                      "\n", SuitesText(report), "\n", VerdictsText(report), "parameter set ",
                      report.parameter_set, "\n");
}

}  // namespace sextant::cli
