// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_DETECT_H_
#define SEXTANT_CALIBRATION_INGEST_DETECT_H_

#include "absl/strings/string_view.h"

namespace sextant::ingest {

// What a file is, by its content; names and suffixes say nothing (DLLogger writes ".json" files
// that are no JSON).
enum class Format : int {
  kUnknown,
  kMeasurementTable,  // our own CSV
  kNcclTests,
  kKineto,
  kTrainingLog,
  kServing,
  kNsys,
};
absl::string_view FormatName(Format format);  // "nccl-tests", "kineto", ...

// The format of a text (unpacked): a JSON document by its keys, anything else by the first line
// that only one format has. Linear in what comes before it. Thread-safe.
Format DetectFormat(absl::string_view text);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_DETECT_H_
