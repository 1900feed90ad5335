// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_NETWORK_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_NETWORK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct NetworkOptions {
  std::vector<std::string> case_files;
  std::string fidelity = "flow";
};

// `sextant network`: times cases. A batch is not lost to one bad file: the others are answered, the
// bad ones are named on stderr, and the exit code is that of invalid input. With a server one case
// is watched, with notes of its progress; several go in batches.
absl::StatusOr<ExitCode> TimeNetworkCases(const CommonOptions& common,
                                          const NetworkOptions& options, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_NETWORK_H_
