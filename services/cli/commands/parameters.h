// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_PARAMETERS_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_PARAMETERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"
#include "services/client/client.h"

namespace sextant::cli {

// `sextant parameters list`: the sets of the catalog, or the one in service at --server, with
// version and accelerators.
absl::StatusOr<ExitCode> ListParameters(const CommonOptions& common, Terminal& terminal);

// `sextant parameters show [SET]`; the set in use, or in service at --server, where `name_or_file`
// is empty.
absl::StatusOr<ExitCode> ShowParameters(const CommonOptions& common,
                                        const std::string& name_or_file, Terminal& terminal);

// Puts `set` into the services of a server that have parameters; where it is a calibration service
// alone, into its fleet, all together. What each acknowledged.
absl::StatusOr<std::vector<client::ServiceVersion>> PushSet(const client::Client& client,
                                                            const parameters::ParameterSet& set,
                                                            Terminal& terminal);

// `sextant parameters push SET HOST:PORT...`: PushSet for every target. Fails at the first that
// refuses; those before it keep the new set.
absl::StatusOr<ExitCode> PushParameters(const CommonOptions& common,
                                        const std::string& name_or_file,
                                        const std::vector<std::string>& targets,
                                        Terminal& terminal);

// `sextant parameters rollback HOST:PORT...`: back to the set before the last push.
absl::StatusOr<ExitCode> RollBackParameters(const CommonOptions& common,
                                            const std::vector<std::string>& targets,
                                            Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_PARAMETERS_H_
