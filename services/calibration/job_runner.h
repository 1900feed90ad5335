// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_JOB_RUNNER_H_
#define SEXTANT_SERVICES_CALIBRATION_JOB_RUNNER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/calibration/calibrator.h"
#include "services/calibration/fleet.h"
#include "services/calibration/set_library.h"
#include "services/calibration/store/record_store.h"
#include "sextant/calibration/v1/calibration_service.pb.h"

namespace sextant::calibration_service {

// Runs calibrations one after another on a thread of its own. Jobs live in the store: one that a
// crash or shutdown interrupts is begun again by the next process, up to kMaxAttempts times; where
// its set was published already, only the push is repeated. Thread-safe.
class JobRunner {
 public:
  static constexpr int64_t kMaxQueuedJobs = 16;
  static constexpr int kMaxAttempts = 3;

  // All must outlive this.
  JobRunner(Calibrator calibrator, RecordStore& store, SetLibrary& library, Fleet& fleet);
  ~JobRunner();

  // Queues a job within a transaction. RESOURCE_EXHAUSTED where kMaxQueuedJobs wait already. Call
  // Wake after the transaction.
  static absl::Status Add(Records& records, JobRecord* job);
  void Wake();

  absl::StatusOr<calibration::v1::CalibrationJob> Get(absl::string_view name) const;
  // Newest first, from the one before sequence number `before`, at most `count`, without reports.
  // `*next` is what to pass as `before` for the rest; 0: nothing is left.
  absl::StatusOr<std::vector<calibration::v1::CalibrationJob>> List(int64_t before, size_t count,
                                                                    int64_t* next) const;
  // FAILED_PRECONDITION for a job that has ended or is pushing.
  absl::StatusOr<calibration::v1::CalibrationJob> Cancel(absl::string_view name);
  // Calls `tell` with the job now and after every change, until it has ended or `tell` says false.
  absl::Status Watch(absl::string_view name,
                     const std::function<bool(const calibration::v1::CalibrationJob&)>& tell);
  // Ends all watches.
  void Stop();
  // Called after every job that ended.
  void OnEnd(std::function<void(const calibration::v1::CalibrationJob&)> callback) {
    const std::lock_guard lock(mutex_);
    on_end_ = std::move(callback);
  }

 private:
  void Run();
  void RunOne(JobRecord job);
  absl::Status Calibrate(JobRecord* job);
  absl::Status Push(JobRecord* job);
  absl::StatusOr<std::vector<MeasurementRecord>> RowsOf(const JobRequest& request);
  absl::Status Save(const JobRecord& job);
  bool Progress(JobRecord* job, absl::string_view phase, double fraction);

  const Calibrator calibrator_;
  RecordStore& store_;
  SetLibrary& library_;
  Fleet& fleet_;
  const std::string owner_;  // of leases

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  bool watches_end_ = false;
  int64_t changes_ = 0;
  std::function<void(const calibration::v1::CalibrationJob&)> on_end_;
  std::atomic<bool> interrupted_ = false;  // the process shuts down: the fit is given up
  std::thread thread_;                     // last: starts when all is there
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_JOB_RUNNER_H_
