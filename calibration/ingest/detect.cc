// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/detect.h"

#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "calibration/ingest/json.h"
#include "calibration/ingest/nccl_tests.h"
#include "calibration/ingest/nsys.h"
#include "calibration/ingest/serving.h"
#include "calibration/ingest/text.h"
#include "calibration/ingest/training_log.h"

namespace sextant::ingest {
namespace {

// A JSON document: its first keys tell a trace from a benchmark.
Format DetectJson(absl::string_view text) {
  JsonReader reader(text);
  if (reader.AtArray()) {
    reader.EnterArray();
    if (!reader.NextElement()) return Format::kUnknown;
    const JsonValue first = reader.Read();
    if (first.Find("ph") != nullptr) return Format::kKineto;
    return IsServingDocument(first) ? Format::kServing : Format::kUnknown;
  }
  std::string key;
  reader.EnterObject();
  for (int i = 0; i < 1000 && reader.NextMember(&key); ++i) {
    if (key == "traceEvents") return Format::kKineto;
    reader.Skip();
  }
  JsonReader again(text);
  const JsonValue document = again.Read();
  return IsServingDocument(document) ? Format::kServing : Format::kUnknown;
}

// Our tables begin with these columns.
bool IsTableHeader(absl::string_view line) {
  return absl::StartsWith(line, "id,suite,") || absl::StartsWith(line, "\"id\",\"suite\",");
}

Format DetectLines(absl::string_view text) {
  LineReader lines(text);
  bool first = true;
  while (lines.Next()) {
    const absl::string_view line = lines.line();
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    if (first && IsTableHeader(line)) return Format::kMeasurementTable;
    first = false;
    if (IsServingSummaryStart(line)) return Format::kServing;
    if (IsNsysKernelHeader(line)) return Format::kNsys;
    if (IsNcclTestsRow(line)) return Format::kNcclTests;
    if (TrainingLogKindOfLine(line)) return Format::kTrainingLog;
  }
  return Format::kUnknown;
}

}  // namespace

absl::string_view FormatName(Format format) {
  constexpr std::array<absl::string_view, 7> kNames = {
      "unknown", "measurement table", "nccl-tests", "kineto", "training log", "serving", "nsys"};
  return kNames[static_cast<size_t>(format)];
}

Format DetectFormat(absl::string_view text) {
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (absl::StartsWith(start, "{") || absl::StartsWith(start, "[")) {
    const Format format = DetectJson(text);
    if (format != Format::kUnknown) return format;
    // "[1,0]<stdout>:" and "[2025-12-19 10:49:15]" open with a bracket as well.
  }
  return DetectLines(text);
}

}  // namespace sextant::ingest
