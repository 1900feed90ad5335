// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_MEASUREMENTS_READ_MEASUREMENTS_H_
#define SEXTANT_CALIBRATION_MEASUREMENTS_READ_MEASUREMENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibration/measurements/rows.h"
#include "common/catalog/catalog.h"

namespace sextant::calibration {

// Rows of tidy CSV files; the kind of each is told by its header. A row that lacks a field without
// default, or is invalid, is kept with `refusal`.
// NOT_FOUND for a file that is not there; INVALID_ARGUMENT for one that is not such a CSV, with
// the columns that are missing.
absl::StatusOr<Measurements> ReadMeasurements(absl::Span<const std::string> paths,
                                              const catalog::Catalog& catalog);

// The same for one file's text, appended to `measurements`. `file_name` is for messages.
absl::Status ParseMeasurements(absl::string_view text, absl::string_view file_name,
                               const catalog::Catalog& catalog, Measurements* measurements);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_MEASUREMENTS_READ_MEASUREMENTS_H_
