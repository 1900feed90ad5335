// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_SERVE_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_SERVE_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct ServeOptions {
  std::string config_file;  // empty: none
  // Over the file's where not empty.
  std::string listen;
  std::string metrics_listen;
  std::string state_directory;
  bool insecure = false;  // plaintext beyond this machine
};

// `sextant serve`: all four services in this process until SIGTERM or SIGINT. The file is a YAML
// mapping with any of listen, metrics_listen, parameters, datasets_directory, state_directory,
// insecure, tls_cert, tls_key, tls_client_ca, policy, reflection, drain_seconds, deadline_seconds.
absl::StatusOr<ExitCode> ServeAll(const CommonOptions& common, const ServeOptions& options,
                                  Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_SERVE_H_
