// SPDX-License-Identifier: Apache-2.0
// Which measurements does this file hold? The one entry for every format.
#ifndef SEXTANT_CALIBRATION_INGEST_INGEST_H_
#define SEXTANT_CALIBRATION_INGEST_INGEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibration/ingest/detect.h"
#include "calibration/ingest/measured_rows.h"
#include "calibration/ingest/refusals.h"

namespace sextant::ingest {

struct Ingested {
  Format format = Format::kUnknown;
  std::vector<MeasuredRow> rows;  // ids are distinct
  Refusals refusals;
  std::string summary;  // one line: "nccl-tests: 1 run, 34 rows of all_reduce on 8 ranks"
};

// Limit of an unpacked file.
inline constexpr size_t kIngestLimitBytes = size_t{1} << 30;

// The text of a file: gzip data unpacked, anything else as it is. INVALID_ARGUMENT for gzip data
// that cannot be unpacked, RESOURCE_EXHAUSTED above kIngestLimitBytes. What a damaged gzip file
// holds before the damage is text.
absl::StatusOr<std::string> UnpackedText(std::string bytes);

// Reads an unpacked text of any format but our own tables, which calibration/measurements reads.
// INVALID_ARGUMENT where the format is not known or is a table of measurements. Rows that cannot be
// are in `refusals`. Thread-safe.
absl::StatusOr<Ingested> Ingest(absl::string_view text, absl::string_view file_name,
                                const IngestContext& context);

// A context file's lines over `context`: "key: value" with the keys accelerator, cluster, software,
// collective, gpus, nodes, suite, role, source and job (a path, given back in `job_path`); '#'
// starts a comment. INVALID_ARGUMENT with every line that is wrong.
absl::Status ReadContextText(absl::string_view text, absl::string_view file_name,
                             IngestContext* context, std::string* job_path);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_INGEST_H_
