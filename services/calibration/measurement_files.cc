// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/measurement_files.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "calibration/ingest/ingest.h"
#include "calibration/ingest/row_builder.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/read_measurements.h"
#include "common/base/status_macros.h"
#include "common/catalog/job_reader.h"

namespace sextant::calibration_service {
namespace {

namespace v1 = sextant::calibration::v1;
using sextant::calibration::Measurements;
using sextant::calibration::RowFacts;

constexpr absl::string_view kKinds[] = {"operators", "collectives", "training", "inference"};

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// All columns that the reader of a kind asks for, and those that the rows have besides.
std::string KindCsv(size_t kind, absl::Span<const MeasurementRecord* const> rows) {
  const ingest::MeasuredRow empty{static_cast<ingest::RowKind>(kind), {}};
  const std::string csv = ingest::RowsCsv(empty.kind, {&empty, 1});
  std::vector<std::string> columns = absl::StrSplit(csv.substr(0, csv.find('\n')), ',');
  std::set<std::string> known(columns.begin(), columns.end());
  for (const MeasurementRecord* row : rows) {
    for (const auto& [name, value] : row->columns) {
      if (known.insert(name).second) columns.push_back(name);
    }
  }
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", CsvField(columns[i]));
  }
  text.push_back('\n');
  for (const MeasurementRecord* row : rows) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto field = row->columns.find(columns[i]);
      absl::StrAppend(&text, i == 0 ? "" : ",",
                      field == row->columns.end() ? "" : CsvField(field->second));
    }
    text.push_back('\n');
  }
  return text;
}

// Stored text is valid everywhere: no zero bytes, and UTF-8.
std::string Clean(absl::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0x80           ? 1
                          : (byte >> 5) == 0x06 ? 2
                          : (byte >> 4) == 0x0e ? 3
                          : (byte >> 3) == 0x1e ? 4
                                                : 0;
    bool valid = length > 0 && byte != 0 && i + length <= text.size();
    for (size_t k = 1; valid && k < length; ++k) {
      valid = (static_cast<unsigned char>(text[i + k]) >> 6) == 0x02;
    }
    if (valid) {
      absl::StrAppend(&clean, text.substr(i, length));
    } else {
      clean.push_back('?');
    }
    i += valid ? length : 1;
  }
  return clean;
}

std::string Column(const MeasurementRecord& row, const std::string& name) {
  const auto found = row.columns.find(name);
  return found == row.columns.end() ? "" : found->second;
}

// "measured=2025-12-19 10:49:15" of the notes.
std::string MeasuredTime(const MeasurementRecord& row) {
  for (const char* column : {"notes", "metric_notes"}) {
    for (absl::string_view note : absl::StrSplit(Column(row, column), ';')) {
      const size_t at = note.find("measured=");
      if (at != absl::string_view::npos) return std::string(note.substr(at + 9));
    }
  }
  return "";
}

MeasurementRecord RecordOf(absl::string_view kind, std::map<std::string, std::string> columns) {
  MeasurementRecord row;
  row.kind = std::string(kind);
  for (auto& [name, value] : columns) {
    if (!value.empty()) row.columns[Clean(name)] = Clean(value);
  }
  row.id = Column(row, "id");
  if (row.id.empty()) {
    ingest::RowFingerprint print;
    for (const auto& [name, value] : row.columns) {
      print.Add(name);
      print.Add(value);
    }
    row.id = absl::StrCat("row-", print.Hex());
    row.columns["id"] = row.id;
  }
  row.accelerator = Column(row, "accelerator");
  row.software =
      Column(row, "software").empty() ? Column(row, "framework") : Column(row, "software");
  row.suite = Column(row, "suite");
  row.measured_time = MeasuredTime(row);
  return row;
}

void Refuse(FileContent* content, RefusedMeasurement refused) {
  constexpr size_t kListed = 1000;
  ++content->refused_count;
  if (content->refused.size() < kListed) content->refused.push_back(std::move(refused));
}

template <typename Row>
void AppendFacts(const std::vector<Row>& rows, std::vector<const RowFacts*>* facts) {
  for (const Row& row : rows) facts->push_back(&row.facts);
}

std::vector<const RowFacts*> FactsOf(const Measurements& typed, size_t kind) {
  std::vector<const RowFacts*> facts;
  switch (kind) {
    case 0:
      AppendFacts(typed.operators, &facts);
      break;
    case 1:
      AppendFacts(typed.collectives, &facts);
      break;
    case 2:
      AppendFacts(typed.training, &facts);
      break;
    default:
      AppendFacts(typed.inference, &facts);
      break;
  }
  return facts;
}

std::vector<const MeasurementRecord*> OfKind(absl::Span<const MeasurementRecord> rows,
                                             absl::string_view kind) {
  std::vector<const MeasurementRecord*> some;
  for (const MeasurementRecord& row : rows) {
    if (row.kind == kind) some.push_back(&row);
  }
  return some;
}

// Moves rows that the typed readers refuse from `rows` to `refused`.
absl::Status Screen(const std::string& file_name, const catalog::Catalog& catalog,
                    FileContent* content) {
  std::vector<MeasurementRecord> good;
  for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
    const auto rows = OfKind(content->rows, kKinds[kind]);
    if (rows.empty()) continue;
    Measurements typed;
    SEXTANT_RETURN_IF_ERROR(
        sextant::calibration::ParseMeasurements(KindCsv(kind, rows), file_name, catalog, &typed));
    const auto facts = FactsOf(typed, kind);
    if (facts.size() != rows.size()) return absl::InternalError("rows were lost while reading");
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string& reason =
          facts[i]->refusal.empty() ? facts[i]->skip_reason : facts[i]->refusal;
      if (reason.empty()) {
        good.push_back(*rows[i]);
      } else {
        Refuse(content, {rows[i]->id, 0, Clean(reason)});
      }
    }
  }
  content->rows = std::move(good);
  return absl::OkStatus();
}

absl::Status ReadTable(const std::string& text, const std::string& file_name,
                       const catalog::Catalog& catalog, FileContent* content) {
  // The typed reader knows which kind the header is of, and says what is missing.
  Measurements typed;
  SEXTANT_RETURN_IF_ERROR(
      sextant::calibration::ParseMeasurements(text, file_name, catalog, &typed));
  size_t kind = 0;
  while (kind + 1 < std::size(kKinds) && FactsOf(typed, kind).empty()) ++kind;
  SEXTANT_ASSIGN_OR_RETURN(const auto table, sextant::calibration::ParseCsv(text, file_name));
  content->format = "measurement-table";
  content->summary = absl::StrCat(table.rows.size(), " rows of ", kKinds[kind]);
  for (const std::vector<std::string>& fields : table.rows) {
    std::map<std::string, std::string> columns;
    for (size_t i = 0; i < fields.size(); ++i) columns[table.header[i]] = fields[i];
    content->rows.push_back(RecordOf(kKinds[kind], std::move(columns)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ingest::IngestContext> ContextOf(const v1::MeasurementFile& file,
                                                const catalog::Catalog& catalog) {
  const v1::MeasurementContext& given = file.context();
  ingest::IngestContext context;
  context.accelerator = given.accelerator();
  context.cluster = given.cluster();
  context.software = given.software();
  context.collective = given.collective();
  if (given.gpu_count() > 0) context.gpu_count = given.gpu_count();
  if (given.node_count() > 0) context.node_count = given.node_count();
  if (!given.suite().empty()) context.suite = given.suite();
  if (!given.job_yaml().empty()) {
    // Inline and by catalog name only: a caller must not choose which files this process reads.
    if (absl::StrContains(given.job_yaml(), '/') || absl::StrContains(given.job_yaml(), ".json") ||
        absl::StrContains(given.job_yaml(), ".yaml")) {
      return absl::InvalidArgumentError(
          "context.job_yaml names a file, which the server does not read; write model and cluster "
          "by catalog name or inline");
    }
    SEXTANT_ASSIGN_OR_RETURN(context.job,
                             catalog::ReadJob(given.job_yaml(), "context.job_yaml", {}, catalog));
  }
  return context;
}

}  // namespace

absl::StatusOr<FileContent> ReadMeasurementFile(const v1::MeasurementFile& file,
                                                const catalog::Catalog& catalog) {
  const std::string name = file.file_name().empty() ? "measurements" : file.file_name();
  if (file.csv_text().empty() && file.content().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has no content; give csv_text or content"));
  }
  FileContent content;
  SEXTANT_ASSIGN_OR_RETURN(
      const std::string text,
      ingest::UnpackedText(file.csv_text().empty() ? file.content() : file.csv_text()));
  const ingest::Format format = ingest::DetectFormat(text);
  if (format == ingest::Format::kMeasurementTable || format == ingest::Format::kUnknown) {
    SEXTANT_RETURN_IF_ERROR(ReadTable(text, name, catalog, &content));
  } else {
    SEXTANT_ASSIGN_OR_RETURN(const ingest::IngestContext context, ContextOf(file, catalog));
    SEXTANT_ASSIGN_OR_RETURN(ingest::Ingested ingested, ingest::Ingest(text, name, context));
    content.format = std::string(ingest::FormatName(format));
    content.summary = Clean(ingested.summary);
    for (const ingest::Refusal& refusal : ingested.refusals.items()) {
      Refuse(&content, {Clean(refusal.example), refusal.first_line, Clean(refusal.reason)});
      content.refused_count += refusal.count - 1;
    }
    for (ingest::MeasuredRow& row : ingested.rows) {
      content.rows.push_back(
          RecordOf(kKinds[static_cast<size_t>(row.kind)], std::move(row.columns)));
    }
  }
  SEXTANT_RETURN_IF_ERROR(Screen(name, catalog, &content));
  return content;
}

absl::StatusOr<Measurements> TypedMeasurements(absl::Span<const MeasurementRecord> records,
                                               const catalog::Catalog& catalog) {
  Measurements typed;
  for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
    const auto rows = OfKind(records, kKinds[kind]);
    if (rows.empty()) continue;
    SEXTANT_RETURN_IF_ERROR(
        sextant::calibration::ParseMeasurements(KindCsv(kind, rows), "store", catalog, &typed));
  }
  return typed;
}

}  // namespace sextant::calibration_service
