// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_VALIDATE_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_VALIDATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/measured.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct ValidateOptions {
  std::vector<std::string> files;
  MeasuredContext context;  // of files that are no tables of measurements
  std::string ids_file;     // only these rows: a CSV with a column "id"; empty: all
  bool rows = false;        // list every row in text
};

// `sextant validate`: predicts measured rows and compares. Refused rows are part of the answer; a
// file that cannot be read is not.
absl::StatusOr<ExitCode> ValidateMeasurements(const CommonOptions& common,
                                              const ValidateOptions& options, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_VALIDATE_H_
