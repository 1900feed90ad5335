// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/set_library.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/catalog/catalog.h"

namespace sextant::calibration_service {
namespace {

std::string DatasetsDirectory(const std::string& given) {
  return given.empty() ? catalog::DefaultDatasetsDirectory() : given;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SetLibrary>> SetLibrary::Open(
    const std::string& state_directory, const std::string& datasets_directory) {
  std::unique_ptr<SetLibrary> library(
      new SetLibrary(state_directory, DatasetsDirectory(datasets_directory)));
  if (state_directory.empty()) return library;
  std::error_code error;
  std::filesystem::create_directories(state_directory, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("state_directory is \"", state_directory,
                                               "\" but cannot be made: ", error.message()));
  }
  for (const auto& entry : std::filesystem::directory_iterator(state_directory, error)) {
    if (entry.path().extension() != ".json") continue;
    SEXTANT_ASSIGN_OR_RETURN(SharedSet set, parameter_store::ReadSetFile(entry.path().string()));
    library->stored_[set->version()] = std::move(set);
  }
  if (error) return absl::UnavailableError(absl::StrCat(state_directory, ": ", error.message()));
  return library;
}

absl::StatusOr<SharedSet> SetLibrary::Find(absl::string_view name_or_version) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = stored_.find(name_or_version); found != stored_.end()) {
      return found->second;
    }
  }
  // A name, never a path: a caller must not choose which files this process reads.
  if (absl::StrContains(name_or_version, '/') || absl::StrContains(name_or_version, '.')) {
    SEXTANT_ASSIGN_OR_RETURN(const auto all, All());
    std::vector<std::string> names;
    for (const auto& [name, set] : all) names.push_back(name);
    return base::UnknownName("parameter set", name_or_version, names);
  }
  return parameter_store::LoadInitialSet(name_or_version, datasets_directory_);
}

absl::StatusOr<std::vector<std::pair<std::string, SharedSet>>> SetLibrary::All() const {
  std::map<std::string, SharedSet> all;
  if (auto catalog = catalog::Catalog::Open(datasets_directory_); catalog.ok()) {
    for (const std::string& name : catalog->ParameterSetNames()) {
      SEXTANT_ASSIGN_OR_RETURN(auto set, catalog->FindParameterSet(name));
      all[name] = std::make_shared<const parameters::ParameterSet>(std::move(set));
    }
  }
  const std::lock_guard lock(mutex_);
  all.insert(stored_.begin(), stored_.end());
  return std::vector<std::pair<std::string, SharedSet>>(all.begin(), all.end());
}

absl::Status SetLibrary::Store(const SharedSet& set) {
  SEXTANT_RETURN_IF_ERROR(
      parameters::ValidateParameterSet(*set, parameter_store::AllDescriptors()));
  const std::lock_guard lock(mutex_);
  if (stored_.contains(set->version())) return absl::OkStatus();
  if (!directory_.empty()) {
    SEXTANT_RETURN_IF_ERROR(parameter_store::WriteSetFile(
        *set, absl::StrCat(directory_, "/", set->version(), ".json")));
  }
  stored_[set->version()] = set;
  return absl::OkStatus();
}

}  // namespace sextant::calibration_service
