// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/operators.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/read_measurements.h"
#include "common/base/status_macros.h"
#include "common/orchestrator/local_ports.h"
#include "services/cli/library.h"
#include "services/cli/remote.h"
#include "services/cli/render/operators.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using calibration::Measurements;
using calibration::OperatorRow;

std::string CsvLine(const std::vector<std::string>& fields) {
  return absl::StrCat(absl::StrJoin(fields, ",",
                                    [](std::string* out, const std::string& field) {
                                      absl::StrAppend(out, CsvField(field));
                                    }),
                      "\n");
}

// The table with every row on `accelerator`, whatever its column says or whether there is one.
absl::StatusOr<std::string> WithAccelerator(const std::string& text, const std::string& file,
                                            const std::string& accelerator) {
  SEXTANT_ASSIGN_OR_RETURN(calibration::CsvTable table, calibration::ParseCsv(text, file));
  const int column = table.Column("accelerator");
  if (column < 0) table.header.push_back("accelerator");
  std::string changed = CsvLine(table.header);
  for (std::vector<std::string>& row : table.rows) {
    if (column < 0) {
      row.push_back(accelerator);
    } else {
      row[static_cast<size_t>(column)] = accelerator;
    }
    changed += CsvLine(row);
  }
  return changed;
}

absl::StatusOr<Measurements> ReadTables(const OperatorsOptions& options,
                                        const catalog::Catalog& catalog, Terminal& terminal) {
  Measurements measurements;
  for (const std::string& file : options.files) {
    const std::string name = file == "-" ? "stdin" : file;
    SEXTANT_ASSIGN_OR_RETURN(std::string text, terminal.Read(file));
    if (!options.accelerator.empty()) {
      SEXTANT_ASSIGN_OR_RETURN(text, WithAccelerator(text, name, options.accelerator));
    }
    const size_t count_before = measurements.size() - measurements.operators.size();
    SEXTANT_RETURN_IF_ERROR(calibration::ParseMeasurements(text, name, catalog, &measurements));
    if (measurements.size() - measurements.operators.size() > count_before) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": is no operator table; 'sextant validate' takes all kinds"));
    }
  }
  return measurements;
}

OperatorAnswer Unanswered(const OperatorRow& row) {
  return {.id = row.facts.id,
          .accelerator = row.facts.accelerator,
          .profile = row.facts.profile,
          .family = row.facts.family,
          .measured_seconds =
              row.measured_seconds > 0 ? std::optional(row.measured_seconds) : std::nullopt,
          .reason = row.facts.refusal.empty() ? row.facts.skip_reason : row.facts.refusal,
          .warnings = row.facts.warnings};
}

// Asks `port` once per accelerator and profile.
absl::StatusOr<std::vector<OperatorAnswer>> Answer(const std::vector<OperatorRow>& rows,
                                                   orchestrator::OperatorCostPort& port) {
  std::vector<OperatorAnswer> answers;
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> batches;
  for (size_t i = 0; i < rows.size(); ++i) {
    answers.push_back(Unanswered(rows[i]));
    if (rows[i].facts.Usable()) {
      // Equal names need not be equal values: a row may have been measured at another clock.
      batches[{absl::StrCat(rows[i].accelerator->name, " ", rows[i].accelerator->boost_clock_hz),
               rows[i].facts.profile}]
          .push_back(i);
    }
  }
  for (const auto& [key, indices] : batches) {
    std::vector<operator_cost::Operator> operators;
    for (const size_t i : indices) operators.push_back(rows[i].op);
    SEXTANT_ASSIGN_OR_RETURN(
        const auto estimates,
        port.EstimateOperators(operators, *rows[indices[0]].accelerator, key.second));
    for (size_t j = 0; j < indices.size(); ++j) answers[indices[j]].estimate = estimates[j];
  }
  return answers;
}

}  // namespace

absl::StatusOr<ExitCode> TimeOperators(const CommonOptions& common, const OperatorsOptions& options,
                                       Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  if (!options.accelerator.empty()) {
    SEXTANT_RETURN_IF_ERROR(catalog.FindAccelerator(options.accelerator).status());
  }
  SEXTANT_ASSIGN_OR_RETURN(const Measurements measurements, ReadTables(options, catalog, terminal));
  std::unique_ptr<orchestrator::OperatorCostPort> port;
  if (common.server.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(const auto parameters, ParametersInUse(common, catalog, terminal));
    port = std::make_unique<orchestrator::LocalOperatorCost>(parameters);
  } else {
    port = std::make_unique<RemoteOperatorCost>(ConnectedClient(common, terminal));
  }
  SEXTANT_ASSIGN_OR_RETURN(const std::vector<OperatorAnswer> answers,
                           Answer(measurements.operators, *port));
  SEXTANT_ASSIGN_OR_RETURN(const auto parameters, port->CurrentParameters());
  terminal.Print(common.output == "json"  ? OperatorsJson(answers, parameters->version())
                 : common.output == "csv" ? OperatorsCsv(answers)
                                          : OperatorsText(answers, parameters->version()));
  return ExitCode::kOk;
}

}  // namespace sextant::cli
