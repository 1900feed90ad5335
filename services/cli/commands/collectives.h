// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_COLLECTIVES_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_COLLECTIVES_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

// `sextant collectives`: times the collectives of one file beside each other. kModelSaysNo where
// faults cut ranks off.
absl::StatusOr<ExitCode> TimeCollectives(const CommonOptions& common, const std::string& file,
                                         Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_COLLECTIVES_H_
