// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_OPERATORS_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_OPERATORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct OperatorsOptions {
  std::vector<std::string> files;
  std::string accelerator;  // in place of the files' column; empty: the column
};

// `sextant operators`: times every row of operator tables, measured or not. Rows that cannot be
// timed are part of the answer.
absl::StatusOr<ExitCode> TimeOperators(const CommonOptions& common, const OperatorsOptions& options,
                                       Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_OPERATORS_H_
