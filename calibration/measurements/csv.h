// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_MEASUREMENTS_CSV_H_
#define SEXTANT_CALIBRATION_MEASUREMENTS_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sextant::calibration {

// A CSV file as text fields. Every row has as many fields as the header.
struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<int64_t> lines;  // where each row starts, from 1

  // Index of a column, -1 where it is lacking. O(columns).
  int Column(absl::string_view name) const;
};

// RFC 4180: quoted fields with commas, line breaks and doubled quotes; LF or CRLF; a byte order
// mark, empty lines and a missing last line break are accepted.
// INVALID_ARGUMENT names every line (the first ten) whose number of fields differs from the
// header's, an unclosed quote, a column that is named twice, a file without header.
absl::StatusOr<CsvTable> ParseCsv(absl::string_view text, absl::string_view file_name);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_MEASUREMENTS_CSV_H_
