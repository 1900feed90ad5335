// SPDX-License-Identifier: Apache-2.0
#include "services/cli/measured.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/read_measurements.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"

namespace sextant::cli {
namespace {

using calibration::Measurements;

template <typename Row>
void Keep(const std::set<std::string>& wanted, std::vector<Row>* rows,
          std::set<std::string>* seen) {
  std::vector<Row> kept;
  for (Row& row : *rows) {
    if (wanted.count(row.facts.id) == 0) continue;
    seen->insert(row.facts.id);
    kept.push_back(std::move(row));
  }
  *rows = std::move(kept);
}

}  // namespace

absl::StatusOr<Measurements> ReadMeasuredFiles(const std::vector<std::string>& files,
                                               const catalog::Catalog& catalog,
                                               Terminal& terminal) {
  Measurements measurements;
  base::Violations violations;
  absl::StatusCode failure = absl::StatusCode::kOk;
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = terminal.Read(file);
    const absl::Status status =
        text.ok() ? calibration::ParseMeasurements(*text, file == "-" ? "stdin" : file, catalog,
                                                   &measurements)
                  : text.status();
    if (status.ok()) continue;
    if (files.size() == 1) return status;
    AddFailure(file, status, &violations);
    failure = status.code();
  }
  if (!violations.empty()) return violations.ToStatus(failure);
  return measurements;
}

absl::Status KeepListedIds(absl::string_view list_csv, absl::string_view list_name,
                           Measurements* measurements, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const calibration::CsvTable table,
                           calibration::ParseCsv(list_csv, list_name));
  const int id_column = table.Column("id");
  if (id_column < 0) {
    return absl::InvalidArgumentError(absl::StrCat(list_name, ": lacks the column id"));
  }
  std::set<std::string> wanted;
  for (const std::vector<std::string>& row : table.rows) {
    wanted.insert(row[static_cast<size_t>(id_column)]);
  }
  std::set<std::string> seen;
  Keep(wanted, &measurements->operators, &seen);
  Keep(wanted, &measurements->collectives, &seen);
  Keep(wanted, &measurements->training, &seen);
  Keep(wanted, &measurements->inference, &seen);
  if (seen.size() < wanted.size()) {
    std::vector<std::string> missing;
    for (const std::string& id : wanted) {
      if (seen.count(id) == 0 && missing.size() < 5) missing.push_back(id);
    }
    terminal.Warn(absl::StrCat(wanted.size() - seen.size(), " of ", wanted.size(), " ids of ",
                               list_name,
                               " are in none of the files: ", absl::StrJoin(missing, ", "),
                               wanted.size() - seen.size() > missing.size() ? ", ..." : ""));
  }
  return absl::OkStatus();
}

}  // namespace sextant::cli
