// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_SET_LIBRARY_H_
#define SEXTANT_SERVICES_CALIBRATION_SET_LIBRARY_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/calibration/store/record_store.h"
#include "services/parameter_store/parameter_store.h"

namespace sextant::calibration_service {

using parameter_store::SharedSet;

// All parameter sets that the calibration service knows: those of the catalog by name, those of the
// store by version. Thread-safe.
class SetLibrary {
 public:
  // `store` must outlive this. `datasets_directory` empty: the built-in catalog.
  SetLibrary(RecordStore& store, const std::string& datasets_directory);

  // A stored version, or a catalog name. NOT_FOUND lists the nearest known names.
  absl::StatusOr<SharedSet> Find(absl::string_view name_or_version) const;
  // Every known set by name or version, sorted.
  absl::StatusOr<std::vector<std::pair<std::string, SharedSet>>> All() const;
  // Idempotent. INVALID_ARGUMENT names every parameter that is not valid.
  absl::Status Store(const SharedSet& set);
  // The same within a transaction.
  static absl::Status Store(const SharedSet& set, Records& records);

 private:
  RecordStore& store_;
  const std::string datasets_directory_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, SharedSet, std::less<>> read_;  // of the store, by version
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_SET_LIBRARY_H_
