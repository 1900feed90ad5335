// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_LIBRARY_H_
#define SEXTANT_SERVICES_CLI_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/catalog/catalog.h"
#include "common/parameters/parameter_set.h"
#include "services/cli/common_options.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

// The catalog of $SEXTANT_DATASETS_DIR, else of the installation. Reads no entry yet.
absl::StatusOr<catalog::Catalog> OpenCatalog();

// A set by name or file, checked against what every formula declares physical. The name
// "uncalibrated" is always known: no fitted value at all.
absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> FindParameters(
    const catalog::Catalog& catalog, const std::string& name_or_file);

// The set that the common options ask for. Where nobody asked and the default set is not there,
// the uncalibrated one, with a warning.
absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> ParametersInUse(
    const CommonOptions& common, const catalog::Catalog& catalog, Terminal& terminal);

// True where nobody asked for a set and the default one is not there: "uncalibrated" then answers.
bool FallsToUncalibrated(const CommonOptions& common, const catalog::Catalog& catalog,
                         Terminal& terminal);

// Every parameter of every formula.
std::vector<parameters::KeyedDescriptor> AllDescriptors();

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_LIBRARY_H_
