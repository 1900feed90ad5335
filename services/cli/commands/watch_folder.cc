// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/watch_folder.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/ingest.h"
#include "common/base/status_macros.h"
#include "services/calibration/loop.h"
#include "services/cli/library.h"
#include "services/cli/remote.h"
#include "services/runtime/metrics.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
namespace v1 = calibration::v1;

using Files = google::protobuf::RepeatedPtrField<v1::MeasurementFile>;
using Take = std::function<absl::StatusOr<v1::IngestMeasurementsResponse>(const Files&)>;

constexpr std::chrono::milliseconds kScan{1000};

// What identifies a state of a file.
struct Stamp {
  uintmax_t size = 0;
  fs::file_time_type written;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

// The measurement files of a folder: no hidden ones, no context files.
std::map<std::string, Stamp> FilesOf(const std::string& directory) {
  std::map<std::string, Stamp> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, ".") || absl::EndsWith(name, ".context")) continue;
    if (!entry.is_regular_file(error)) continue;
    files[entry.path().string()] = {entry.file_size(error), entry.last_write_time(error)};
  }
  return files;
}

absl::StatusOr<v1::MeasurementFile> ReadFile(const std::string& path, const MeasuredContext& given,
                                             Terminal& terminal) {
  v1::MeasurementFile file;
  file.set_file_name(fs::path(path).filename().string());
  SEXTANT_ASSIGN_OR_RETURN(*file.mutable_content(), terminal.Read(path));
  ingest::IngestContext context;
  context.accelerator = given.accelerator;
  context.cluster = given.cluster;
  context.software = given.software;
  context.collective = given.collective;
  if (given.gpu_count > 0) context.gpu_count = given.gpu_count;
  if (given.node_count > 0) context.node_count = given.node_count;
  std::string job_file = given.job_file;
  const std::string beside = path + ".context";
  const absl::StatusOr<std::string> text = terminal.Read(beside);
  if (text.ok()) {
    std::string own_job;
    SEXTANT_RETURN_IF_ERROR(ingest::ReadContextText(*text, beside, &context, &own_job));
    if (!own_job.empty()) job_file = (fs::path(path).parent_path() / own_job).string();
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  v1::MeasurementContext& said = *file.mutable_context();
  said.set_accelerator(context.accelerator);
  said.set_cluster(context.cluster);
  said.set_software(context.software);
  said.set_collective(context.collective);
  said.set_gpu_count(context.gpu_count.value_or(0));
  said.set_node_count(context.node_count.value_or(0));
  said.set_suite(context.suite);
  if (!job_file.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(*said.mutable_job_yaml(), terminal.Read(job_file));
  }
  return file;
}

void TakeIn(const std::string& path, const WatchFolderOptions& options, const Take& take,
            Terminal& terminal) {
  Files files;
  auto file = ReadFile(path, options.context, terminal);
  if (!file.ok()) return terminal.Warn(absl::StrCat(path, ": ", file.status().message()));
  *files.Add() = *std::move(file);
  const auto response = take(files);
  if (!response.ok()) return terminal.Warn(absl::StrCat(path, ": ", response.status().message()));
  const v1::IngestedFile& taken = response->files(0);
  terminal.Note(absl::StrCat(path, ": ", taken.summary(), "; ", taken.taken_count(), " taken, ",
                             taken.known_count(), " known, ", taken.refused_count(), " refused"));
  for (const auto& refused : taken.refused()) {
    terminal.Warn(absl::StrCat(path, ": refused: ", refused.id(), refused.id().empty() ? "" : ": ",
                               refused.reason()));
  }
}

// Scans until interrupted; with `once` until nothing is new and `idle` holds.
void Scan(const WatchFolderOptions& options, const Take& take, const std::function<bool()>& idle,
          Terminal& terminal) {
  std::map<std::string, Stamp> seen, done;
  while (true) {
    bool quiet = true;
    std::map<std::string, Stamp> now = FilesOf(options.directory);
    for (const auto& [path, stamp] : now) {
      if (done.contains(path) && done[path] == stamp) continue;
      quiet = false;
      // A file that still grows is left for the next round.
      if (!seen.contains(path) || seen[path] != stamp) continue;
      TakeIn(path, options, take, terminal);
      done[path] = stamp;
    }
    seen = std::move(now);
    if (idle() && quiet && options.once) return;
    std::this_thread::sleep_for(kScan);
  }
}

// Says what became of jobs, and writes what was published.
class JobTeller {
 public:
  JobTeller(calibration_service::Loop& loop, const std::string& output_file, Terminal& terminal)
      : loop_(loop), output_file_(output_file), terminal_(terminal) {}

  // True where no job waits or runs.
  bool Tell() {
    int64_t next = 0;
    const auto jobs = loop_.jobs().List(calibration_service::RecordStore::kNewest, 1, &next);
    if (!jobs.ok() || jobs->empty()) return true;
    const v1::CalibrationJob& job = jobs->front();
    const std::string state = absl::StrCat(job.name(), job.state());
    if (std::exchange(told_, state) != state) Say(job);
    return job.has_end_time();
  }

 private:
  void Say(const v1::CalibrationJob& job) {
    if (!job.has_end_time()) {
      return terminal_.Note(
          absl::StrCat(job.name(), ": ", job.trigger(), ": ", job.trigger_detail()));
    }
    if (!job.error().empty()) {
      return terminal_.Warn(absl::StrCat(job.name(), ": failed: ", job.error()));
    }
    if (!job.published()) {
      return terminal_.Note(absl::StrCat(job.name(), ": the held-out error did not get better (",
                                         job.initial_held_out_mape_percent(), " % before, ",
                                         job.held_out_mape_percent(),
                                         " % now): the set in service stays"));
    }
    terminal_.Note(absl::StrCat(job.name(), ": version ", job.parameter_set_version(),
                                ", held-out error ", job.initial_held_out_mape_percent(), " -> ",
                                job.held_out_mape_percent(), " %"));
    for (const auto& result : job.push_results()) {
      terminal_.Note(absl::StrCat(result.target(), ": ",
                                  result.error().empty()
                                      ? absl::StrCat("now serves ", result.acknowledged_version())
                                      : result.error()));
    }
    if (output_file_.empty()) return;
    const auto set = loop_.sets().Find(job.parameter_set_version());
    const absl::Status saved =
        set.ok() ? catalog::SaveParameterSet(**set, output_file_) : set.status();
    if (saved.ok()) {
      terminal_.Note(absl::StrCat("wrote version ", (*set)->version(), " to ", output_file_));
    } else {
      terminal_.Warn(saved.message());
    }
  }

  calibration_service::Loop& loop_;
  const std::string& output_file_;
  Terminal& terminal_;
  std::string told_;
};

}  // namespace

absl::StatusOr<ExitCode> WatchFolder(const CommonOptions& common, const WatchFolderOptions& options,
                                     Terminal& terminal) {
  std::error_code error;
  if (!fs::is_directory(options.directory, error)) {
    return absl::NotFoundError(absl::StrCat(options.directory, ": no such folder"));
  }
  terminal.Note(absl::StrCat("watching ", options.directory));
  if (!common.server.empty()) {
    const client::Client client = ClientOf(common, common.server);
    Scan(
        options, [&](const Files& files) { return client.IngestMeasurements(files); },
        [] { return true; }, terminal);
    return ExitCode::kOk;
  }
  calibration_service::LoopOptions loop_options;
  loop_options.state_directory = (fs::path(options.directory) / ".sextant").string();
  loop_options.fleet.targets = options.targets;
  loop_options.watch.cool_down =
      std::chrono::seconds(static_cast<int64_t>(options.cool_down_seconds));
  runtime::Metrics metrics;
  SEXTANT_ASSIGN_OR_RETURN(const auto loop,
                           calibration_service::Loop::Start(std::move(loop_options), metrics));
  JobTeller teller(*loop, options.output_file, terminal);
  const auto idle = [&] {
    const bool judged = loop->watch().Idle();
    return teller.Tell() && judged;
  };
  Scan(
      options, [&](const Files& files) { return loop->Ingest(files, nullptr); }, idle, terminal);
  return ExitCode::kOk;
}

}  // namespace sextant::cli
