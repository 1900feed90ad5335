// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/ingest.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/gunzip.h"
#include "calibration/ingest/text.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"

namespace sextant::ingest {
namespace {

std::string Summary(const NcclTestsReading& reading) {
  std::string text = absl::StrCat("nccl-tests: ", reading.runs.size(),
                                  reading.runs.size() == 1 ? " run" : " runs");
  for (size_t i = 0; i < reading.runs.size() && i < 3; ++i) {
    const NcclTestsRun& run = reading.runs[i];
    absl::StrAppend(&text, ", ", run.rows.size(), " rows of ",
                    run.collective.empty() ? "an unnamed collective" : run.collective);
    const auto ranks = run.rank_count ? run.rank_count : run.derived_rank_count;
    if (ranks) absl::StrAppend(&text, " on ", *ranks, " ranks");
  }
  return text;
}

std::string Summary(const KinetoReading& reading) {
  return absl::StrCat("PyTorch trace: ", reading.kernel_count, " kernels, ",
                      reading.kernel_seconds * 1e3, " ms; ", reading.communication_kernel_count,
                      " of NCCL; ", reading.gemms.size(), " matrix products with shapes");
}

std::string Summary(const TrainingLogReading& reading) {
  return absl::StrCat(reading.framework, " log: ", reading.steps.size(), " steps, ",
                      reading.step_seconds
                          ? absl::StrCat(*reading.step_seconds, " s (", reading.step_note, ")")
                          : reading.step_refusal);
}

std::string Summary(const ServingReading& reading) {
  std::string text = absl::StrCat("serving benchmark: ", reading.runs.size(),
                                  reading.runs.size() == 1 ? " run" : " runs");
  if (!reading.runs.empty()) {
    absl::StrAppend(&text, " of ", reading.runs[0].tool, ", ",
                    reading.runs[0].request_count.value_or(0), " requests");
  }
  return text;
}

std::string Summary(const NsysReading& reading) {
  return absl::StrCat("nsys summary: ", reading.kernels.size(), " kernels",
                      reading.complete ? "" : " of a longer list");
}

template <typename Reading>
void Take(Reading reading, const IngestContext& context, Ingested* ingested) {
  ingested->summary = Summary(reading);
  ingested->refusals = std::move(reading.refusals);
  std::set<std::string> ids;
  for (MeasuredRow& row : RowsOf(reading, context, &ingested->refusals)) {
    if (ids.insert(row.columns["id"]).second) {
      ingested->rows.push_back(std::move(row));
    } else {
      ingested->refusals.Add("is a copy of a measurement before it");
    }
  }
}

}  // namespace

absl::StatusOr<std::string> UnpackedText(std::string bytes) {
  if (!IsGzip(bytes)) return bytes;
  SEXTANT_ASSIGN_OR_RETURN(Inflated inflated, Gunzip(bytes, kIngestLimitBytes));
  return std::move(inflated.text);
}

absl::StatusOr<Ingested> Ingest(absl::string_view text, absl::string_view file_name,
                                const IngestContext& given) {
  IngestContext context = given;
  const size_t slash = file_name.rfind('/');
  const absl::string_view base =
      slash == absl::string_view::npos ? file_name : file_name.substr(slash + 1);
  if (context.source.empty()) context.source = std::string(base);
  Ingested ingested;
  ingested.format = DetectFormat(text);
  switch (ingested.format) {
    case Format::kNcclTests:
      Take(ReadNcclTests(text, base), context, &ingested);
      return ingested;
    case Format::kKineto:
      Take(ReadKineto(text), context, &ingested);
      return ingested;
    case Format::kTrainingLog:
      Take(ReadTrainingLog(text), context, &ingested);
      return ingested;
    case Format::kServing:
      Take(ReadServing(text), context, &ingested);
      return ingested;
    case Format::kNsys:
      Take(ReadNsys(text), context, &ingested);
      return ingested;
    case Format::kMeasurementTable:
      return absl::InvalidArgumentError(
          absl::StrCat(file_name, ": is a table of measurements and needs no ingest"));
    case Format::kUnknown:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file_name,
      ": is of no format that is known (nccl-tests output, PyTorch trace, training log of "
      "Megatron, "
      "NeMo, nanotron, torchtitan or MLPerf, serving benchmark, nsys kernel summary)"));
}

absl::Status ReadContextText(absl::string_view text, absl::string_view file_name,
                             IngestContext* context, std::string* job_path) {
  base::Violations violations;
  LineReader lines(text);
  while (lines.Next()) {
    absl::string_view line = lines.line();
    // A '#' inside a value ("source: page#table") is part of it.
    if (const size_t hash = line.find('#');
        hash == 0 || (hash != absl::string_view::npos && line[hash - 1] == ' ')) {
      line = line.substr(0, hash);
    }
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line == "---") continue;
    const std::string where = absl::StrCat(file_name, ":", lines.number());
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) {
      violations.Add(where, "must be \"key: value\"");
      continue;
    }
    const absl::string_view key = absl::StripAsciiWhitespace(line.substr(0, colon));
    absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) {
      value = value.substr(1, value.size() - 2);
    }
    struct Text {
      absl::string_view key;
      std::string* field;
    };
    const Text texts[] = {{"accelerator", &context->accelerator},
                          {"cluster", &context->cluster},
                          {"software", &context->software},
                          {"collective", &context->collective},
                          {"suite", &context->suite},
                          {"role", &context->role},
                          {"source", &context->source},
                          {"job", job_path}};
    bool known = false;
    for (const Text& field : texts) {
      if (field.key != key) continue;
      *field.field = std::string(value);
      known = true;
    }
    if (key == "gpus" || key == "nodes") {
      const auto count = ParseCount(value);
      if (!count || *count < 1) {
        violations.Add(where, absl::StrCat(key, " is \"", value, "\" but must be at least 1"));
      } else {
        (key == "gpus" ? context->gpu_count : context->node_count) = count;
      }
    } else if (!known) {
      violations.Add(where, absl::StrCat("\"", key.substr(0, 60),
                                         "\" is no key; known are accelerator, cluster, software, "
                                         "collective, gpus, nodes, suite, role, source, job"));
    }
  }
  if (context->role != "fit" && context->role != "validate") {
    violations.Add(std::string(file_name), "role must be fit or validate");
  }
  return violations.ToStatus();
}

}  // namespace sextant::ingest
