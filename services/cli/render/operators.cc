// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/operators.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/number.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

std::optional<double> ErrorPercent(const OperatorAnswer& answer) {
  if (!answer.estimate.has_value() || !answer.measured_seconds.has_value()) return std::nullopt;
  return (answer.estimate->seconds / *answer.measured_seconds - 1) * 100;
}

const char* StatusOf(const OperatorAnswer& answer) {
  return answer.estimate.has_value() ? "ok" : "refused";
}

// A member of the estimate, absent where the row was refused.
template <typename T>
std::optional<T> Part(const OperatorAnswer& answer, T operator_cost::OperatorEstimate::*member) {
  if (!answer.estimate.has_value()) return std::nullopt;
  return (*answer.estimate).*member;
}

std::string BindingOf(const OperatorAnswer& answer) {
  return answer.estimate.has_value()
             ? std::string(operator_cost::BindingName(answer.estimate->binding))
             : "";
}

std::string NumberOrEmpty(const std::optional<double>& number) {
  return number.has_value() ? ShortestNumber(*number) : "";
}

}  // namespace

std::string OperatorsJson(const std::vector<OperatorAnswer>& answers,
                          const std::string& parameter_set) {
  using Estimate = operator_cost::OperatorEstimate;
  JsonWriter json;
  json.BeginObject();
  json.Field("parameter_set", parameter_set);
  json.Key("operators");
  json.BeginArray();
  for (const OperatorAnswer& answer : answers) {
    json.BeginLineObject();
    json.Field("id", answer.id);
    json.FieldOrNull("accelerator", answer.accelerator);
    json.FieldOrNull("profile", answer.profile);
    json.FieldOrNull("family", answer.family);
    json.Field("status", StatusOf(answer));
    json.FieldOrNull("reason", answer.reason);
    json.Field("predicted_seconds", Part(answer, &Estimate::seconds));
    json.Field("measured_seconds", answer.measured_seconds);
    json.Field("error_percent", ErrorPercent(answer));
    json.FieldOrNull("binding", BindingOf(answer));
    json.Field("roofline_seconds", Part(answer, &Estimate::roofline_seconds));
    json.Field("flop_count", Part(answer, &Estimate::flop_count));
    json.Field("hbm_bytes", Part(answer, &Estimate::hbm_bytes));
    json.Field("extrapolated", Part(answer, &Estimate::extrapolated));
    json.Field("warnings", answer.warnings);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Finish();
}

std::string OperatorsCsv(const std::vector<OperatorAnswer>& answers) {
  using Estimate = operator_cost::OperatorEstimate;
  std::string csv =
      "id,accelerator,profile,family,status,reason,predicted_seconds,measured_seconds,"
      "error_percent,binding,roofline_seconds,flop_count,hbm_bytes,extrapolated\n";
  for (const OperatorAnswer& answer : answers) {
    const std::optional<bool> extrapolated = Part(answer, &Estimate::extrapolated);
    absl::StrAppend(
        &csv,
        absl::StrJoin({CsvField(answer.id), CsvField(answer.accelerator), CsvField(answer.profile),
                       CsvField(answer.family), std::string(StatusOf(answer)),
                       CsvField(answer.reason), NumberOrEmpty(Part(answer, &Estimate::seconds)),
                       NumberOrEmpty(answer.measured_seconds), NumberOrEmpty(ErrorPercent(answer)),
                       BindingOf(answer), NumberOrEmpty(Part(answer, &Estimate::roofline_seconds)),
                       NumberOrEmpty(Part(answer, &Estimate::flop_count)),
                       NumberOrEmpty(Part(answer, &Estimate::hbm_bytes)),
                       std::string(!extrapolated.has_value() ? ""
                                   : *extrapolated           ? "true"
                                                             : "false")},
                      ","),
        "\n");
  }
  return csv;
}

std::string OperatorsText(const std::vector<OperatorAnswer>& answers,
                          const std::string& parameter_set) {
  Table table({{"id"},
               {"accelerator"},
               {"family"},
               {"predicted", Align::kRight},
               {"measured", Align::kRight},
               {"error", Align::kRight},
               {"roofline", Align::kRight},
               {"limited by"}});
  for (const OperatorAnswer& answer : answers) {
    if (!answer.estimate.has_value()) {
      table.AddRow(
          {answer.id, answer.accelerator, answer.family, "refused", "", "", "", answer.reason});
      continue;
    }
    const std::optional<double> error_percent = ErrorPercent(answer);
    table.AddRow(
        {answer.id, answer.accelerator, answer.family, FormatSeconds(answer.estimate->seconds),
         answer.measured_seconds.has_value() ? FormatSeconds(*answer.measured_seconds) : "-",
         error_percent.has_value() ? FormatPercent(*error_percent) : "-",
         FormatSeconds(answer.estimate->roofline_seconds),
         absl::StrCat(BindingOf(answer), answer.estimate->extrapolated ? " (extrapolated)" : "")});
  }
  return absl::StrCat(table.ToText(), "\nparameter set ", parameter_set, "\n");
}

}  // namespace sextant::cli
