// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/catalog/catalog.h"
#include "common/collectives/collective_parameters.h"
#include "common/operator_cost/operator_parameters.h"
#include "common/orchestrator/framework_parameters.h"
#include "services/parameter_store/parameter_store.h"
#include "services/runtime/log.h"

namespace sextant::parameter_store {

const std::vector<parameters::KeyedDescriptor>& AllDescriptors() {
  static const auto* all = [] {
    auto* made = new std::vector<parameters::KeyedDescriptor>(operator_cost::OperatorDescriptors());
    for (auto& descriptor : collectives::CollectiveDescriptors()) {
      made->push_back(std::move(descriptor));
    }
    for (auto& descriptor : orchestrator::FrameworkDescriptors()) {
      made->push_back(std::move(descriptor));
    }
    return made;
  }();
  return *all;
}

absl::StatusOr<SharedSet> LoadInitialSet(absl::string_view name_or_path,
                                         const std::string& datasets_directory) {
  auto catalog = catalog::Catalog::Open(
      datasets_directory.empty() ? catalog::DefaultDatasetsDirectory() : datasets_directory);
  auto set = catalog.ok() ? catalog->FindParameterSet(name_or_path)
                          : absl::StatusOr<parameters::ParameterSet>(catalog.status());
  if (!set.ok() && absl::IsNotFound(set.status()) && name_or_path == "default") {
    runtime::Log(runtime::Severity::kWarning, "no default parameter set, serving uncalibrated",
                 {{"reason", set.status().message()}});
    return std::make_shared<const parameters::ParameterSet>();
  }
  if (!set.ok()) return set.status();
  SEXTANT_RETURN_IF_ERROR(parameters::ValidateParameterSet(*set, AllDescriptors()));
  return std::make_shared<const parameters::ParameterSet>(*std::move(set));
}

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Open(const StoreOptions& options) {
  SEXTANT_ASSIGN_OR_RETURN(SharedSet initial,
                           LoadInitialSet(options.initial, options.datasets_directory));
  return Open(std::move(initial), options.state_directory);
}

}  // namespace sextant::parameter_store
