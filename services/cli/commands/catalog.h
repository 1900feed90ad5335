// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_CATALOG_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_CATALOG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

// The kinds of entries, as arguments name them.
std::vector<std::string> CatalogKinds();  // accelerators, models, clusters, parameters

// `sextant catalog list [KIND]`: the names of one kind, or of all where `kind` is empty.
absl::StatusOr<ExitCode> ListCatalog(const CommonOptions& common, const std::string& kind,
                                     Terminal& terminal);

// `sextant catalog show KIND NAME`. A parameter set also by file.
absl::StatusOr<ExitCode> ShowCatalogEntry(const CommonOptions& common, const std::string& kind,
                                          const std::string& name, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_CATALOG_H_
