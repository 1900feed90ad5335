// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_MEASURED_H_
#define SEXTANT_SERVICES_CLI_MEASURED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibration/measurements/rows.h"
#include "common/catalog/catalog.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

// What the user says about files that do not say it themselves; empty and 0: nothing.
struct MeasuredContext {
  std::string accelerator;
  std::string cluster;
  std::string software;
  std::string collective;
  std::string job_file;
  int64_t gpu_count = 0;
  int64_t node_count = 0;
};

// The rows of all files; "-" is stdin. A file is a table of measurements or of any format that
// calibration/ingest reads, plain or gzip; what a file FILE of those does not say is taken from
// FILE.context ("key: value" lines), else from `context`. A measurement id is taken once. What was
// refused is said on stderr. Every file that cannot be used is named at once.
absl::StatusOr<calibration::Measurements> ReadMeasuredFiles(const std::vector<std::string>& files,
                                                            const MeasuredContext& context,
                                                            const catalog::Catalog& catalog,
                                                            Terminal& terminal);

// Keeps the rows whose id the list names: CSV text with a column "id". Ids that no row has are
// said on stderr.
absl::Status KeepListedIds(absl::string_view list_csv, absl::string_view list_name,
                           calibration::Measurements* measurements, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_MEASURED_H_
