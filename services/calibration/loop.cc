// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/loop.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/catalog.h"
#include "services/calibration/measurement_files.h"
#include "services/runtime/log.h"
#include "services/runtime/nested.h"

namespace sextant::calibration_service {

namespace v1 = calibration::v1;

struct Loop::Counters {
  explicit Counters(runtime::Metrics& metrics)
      : taken(Make(metrics, "taken")),
        known(Make(metrics, "known")),
        refused(Make(metrics, "refused")),
        succeeded(MakeJobs(metrics, "succeeded")),
        failed(MakeJobs(metrics, "failed")),
        cancelled(MakeJobs(metrics, "cancelled")) {}
  static runtime::CounterMetric Make(runtime::Metrics& metrics, const std::string& result) {
    return runtime::CounterMetric(metrics, "sextant_calibration_measurements_total",
                                  "Measurements offered, by what became of them.",
                                  {{"result", result}});
  }
  static runtime::CounterMetric MakeJobs(runtime::Metrics& metrics, const std::string& result) {
    return runtime::CounterMetric(metrics, "sextant_calibration_jobs_total",
                                  "Calibration jobs that ended, by how.", {{"result", result}});
  }
  void CountEnd(const v1::CalibrationJob& job) {
    if (job.state() == v1::CalibrationJob::STATE_SUCCEEDED) succeeded.Increment();
    if (job.state() == v1::CalibrationJob::STATE_FAILED) failed.Increment();
    if (job.state() == v1::CalibrationJob::STATE_CANCELLED) cancelled.Increment();
  }
  runtime::CounterMetric taken, known, refused, succeeded, failed, cancelled;
};

Loop::Loop(std::string datasets_directory)
    : datasets_directory_(datasets_directory.empty() ? catalog::DefaultDatasetsDirectory()
                                                     : std::move(datasets_directory)) {}
Loop::~Loop() = default;

absl::StatusOr<std::unique_ptr<Loop>> Loop::Start(LoopOptions options, runtime::Metrics& metrics) {
  std::unique_ptr<Loop> loop(new Loop(options.datasets_directory));
  loop->counters_ = std::make_unique<Counters>(metrics);
  std::string location = options.database;
  if (location.empty() && options.state_directory.empty()) location = ":memory:";
  if (!options.state_directory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.state_directory, error);
    if (error) {
      return absl::UnavailableError(absl::StrCat("state_directory is \"", options.state_directory,
                                                 "\" but cannot be made: ", error.message()));
    }
    if (location.empty()) location = absl::StrCat(options.state_directory, "/calibration.sqlite");
  }
  SEXTANT_ASSIGN_OR_RETURN(loop->store_, RecordStore::Open(location));
  loop->library_ = std::make_unique<SetLibrary>(*loop->store_, loop->datasets_directory_);
  if (!options.state_directory.empty()) {
    SEXTANT_RETURN_IF_ERROR(loop->TakeUpFiles(options.state_directory));
  }
  loop->fleet_ =
      options.clients.empty()
          ? std::make_unique<Fleet>(*loop->store_, *loop->library_, options.fleet)
          : std::make_unique<Fleet>(*loop->store_, *loop->library_, std::move(options.clients));
  loop->jobs_ = std::make_unique<JobRunner>(
      options.calibrator ? options.calibrator : DefaultCalibrator(loop->datasets_directory_),
      *loop->store_, *loop->library_, *loop->fleet_);
  loop->jobs_->OnEnd(
      [counters = loop->counters_.get()](const auto& job) { counters->CountEnd(job); });
  loop->watch_ = std::make_unique<Watch>(
      *loop->store_, *loop->library_, *loop->fleet_, *loop->jobs_,
      options.judge ? options.judge : DefaultJudge(loop->datasets_directory_), options.watch,
      metrics);
  return loop;
}

// Before there was a store, sets were files.
absl::Status Loop::TakeUpFiles(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".json") continue;
    const auto set = parameter_store::ReadSetFile(entry.path().string());
    const absl::Status status = set.ok() ? library_->Store(*set) : set.status();
    if (!status.ok()) {
      runtime::Log(runtime::Severity::kWarning, "stored parameter set is left out",
                   {{"reason", status.message()}});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::IngestMeasurementsResponse> Loop::Ingest(
    const google::protobuf::RepeatedPtrField<v1::MeasurementFile>& files,
    std::vector<int64_t>* sequences) {
  SEXTANT_ASSIGN_OR_RETURN(const auto catalog, catalog::Catalog::Open(datasets_directory_));
  base::Violations violations;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::vector<FileContent> contents;
  for (int i = 0; i < files.size(); ++i) {
    auto content = ReadMeasurementFile(files[i], catalog);
    if (content.ok()) {
      contents.push_back(*std::move(content));
    } else {
      code = content.status().code();
      runtime::AddNested(violations, absl::StrCat("files[", i, "]"), content.status());
    }
  }
  if (!violations.empty()) return violations.ToStatus(code);

  v1::IngestMeasurementsResponse response;
  const int64_t now_us = NowMicroseconds();
  // One transaction: what is acknowledged is stored, and half a call never is.
  SEXTANT_RETURN_IF_ERROR(store_->Transact([&](Records& records) -> absl::Status {
    for (size_t i = 0; i < contents.size(); ++i) {
      FileContent& content = contents[i];
      v1::IngestedFile* file = response.add_files();
      file->set_file_name(files[static_cast<int>(i)].file_name());
      file->set_format(content.format);
      file->set_summary(content.summary);
      for (MeasurementRecord& row : content.rows) {
        row.ingested_us = now_us;
        SEXTANT_ASSIGN_OR_RETURN(const Taken taken, records.AddMeasurement(&row));
        if (taken == Taken::kConflict) {
          ++content.refused_count;
          content.refused.push_back({row.id, 0, "the id is taken by another measurement"});
          continue;
        }
        if (sequences != nullptr) sequences->push_back(row.sequence);
        if (taken == Taken::kNew) file->set_taken_count(file->taken_count() + 1);
        if (taken == Taken::kKnown) file->set_known_count(file->known_count() + 1);
      }
      for (const RefusedMeasurement& refused : content.refused) {
        auto* item = file->add_refused();
        item->set_id(refused.id);
        item->set_line(refused.line);
        item->set_reason(refused.reason);
        if (file->refused_size() >= 1000) break;
      }
      file->set_refused_count(content.refused_count);
      response.set_taken_count(response.taken_count() + file->taken_count());
    }
    return absl::OkStatus();
  }));
  for (const v1::IngestedFile& file : response.files()) {
    counters_->taken.Increment(static_cast<double>(file.taken_count()));
    counters_->known.Increment(static_cast<double>(file.known_count()));
    counters_->refused.Increment(static_cast<double>(file.refused_count()));
  }
  if (response.taken_count() > 0) watch_->Wake();
  return response;
}

absl::StatusOr<PushOutcome> Loop::Rollback() {
  SEXTANT_ASSIGN_OR_RETURN(PushOutcome outcome, fleet_->Rollback());
  SEXTANT_RETURN_IF_ERROR(watch_->AfterRollback());
  return outcome;
}

}  // namespace sextant::calibration_service
