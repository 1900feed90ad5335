// SPDX-License-Identifier: Apache-2.0
#include "services/parameter_store/parameter_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/wire/convert.h"
#include "google/protobuf/util/json_util.h"
#include "services/runtime/log.h"
#include "services/runtime/process_metrics.h"

namespace sextant::parameter_store {
namespace {

// "<active version> <previous version or ->[ <prepared version>]"
constexpr char kStateFile[] = "in_service";
constexpr char kNone[] = "-";

absl::Status SystemError(absl::string_view what, const std::string& path) {
  // Not UNAVAILABLE, which callers take as "away, try again".
  return absl::ResourceExhaustedError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

absl::Status WriteAll(int file, absl::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("cannot write", path);
    text.remove_prefix(static_cast<size_t>(count));
  }
  return fsync(file) == 0 ? absl::OkStatus() : SystemError("cannot store", path);
}

absl::Status SyncDirectory(const std::string& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return SystemError("cannot open", path);
  const int result = fsync(directory);
  close(directory);
  return result == 0 ? absl::OkStatus() : SystemError("cannot store", path);
}

// After the rename is on disk the new text is there whatever happens; before, the old one is.
absl::Status WriteAtomically(const std::string& path, absl::string_view text) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".new");
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return SystemError("cannot create", temporary);
  const absl::Status written = WriteAll(file, text, temporary);
  close(file);
  if (!written.ok()) {
    unlink(temporary.c_str());
    return written;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return SystemError("cannot replace", path);
  return SyncDirectory(std::filesystem::path(path).parent_path().string());
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::string SetPath(const std::string& directory, absl::string_view version) {
  return absl::StrCat(directory, "/", version, ".json");
}

}  // namespace

absl::StatusOr<std::string> SetText(const parameters::ParameterSet& set) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(wire::ToProto(set), &text, options);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  return text;
}

absl::StatusOr<SharedSet> ParseSet(absl::string_view text, absl::string_view where) {
  types::v1::ParameterSet proto;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(text), &proto);
  if (!status.ok()) {
    return absl::DataLossError(absl::StrCat(where, ": ", std::string(status.message())));
  }
  auto set = wire::FromProto(proto);
  if (!set.ok()) return absl::DataLossError(absl::StrCat(where, ": ", set.status().message()));
  return std::make_shared<const parameters::ParameterSet>(*std::move(set));
}

absl::Status WriteSetFile(const parameters::ParameterSet& set, const std::string& path) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, SetText(set));
  return WriteAtomically(path, text);
}

absl::StatusOr<SharedSet> ReadSetFile(const std::string& path) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseSet(text, path);
}

ParameterStore::ParameterStore(std::string directory)
    : directory_(std::move(directory)),
      instance_(absl::StrCat(absl::Hex(std::random_device()(), absl::kZeroPad8),
                             absl::Hex(std::random_device()(), absl::kZeroPad8))),
      in_service_since_seconds_(runtime::UnixSeconds()) {}

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Open(
    SharedSet initial, const std::string& state_directory) {
  std::unique_ptr<ParameterStore> store(new ParameterStore(state_directory));
  if (!state_directory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(state_directory, error);
    if (error) {
      return absl::UnavailableError(absl::StrCat("state_directory is \"", state_directory,
                                                 "\" but cannot be made: ", error.message()));
    }
    SEXTANT_RETURN_IF_ERROR(store->Load());
  }
  if (store->active_ == nullptr) store->active_ = std::move(initial);
  return store;
}

absl::Status ParameterStore::Load() {
  const std::string state_path = absl::StrCat(directory_, "/", kStateFile);
  if (!std::filesystem::exists(state_path)) return absl::OkStatus();
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, ReadText(state_path));
  const std::vector<std::string> versions =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (versions.size() != 2 && versions.size() != 3) {
    return absl::DataLossError(absl::StrCat(state_path, " is \"", text,
                                            "\" but must be two or three versions; remove it to "
                                            "start afresh"));
  }
  const std::string active_path = SetPath(directory_, versions[0]);
  SEXTANT_ASSIGN_OR_RETURN(SharedSet active, ReadSetFile(active_path));
  if (active->version() != versions[0]) {
    return absl::DataLossError(absl::StrCat(active_path, " holds version ", active->version(),
                                            "; remove ", state_path, " to start afresh"));
  }
  // A newer program may know other parameters than the one that stored the set.
  const absl::Status valid = parameters::ValidateParameterSet(*active, AllDescriptors());
  if (!valid.ok()) {
    runtime::Log(runtime::Severity::kWarning, "stored parameter set is no longer valid",
                 {{"version", active->version()}, {"reason", valid.message()}});
    return absl::OkStatus();
  }
  active_ = std::move(active);
  // Written when the set was put into service; a later Prepare counts as well.
  struct stat state {};
  if (stat(state_path.c_str(), &state) == 0) {
    in_service_since_seconds_ = static_cast<double>(state.st_mtime);
  }
  const auto read = [&](const std::string& version, absl::string_view what) -> SharedSet {
    auto set = ReadSetFile(SetPath(directory_, version));
    if (set.ok()) return *std::move(set);
    runtime::Log(runtime::Severity::kWarning, "stored parameter set is lost",
                 {{"which", what}, {"reason", set.status().message()}});
    return nullptr;
  };
  if (versions[1] != kNone) previous_ = read(versions[1], "previous");
  if (versions.size() == 3) prepared_ = read(versions[2], "prepared");
  return absl::OkStatus();
}

SharedSet ParameterStore::Active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

double ParameterStore::InServiceSinceSeconds() const {
  const std::lock_guard lock(mutex_);
  return in_service_since_seconds_;
}

SharedSet ParameterStore::Previous() const {
  const std::lock_guard lock(mutex_);
  return previous_;
}

SharedSet ParameterStore::Preferred(absl::string_view version) const {
  const std::lock_guard lock(mutex_);
  for (const SharedSet* set : {&previous_, &prepared_}) {
    if (*set != nullptr && (*set)->version() == version) return *set;
  }
  return active_;
}

absl::Status ParameterStore::Push(SharedSet set, bool validate_only) {
  SEXTANT_RETURN_IF_ERROR(parameters::ValidateParameterSet(*set, AllDescriptors()));
  if (validate_only) return absl::OkStatus();
  const std::lock_guard lock(write_mutex_);
  const SharedSet before = Active();
  if (set->version() == before->version()) return absl::OkStatus();
  return Swap({.active = std::move(set), .previous = before});
}

absl::Status ParameterStore::Prepare(SharedSet set) {
  SEXTANT_RETURN_IF_ERROR(parameters::ValidateParameterSet(*set, AllDescriptors()));
  const std::lock_guard lock(write_mutex_);
  Sets sets{.active = Active(), .previous = Previous(), .prepared = std::move(set)};
  SEXTANT_RETURN_IF_ERROR(Write(sets));
  const std::lock_guard sets_lock(mutex_);
  prepared_ = std::move(sets.prepared);
  return absl::OkStatus();
}

absl::Status ParameterStore::Commit(absl::string_view version) {
  const std::lock_guard lock(write_mutex_);
  const SharedSet before = Active();
  if (before->version() == version) return absl::OkStatus();
  SharedSet prepared;
  {
    const std::lock_guard sets_lock(mutex_);
    prepared = prepared_;
  }
  if (prepared == nullptr || prepared->version() != version) {
    return absl::FailedPreconditionError(
        absl::StrCat("version ", version, " is not prepared (",
                     prepared == nullptr ? "nothing" : prepared->version(),
                     " is); call PrepareParameterSet first"));
  }
  return Swap({.active = std::move(prepared), .previous = before});
}

absl::Status ParameterStore::Rollback() {
  const std::lock_guard lock(write_mutex_);
  SharedSet previous = Previous();
  if (previous == nullptr) {
    return absl::FailedPreconditionError(
        "there is no parameter set to go back to; push one with PushParameterSet");
  }
  return Swap({.active = std::move(previous)});
}

absl::Status ParameterStore::Write(const Sets& sets) const {
  if (directory_.empty()) return absl::OkStatus();
  for (const SharedSet& set : {sets.active, sets.previous, sets.prepared}) {
    if (set == nullptr) continue;
    const std::string path = SetPath(directory_, set->version());
    if (!std::filesystem::exists(path)) SEXTANT_RETURN_IF_ERROR(WriteSetFile(*set, path));
  }
  // From this line on these sets are in their places, here and after a restart.
  return WriteAtomically(
      absl::StrCat(directory_, "/", kStateFile),
      absl::StrCat(
          sets.active->version(), " ", sets.previous == nullptr ? kNone : sets.previous->version(),
          sets.prepared == nullptr ? "" : absl::StrCat(" ", sets.prepared->version()), "\n"));
}

absl::Status ParameterStore::Swap(Sets sets) {
  SEXTANT_RETURN_IF_ERROR(Write(sets));
  const std::string version = sets.active->version();
  {
    const std::lock_guard lock(mutex_);
    active_ = std::move(sets.active);
    in_service_since_seconds_ = runtime::UnixSeconds();
    previous_ = std::move(sets.previous);
    prepared_ = std::move(sets.prepared);
  }
  runtime::Log(runtime::Severity::kInfo, "parameter set in service", {{"version", version}});
  if (on_change_) on_change_(version);
  watchers_.AwaitChange(version);
  return absl::OkStatus();
}

void ParameterStore::OnChange(std::function<void(const std::string&)> callback) {
  on_change_ = std::move(callback);
  on_change_(Active()->version());
}

}  // namespace sextant::parameter_store
