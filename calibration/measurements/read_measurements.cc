// SPDX-License-Identifier: Apache-2.0
#include "calibration/measurements/read_measurements.h"

#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/row_reader.h"
#include "common/base/status_macros.h"

namespace sextant::calibration {
namespace {

enum class FileKind : int { kOperators, kCollectives, kTraining, kInference };

struct FileFormat {
  FileKind kind;
  absl::string_view name;
  std::vector<std::string> columns;
};

// The columns that a file of each kind must have; others are ignored.
const std::vector<FileFormat>& Formats() {
  static const auto& formats = *new std::vector<FileFormat>{
      {FileKind::kOperators, "operators", {"id",         "suite",
                                           "role",       "quality",
                                           "source",     "accelerator",
                                           "software",   "family",
                                           "op",         "dtype",
                                           "m",          "k",
                                           "n",          "batch",
                                           "heads",      "kv_heads",
                                           "head_dim",   "seq_q",
                                           "seq_kv",     "causal",
                                           "kv_dtype",   "experts",
                                           "topk",       "moe_tp",
                                           "moe_ep",     "expert_distribution",
                                           "groups",     "layout",
                                           "latency_us", "notes"}},
      {FileKind::kCollectives,
       "collectives",
       {"id", "suite", "role", "quality", "source", "accelerator", "cluster", "fabric_stated",
        "software", "gpus", "nodes", "collective", "bytes", "time_us", "algbw_GBps", "busbw_GBps",
        "interconnect", "notes"}},
      {FileKind::kTraining,
       "training",
       {"id",
        "suite",
        "role",
        "quality",
        "source",
        "accelerator",
        "cluster",
        "framework",
        "gpus",
        "gpus_per_node",
        "model",
        "hidden",
        "layers",
        "heads",
        "kv_heads",
        "ffn",
        "gated_ffn",
        "vocab",
        "tied_embeddings",
        "seq",
        "experts",
        "topk",
        "precision",
        "gbs",
        "mbs",
        "tp",
        "sp",
        "pp",
        "vpp",
        "schedule",
        "cp",
        "ep",
        "dp",
        "zero",
        "recompute",
        "step_time_s",
        "tokens_per_s_per_gpu",
        "mem_gb",
        "mem_alloc_gb",
        "status"}},
      {FileKind::kInference, "inference", {"id",          "suite",      "role",
                                           "quality",     "source",     "accelerator",
                                           "cluster",     "load",       "disaggregated",
                                           "gpus",        "framework",  "model",
                                           "precision",   "tp",         "pp",
                                           "ep",          "dp",         "batch_or_concurrency",
                                           "input_len",   "output_len", "ttft_ms",
                                           "itl_ms",      "e2e_s",      "throughput_tok_s",
                                           "metric_notes"}}};
  return formats;
}

// The kind whose columns are all there; else INVALID_ARGUMENT with what the nearest kind misses.
absl::StatusOr<FileKind> DetectKind(const CsvTable& table, absl::string_view file_name) {
  const FileFormat* nearest = nullptr;
  std::vector<std::string> missing_of_nearest;
  size_t most_found = 0;
  for (const FileFormat& format : Formats()) {
    std::vector<std::string> missing;
    for (const std::string& column : format.columns) {
      if (table.Column(column) < 0) missing.push_back(column);
    }
    if (missing.empty()) return format.kind;
    const size_t found = format.columns.size() - missing.size();
    if (nearest == nullptr || found > most_found) {
      most_found = found;
      nearest = &format;
      missing_of_nearest = std::move(missing);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file_name,
      ": is not a file of measurements (operators, collectives, training or "
      "inference); as ",
      nearest->name, " it misses the columns: ", absl::StrJoin(missing_of_nearest, ", ")));
}

}  // namespace

absl::Status ParseMeasurements(absl::string_view text, absl::string_view file_name,
                               const catalog::Catalog& catalog, Measurements* measurements) {
  SEXTANT_ASSIGN_OR_RETURN(const CsvTable table, ParseCsv(text, file_name));
  SEXTANT_ASSIGN_OR_RETURN(const FileKind kind, DetectKind(table, file_name));
  std::map<std::string, int, std::less<>> index;
  for (size_t i = 0; i < table.header.size(); ++i) {
    index.emplace(table.header[i], static_cast<int>(i));
  }
  Lookups lookups(catalog);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    RowReader row(table, i, index);
    switch (kind) {
      case FileKind::kOperators:
        measurements->operators.push_back(ReadOperatorRow(row, lookups));
        break;
      case FileKind::kCollectives:
        measurements->collectives.push_back(ReadCollectiveRow(row, lookups));
        break;
      case FileKind::kTraining:
        measurements->training.push_back(ReadTrainingRow(row, lookups));
        break;
      case FileKind::kInference:
        measurements->inference.push_back(ReadInferenceRow(row, lookups));
        break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Measurements> ReadMeasurements(absl::Span<const std::string> paths,
                                              const catalog::Catalog& catalog) {
  Measurements measurements;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return absl::NotFoundError(absl::StrCat(path, ": no such file, or not readable"));
    std::ostringstream text;
    text << file.rdbuf();
    if (file.bad() || text.fail()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": is empty or cannot be read"));
    }
    SEXTANT_RETURN_IF_ERROR(ParseMeasurements(text.str(), path, catalog, &measurements));
  }
  return measurements;
}

}  // namespace sextant::calibration
