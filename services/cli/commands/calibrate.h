// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_CALIBRATE_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_CALIBRATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/measured.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct CalibrateOptions {
  std::vector<std::string> files;
  MeasuredContext context;           // of files that are no tables of measurements
  std::string output_file;           // where the fitted set goes
  std::string initial;               // set to start from; empty: the common --parameters
  std::string name = "calibrated";   // of the new set
  std::vector<std::string> targets;  // servers to push to
};

// `sextant calibrate`: fits, judges on held-out groups, writes the set, and pushes it to the
// targets unless the held-out error got worse: that is said, and the targets keep what they have.
absl::StatusOr<ExitCode> CalibrateParameters(const CommonOptions& common,
                                             const CalibrateOptions& options, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_CALIBRATE_H_
