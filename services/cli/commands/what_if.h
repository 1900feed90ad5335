// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_WHAT_IF_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_WHAT_IF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct WhatIfOptions {
  std::string job_file;
  std::vector<std::string> overrides;
  double factor = 2;
};

// `sextant what-if`: the job with each property of its hardware divided and multiplied by a factor.
absl::StatusOr<ExitCode> AnswerWhatIf(const CommonOptions& common, const WhatIfOptions& options,
                                      Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_WHAT_IF_H_
