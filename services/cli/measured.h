// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_MEASURED_H_
#define SEXTANT_SERVICES_CLI_MEASURED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibration/measurements/rows.h"
#include "common/catalog/catalog.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

// The rows of all files; "-" is stdin. Every file that cannot be used is named at once.
absl::StatusOr<calibration::Measurements> ReadMeasuredFiles(const std::vector<std::string>& files,
                                                            const catalog::Catalog& catalog,
                                                            Terminal& terminal);

// Keeps the rows whose id the list names: CSV text with a column "id". Ids that no row has are
// said on stderr.
absl::Status KeepListedIds(absl::string_view list_csv, absl::string_view list_name,
                           calibration::Measurements* measurements, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_MEASURED_H_
