// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_EXIT_CODE_H_
#define SEXTANT_SERVICES_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace sextant::cli {

// What the shell sees. Stable: scripts and job epilogs branch on these.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,         // the command line itself
  kInvalidInput = 3,  // a file or value breaks a rule
  kNotFound = 4,
  kUnavailable = 5,  // no server, or not in time
  kModelSaysNo = 6,  // does not fit, infeasible; the answer is still on stdout
  kInterrupted = 130,
};

// The one table from failures to exit codes.
ExitCode ExitCodeOf(absl::StatusCode code);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_EXIT_CODE_H_
