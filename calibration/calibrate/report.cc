// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "calibration/calibrate/calibrate.h"

namespace sextant::calibration {
namespace {

constexpr size_t kShownRefusals = 20;

nlohmann::ordered_json OrNull(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string PercentOrDash(const std::optional<double>& value) {
  return value ? absl::StrFormat("%10.1f", *value) : absl::StrFormat("%10s", "-");
}

}  // namespace

std::string CalibrationReportText(const CalibrationReport& report) {
  std::string text = absl::StrFormat(
      "Parameter set %s (%s), fitted from %s\n%d of %d offered rows used, %d refused\n\n",
      report.name, report.version, report.initial_version, report.used_row_count,
      report.offered_row_count, report.refused.size());
  absl::StrAppendFormat(&text, "%-12s %-22s %-20s %7s %10s %10s %10s\n", "stage", "accelerator",
                        "family", "rows", "initial %", "train %", "held out %");
  for (const CalibrationGroup& group : report.groups) {
    absl::StrAppendFormat(&text, "%-12s %-22s %-20s %7d %10.1f %10.1f %s\n", group.stage,
                          group.accelerator, group.family, group.row_count,
                          group.initial_mape_percent, group.train_mape_percent,
                          PercentOrDash(group.held_out_mape_percent));
  }
  if (report.initial_mape_percent && report.held_out_mape_percent) {
    absl::StrAppendFormat(
        &text,
        "\nMean absolute error on held-out groups: %.1f %%, under the initial set %.1f %%: %s\n",
        *report.held_out_mape_percent, *report.initial_mape_percent,
        report.improved ? "better" : "worse, not to be published");
  } else {
    text += "\nNot judged on held-out groups.\n";
  }
  for (size_t i = 0; i < report.refused.size() && i < kShownRefusals; ++i) {
    absl::StrAppend(&text, "refused ", report.refused[i].id, ": ", report.refused[i].reason, "\n");
  }
  if (report.refused.size() > kShownRefusals) {
    absl::StrAppend(&text, "and ", report.refused.size() - kShownRefusals, " more refused rows\n");
  }
  return text;
}

std::string CalibrationReportJson(const CalibrationReport& report) {
  nlohmann::ordered_json json;
  json["name"] = report.name;
  json["parameter_set"] = report.version;
  json["initial_parameter_set"] = report.initial_version;
  json["offered_row_count"] = report.offered_row_count;
  json["used_row_count"] = report.used_row_count;
  json["initial_mape_percent"] = OrNull(report.initial_mape_percent);
  json["held_out_mape_percent"] = OrNull(report.held_out_mape_percent);
  json["improved"] = report.improved;
  json["groups"] = nlohmann::ordered_json::array();
  for (const CalibrationGroup& group : report.groups) {
    nlohmann::ordered_json item;
    item["stage"] = group.stage;
    item["accelerator"] = group.accelerator;
    item["family"] = group.family;
    item["row_count"] = group.row_count;
    item["initial_mape_percent"] = group.initial_mape_percent;
    item["train_mape_percent"] = group.train_mape_percent;
    item["held_out_mape_percent"] = OrNull(group.held_out_mape_percent);
    json["groups"].push_back(std::move(item));
  }
  json["refused"] = nlohmann::ordered_json::array();
  for (const RefusedRow& row : report.refused) {
    json["refused"].push_back({{"id", row.id}, {"reason", row.reason}});
  }
  json["notes"] = report.notes;
  // Ids and reasons are a file's text and need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace sextant::calibration
