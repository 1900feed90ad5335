// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/set_library.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/catalog/catalog.h"

namespace sextant::calibration_service {

SetLibrary::SetLibrary(RecordStore& store, const std::string& datasets_directory)
    : store_(store),
      datasets_directory_(datasets_directory.empty() ? catalog::DefaultDatasetsDirectory()
                                                     : datasets_directory) {}

absl::StatusOr<SharedSet> SetLibrary::Find(absl::string_view name_or_version) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = read_.find(name_or_version); known != read_.end()) return known->second;
  SEXTANT_ASSIGN_OR_RETURN(const auto stored, store_.Ask([&](Records& records) {
    return records.FindSet(name_or_version);
  }));
  if (stored.has_value()) {
    SEXTANT_ASSIGN_OR_RETURN(SharedSet set,
                             parameter_store::ParseSet(stored->json, "stored parameter set"));
    read_[stored->version] = set;
    return set;
  }
  // A name, never a path: a caller must not choose which files this process reads.
  if (absl::StrContains(name_or_version, '/') || absl::StrContains(name_or_version, '.')) {
    std::vector<std::string> names;
    if (auto catalog = catalog::Catalog::Open(datasets_directory_); catalog.ok()) {
      names = catalog->ParameterSetNames();
    }
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
  SEXTANT_ASSIGN_OR_RETURN(const auto stored,
                           store_.Ask([](Records& records) { return records.Sets(); }));
  for (const SetRecord& record : stored) {
    SEXTANT_ASSIGN_OR_RETURN(all[record.version],
                             parameter_store::ParseSet(record.json, "stored parameter set"));
  }
  return std::vector<std::pair<std::string, SharedSet>>(all.begin(), all.end());
}

absl::Status SetLibrary::Store(const SharedSet& set, Records& records) {
  SEXTANT_RETURN_IF_ERROR(
      parameters::ValidateParameterSet(*set, parameter_store::AllDescriptors()));
  SEXTANT_ASSIGN_OR_RETURN(std::string json, parameter_store::SetText(*set));
  return records.AddSet({set->version(), set->provenance().name, std::move(json)},
                        NowMicroseconds());
}

absl::Status SetLibrary::Store(const SharedSet& set) {
  return store_.Transact([&](Records& records) { return Store(set, records); });
}

}  // namespace sextant::calibration_service
