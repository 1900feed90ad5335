// SPDX-License-Identifier: Apache-2.0
#include "services/cli/library.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collectives/collective_parameters.h"
#include "common/operator_cost/operator_parameters.h"
#include "common/orchestrator/framework_parameters.h"

namespace sextant::cli {

using parameters::KeyedDescriptor;
using parameters::ParameterSet;

absl::StatusOr<catalog::Catalog> OpenCatalog() {
  return catalog::Catalog::Open(catalog::DefaultDatasetsDirectory());
}

std::vector<KeyedDescriptor> AllDescriptors() {
  std::vector<KeyedDescriptor> all = operator_cost::OperatorDescriptors();
  for (std::vector<KeyedDescriptor> some :
       {collectives::CollectiveDescriptors(), orchestrator::FrameworkDescriptors()}) {
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

absl::StatusOr<std::shared_ptr<const ParameterSet>> FindParameters(
    const catalog::Catalog& catalog, const std::string& name_or_file) {
  if (name_or_file == "uncalibrated") return std::make_shared<const ParameterSet>();
  SEXTANT_ASSIGN_OR_RETURN(ParameterSet set, catalog.FindParameterSet(name_or_file));
  SEXTANT_RETURN_IF_ERROR(parameters::ValidateParameterSet(set, AllDescriptors()));
  return std::make_shared<const ParameterSet>(std::move(set));
}

bool FallsToUncalibrated(const CommonOptions& common, const catalog::Catalog& catalog,
                         Terminal& terminal) {
  if (common.parameters_given) return false;
  const std::vector<std::string> names = catalog.ParameterSetNames();
  if (std::find(names.begin(), names.end(), common.parameters) != names.end()) return false;
  terminal.Warn(absl::StrCat("there is no parameter set \"", common.parameters,
                             "\"; using initial values (\"uncalibrated\")"));
  return true;
}

absl::StatusOr<std::shared_ptr<const ParameterSet>> ParametersInUse(const CommonOptions& common,
                                                                    const catalog::Catalog& catalog,
                                                                    Terminal& terminal) {
  return FindParameters(
      catalog, FallsToUncalibrated(common, catalog, terminal) ? "uncalibrated" : common.parameters);
}

}  // namespace sextant::cli
