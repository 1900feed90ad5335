// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_STORE_H_
#define SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_STORE_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/parameters/parameter_descriptor.h"
#include "common/parameters/parameter_set.h"
#include "services/parameter_store/watchers.h"

namespace sextant::parameter_store {

using SharedSet = std::shared_ptr<const parameters::ParameterSet>;

// Every parameter of every formula under its full key: what a set may carry.
const std::vector<parameters::KeyedDescriptor>& AllDescriptors();

// Where a service takes its first set from, and where it keeps those pushed later.
struct StoreOptions {
  std::string initial = "default";  // catalog name, or path of a set file
  std::string datasets_directory;   // empty: the built-in one
  std::string state_directory;      // empty: pushed sets are forgotten with the process
};

// The set called `name_or_path` in the catalog of `datasets_directory` (empty: the built-in one).
// Where the catalog has no "default", the uncalibrated set, with a warning in the log.
absl::StatusOr<SharedSet> LoadInitialSet(absl::string_view name_or_path,
                                         const std::string& datasets_directory);

// The parameter set in service and the one before it. With a directory both survive any end of the
// process, kill -9 included: sets are files named by version, and one small file, replaced
// atomically, says which are in service. Thread-safe; readers never wait for a push to be stored.
class ParameterStore {
 public:
  // The set that `options.state_directory` says is in service, else the initial one.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Open(const StoreOptions& options);
  // The same with a given initial set. `state_directory` is made where it is missing; empty:
  // nothing is stored. What it says is in service, else `initial`. DATA_LOSS where it cannot be
  // read.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Open(SharedSet initial,
                                                              const std::string& state_directory);

  // The set in service; never null. Holders keep the set alive: a swap does not disturb them.
  SharedSet Active() const;
  // When the set in service was put there, in seconds since 1970; for one that the catalog or a
  // flag gave, when this process started. Survives a restart with the set.
  double InServiceSinceSeconds() const;
  // What a rollback would put back; null where there is none.
  SharedSet Previous() const;
  // The set in service, the one before or the one prepared, where it has this version; else the one
  // in service.
  SharedSet Preferred(absl::string_view version) const;

  // Checks `set` and, unless `validate_only`, stores it and puts it into service. INVALID_ARGUMENT
  // names every parameter that is unknown, not finite or out of its physical bounds. The set in
  // service again: OK, nothing changes.
  absl::Status Push(SharedSet set, bool validate_only);
  // The two halves of a push that several services make together. A prepared set is checked and on
  // disk but not in service; a later one replaces it.
  absl::Status Prepare(SharedSet set);
  // OK where `version` is in service already; FAILED_PRECONDITION where it is not prepared.
  absl::Status Commit(absl::string_view version);
  // Swaps back to the set before, once. FAILED_PRECONDITION where there is none.
  absl::Status Rollback();

  // Differs between any two processes and lives of a process: who sees it change knows of a
  // restart.
  const std::string& instance() const { return instance_; }
  // Callers that keep answers by version. A change waits for those that hold a lease.
  Watchers& watchers() { return watchers_; }

  // Called with the version after every change, and once now. Not thread-safe: call before serving.
  void OnChange(std::function<void(const std::string& version)> callback);

 private:
  struct Sets {
    SharedSet active;
    SharedSet previous;  // null: none
    SharedSet prepared;  // null: none
  };

  explicit ParameterStore(std::string directory);

  absl::Status Load();
  absl::Status Write(const Sets& sets) const;
  absl::Status Swap(Sets sets);

  const std::string directory_;
  const std::string instance_;
  Watchers watchers_;
  std::function<void(const std::string&)> on_change_;
  std::mutex write_mutex_;  // one push or rollback at a time; taken before mutex_
  mutable std::mutex mutex_;
  SharedSet active_;
  double in_service_since_seconds_;
  SharedSet previous_;
  SharedSet prepared_;
};

// The JSON mapping of sextant.types.v1.ParameterSet as text, and back. Parsing: DATA_LOSS, with
// `where`, for text that is none or whose content does not match its own version.
absl::StatusOr<std::string> SetText(const parameters::ParameterSet& set);
absl::StatusOr<SharedSet> ParseSet(absl::string_view text, absl::string_view where);

// Writes `set` to `path` as the JSON mapping of sextant.types.v1.ParameterSet, atomically: the file
// is either the old or the new one, on disk when this returns.
absl::Status WriteSetFile(const parameters::ParameterSet& set, const std::string& path);
// DATA_LOSS where the content does not match its own version.
absl::StatusOr<SharedSet> ReadSetFile(const std::string& path);

}  // namespace sextant::parameter_store

#endif  // SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_STORE_H_
