// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_HEALTH_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_HEALTH_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

// `sextant health HOST:PORT`: which services are up there. UNAVAILABLE where the server as a whole
// is not serving.
absl::StatusOr<ExitCode> CheckHealth(const CommonOptions& common, const std::string& target,
                                     Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_HEALTH_H_
