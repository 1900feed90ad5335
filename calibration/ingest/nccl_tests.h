// SPDX-License-Identifier: Apache-2.0
// What did nccl-tests (or rccl-tests) measure?
#ifndef SEXTANT_CALIBRATION_INGEST_NCCL_TESTS_H_
#define SEXTANT_CALIBRATION_INGEST_NCCL_TESTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibration/ingest/origin.h"
#include "calibration/ingest/refusals.h"

namespace sextant::ingest {

// One half of a row: out of place or in place.
struct NcclTiming {
  double time_us = 0;
  double algorithm_gigabytes_per_second = 0;  // 10^9 bytes, as printed: rounded
  double bus_gigabytes_per_second = 0;
  std::optional<double> wrong_count;  // absent where not validated ("N/A")
};

struct NcclTestsRow {
  int64_t line = 0;
  int64_t bytes = 0;  // as nccl-tests count them: the larger of a rank's buffers
  int64_t element_count = 0;
  std::string data_type;                   // "float", "half", "bfloat16"
  std::string reduction;                   // "sum"; empty or "none" where nothing is reduced
  std::optional<int64_t> root;             // absent where not printed or -1
  std::optional<NcclTiming> out_of_place;  // absent where the columns are
  std::optional<NcclTiming> in_place;
  std::string refusal;  // why the row is no measurement; empty: it is
};

// One table of a file.
struct NcclTestsRun {
  std::string collective;  // "all_reduce", "all_to_all", ...; empty: neither named nor derivable
  std::string collective_note;                // how it was derived, if it is not named
  std::optional<int64_t> rank_count;          // by the list of devices
  std::optional<int64_t> node_count;          // distinct hosts of that list
  std::optional<int64_t> derived_rank_count;  // by sizes and bandwidths, where rank_count is absent
  std::optional<double> average_bus_gigabytes_per_second;  // as printed, over all rows
  Origin origin;
  std::vector<NcclTestsRow> rows;  // all data rows, also the refused
};

struct NcclTestsReading {
  std::vector<NcclTestsRun> runs;
  Refusals refusals;
};

// Text with at least one data row. Rows are found by their form (size, count, type, ...), whatever
// stands in front of them, so that '#' signs, tags and other lines may be there or not.
// `name_hint` (a file name or command line) helps where table and header do not tell all-gather
// from all-to-all. At most kRowLimit rows are kept. Linear in the text; never fails.
NcclTestsReading ReadNcclTests(absl::string_view text, absl::string_view name_hint = "");
inline constexpr size_t kNcclRowLimit = 200'000;

// Whether a line has the form of a data row. For the detector.
bool IsNcclTestsRow(absl::string_view line);

// "all_reduce" of "all_reduce_perf", "allreduce", "AllReduce"; empty where no collective is named.
std::string CollectiveNamed(absl::string_view text);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_NCCL_TESTS_H_
