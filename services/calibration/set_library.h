// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_SET_LIBRARY_H_
#define SEXTANT_SERVICES_CALIBRATION_SET_LIBRARY_H_

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/parameter_store/parameter_store.h"

namespace sextant::calibration_service {

using parameter_store::SharedSet;

// All parameter sets that the calibration service knows: those of the catalog by name, those stored
// here by version. Thread-safe.
class SetLibrary {
 public:
  // Sets are kept as files in `state_directory`; empty: in memory. DATA_LOSS for a damaged file.
  static absl::StatusOr<std::unique_ptr<SetLibrary>> Open(const std::string& state_directory,
                                                          const std::string& datasets_directory);

  // A version stored here, or a catalog name. NOT_FOUND lists the nearest known names.
  absl::StatusOr<SharedSet> Find(absl::string_view name_or_version) const;
  // Every known set by name or version, sorted.
  absl::StatusOr<std::vector<std::pair<std::string, SharedSet>>> All() const;
  // Idempotent. INVALID_ARGUMENT names every parameter that is not valid.
  absl::Status Store(const SharedSet& set);

 private:
  SetLibrary(std::string directory, std::string datasets_directory)
      : directory_(std::move(directory)), datasets_directory_(std::move(datasets_directory)) {}

  const std::string directory_;
  const std::string datasets_directory_;
  mutable std::mutex mutex_;
  std::map<std::string, SharedSet, std::less<>> stored_;  // by version
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_SET_LIBRARY_H_
