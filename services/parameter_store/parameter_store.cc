// SPDX-License-Identifier: Apache-2.0
#include "services/parameter_store/parameter_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/wire/convert.h"
#include "google/protobuf/util/json_util.h"
#include "services/runtime/log.h"

namespace sextant::parameter_store {
namespace {

constexpr char kStateFile[] = "in_service";  // "<active version> <previous version or ->"
constexpr char kNone[] = "-";

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
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

absl::Status WriteSetFile(const parameters::ParameterSet& set, const std::string& path) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(wire::ToProto(set), &text, options);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  return WriteAtomically(path, text);
}

absl::StatusOr<SharedSet> ReadSetFile(const std::string& path) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  types::v1::ParameterSet proto;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &proto);
  if (!status.ok()) {
    return absl::DataLossError(absl::StrCat(path, ": ", std::string(status.message())));
  }
  auto set = wire::FromProto(proto);
  if (!set.ok()) return absl::DataLossError(absl::StrCat(path, ": ", set.status().message()));
  return std::make_shared<const parameters::ParameterSet>(*std::move(set));
}

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
  if (versions.size() != 2) {
    return absl::DataLossError(absl::StrCat(
        state_path, " is \"", text, "\" but must be two versions; remove it to start afresh"));
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
  if (versions[1] == kNone) return absl::OkStatus();
  auto previous = ReadSetFile(SetPath(directory_, versions[1]));
  if (previous.ok()) {
    previous_ = *std::move(previous);
  } else {
    runtime::Log(runtime::Severity::kWarning, "previous parameter set is lost",
                 {{"reason", previous.status().message()}});
  }
  return absl::OkStatus();
}

SharedSet ParameterStore::Active() const {
  const std::lock_guard lock(mutex_);
  return active_;
}

SharedSet ParameterStore::Previous() const {
  const std::lock_guard lock(mutex_);
  return previous_;
}

SharedSet ParameterStore::Preferred(absl::string_view version) const {
  const std::lock_guard lock(mutex_);
  if (previous_ != nullptr && previous_->version() == version) return previous_;
  return active_;
}

absl::Status ParameterStore::Push(SharedSet set, bool validate_only) {
  SEXTANT_RETURN_IF_ERROR(parameters::ValidateParameterSet(*set, AllDescriptors()));
  if (validate_only) return absl::OkStatus();
  const std::lock_guard lock(write_mutex_);
  const SharedSet before = Active();
  if (set->version() == before->version()) return absl::OkStatus();
  return Swap(std::move(set), before);
}

absl::Status ParameterStore::Rollback() {
  const std::lock_guard lock(write_mutex_);
  SharedSet previous = Previous();
  if (previous == nullptr) {
    return absl::FailedPreconditionError(
        "there is no parameter set to go back to; push one with PushParameterSet");
  }
  return Swap(std::move(previous), nullptr);
}

absl::Status ParameterStore::Swap(SharedSet active, SharedSet previous) {
  if (!directory_.empty()) {
    for (const SharedSet& set : {active, previous}) {
      if (set == nullptr) continue;
      const std::string path = SetPath(directory_, set->version());
      if (!std::filesystem::exists(path)) SEXTANT_RETURN_IF_ERROR(WriteSetFile(*set, path));
    }
    // From this line on the new set is in service, here and after a restart.
    SEXTANT_RETURN_IF_ERROR(
        WriteAtomically(absl::StrCat(directory_, "/", kStateFile),
                        absl::StrCat(active->version(), " ",
                                     previous == nullptr ? kNone : previous->version(), "\n")));
  }
  const std::string version = active->version();
  {
    const std::lock_guard lock(mutex_);
    active_ = std::move(active);
    previous_ = std::move(previous);
  }
  runtime::Log(runtime::Severity::kInfo, "parameter set in service", {{"version", version}});
  if (on_change_) on_change_(version);
  return absl::OkStatus();
}

void ParameterStore::OnChange(std::function<void(const std::string&)> callback) {
  on_change_ = std::move(callback);
  on_change_(Active()->version());
}

}  // namespace sextant::parameter_store
