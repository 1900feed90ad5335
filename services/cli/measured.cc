// SPDX-License-Identifier: Apache-2.0
#include "services/cli/measured.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibration/ingest/ingest.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/read_measurements.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/job_reader.h"

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

// Reads files one after another into one set of rows.
class FileReader {
 public:
  FileReader(const MeasuredContext& context, const catalog::Catalog& catalog, Terminal& terminal)
      : given_(context), catalog_(catalog), terminal_(terminal) {}

  absl::Status Read(const std::string& file) {
    SEXTANT_ASSIGN_OR_RETURN(std::string bytes, terminal_.Read(file));
    SEXTANT_ASSIGN_OR_RETURN(const std::string text, ingest::UnpackedText(std::move(bytes)));
    const std::string name = file == "-" ? "stdin" : file;
    const ingest::Format format = ingest::DetectFormat(text);
    if (format == ingest::Format::kMeasurementTable || format == ingest::Format::kUnknown) {
      return calibration::ParseMeasurements(text, name, catalog_, &measurements_);
    }
    SEXTANT_ASSIGN_OR_RETURN(const ingest::IngestContext context, ContextOf(file));
    SEXTANT_ASSIGN_OR_RETURN(ingest::Ingested ingested, ingest::Ingest(text, name, context));
    return Take(name, std::move(ingested));
  }

  Measurements& measurements() { return measurements_; }

 private:
  absl::StatusOr<ingest::IngestContext> ContextOf(const std::string& file) {
    ingest::IngestContext context;
    context.accelerator = given_.accelerator;
    context.cluster = given_.cluster;
    context.software = given_.software;
    context.collective = given_.collective;
    if (given_.gpu_count > 0) context.gpu_count = given_.gpu_count;
    if (given_.node_count > 0) context.node_count = given_.node_count;
    std::string job_file = given_.job_file;
    if (file != "-") {
      const std::string beside = file + ".context";
      const absl::StatusOr<std::string> text = terminal_.Read(beside);
      if (text.ok()) {
        std::string own_job;
        SEXTANT_RETURN_IF_ERROR(ingest::ReadContextText(*text, beside, &context, &own_job));
        if (!own_job.empty()) job_file = Beside(file, own_job);
      } else if (!absl::IsNotFound(text.status())) {
        return text.status();
      }
    }
    if (!job_file.empty()) {
      SEXTANT_ASSIGN_OR_RETURN(const std::string job, terminal_.Read(job_file));
      SEXTANT_ASSIGN_OR_RETURN(context.job, catalog::ReadJob(job, job_file, {}, catalog_));
    }
    return context;
  }

  // A relative path of a context file is meant from its own folder.
  static std::string Beside(const std::string& file, const std::string& path) {
    const size_t slash = file.rfind('/');
    const bool relative = !path.empty() && path[0] != '/';
    return relative && slash != std::string::npos ? file.substr(0, slash + 1) + path : path;
  }

  absl::Status Take(const std::string& name, ingest::Ingested ingested) {
    std::vector<ingest::MeasuredRow> rows;
    for (ingest::MeasuredRow& row : ingested.rows) {
      if (ids_.insert(row.columns["id"]).second) {
        rows.push_back(std::move(row));
      } else {
        ingested.refusals.Add("was measured before: its id is taken", 0, row.columns["id"]);
      }
    }
    terminal_.Note(absl::StrCat(name, ": ", ingested.summary, "; ", rows.size(), " rows taken"));
    for (const ingest::Refusal& refusal : ingested.refusals.items()) {
      terminal_.Warn(absl::StrCat(name, ": refused: ", ingest::ToString(refusal)));
    }
    for (const auto kind : {ingest::RowKind::kOperators, ingest::RowKind::kCollectives,
                            ingest::RowKind::kTraining, ingest::RowKind::kInference}) {
      const std::string csv = ingest::RowsCsv(kind, rows);
      if (csv.empty()) continue;
      SEXTANT_RETURN_IF_ERROR(calibration::ParseMeasurements(csv, name, catalog_, &measurements_));
    }
    return absl::OkStatus();
  }

  const MeasuredContext& given_;
  const catalog::Catalog& catalog_;
  Terminal& terminal_;
  Measurements measurements_;
  std::set<std::string> ids_;
};

}  // namespace

absl::StatusOr<Measurements> ReadMeasuredFiles(const std::vector<std::string>& files,
                                               const MeasuredContext& context,
                                               const catalog::Catalog& catalog,
                                               Terminal& terminal) {
  FileReader reader(context, catalog, terminal);
  base::Violations violations;
  absl::StatusCode failure = absl::StatusCode::kOk;
  for (const std::string& file : files) {
    const absl::Status status = reader.Read(file);
    if (status.ok()) continue;
    if (files.size() == 1) return status;
    AddFailure(file, status, &violations);
    failure = status.code();
  }
  if (!violations.empty()) return violations.ToStatus(failure);
  return std::move(reader.measurements());
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
