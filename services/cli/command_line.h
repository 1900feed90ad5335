// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMAND_LINE_H_
#define SEXTANT_SERVICES_CLI_COMMAND_LINE_H_

#include <functional>
#include <string>
#include <vector>

#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

// Looks up an environment variable; null where it is not set.
using Environment = std::function<const char*(const char* name)>;

// Runs one command: `arguments` as after the program's name. Answers go to the terminal's stdout,
// everything else to stderr. Never throws.
ExitCode RunCommandLine(const std::vector<std::string>& arguments, const Environment& environment,
                        Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMAND_LINE_H_
