// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_WATCH_H_
#define SEXTANT_SERVICES_CALIBRATION_WATCH_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/calibration/fleet.h"
#include "services/calibration/job_runner.h"
#include "services/calibration/set_library.h"
#include "services/calibration/store/record_store.h"
#include "services/runtime/metrics.h"
#include "sextant/calibration/v1/calibration_service.pb.h"

namespace sextant::calibration_service {

struct WatchOptions {
  bool automatic = true;                 // start jobs; else only judge
  int64_t window = 64;                   // newest judgements of a group that count
  double drift_threshold_percent = 10;   // median error beyond which a group has drifted
  double error_threshold_percent = 0;    // rolling MAPE that starts a job; 0: none does
  int64_t row_count = 0;                 // new rows that start a job; 0: none do
  std::chrono::seconds schedule{0};      // longest time between jobs while rows come; 0: any
  std::chrono::seconds cool_down{3600};  // between automatic jobs, and after a rollback
};

// A measured row against the prediction of a set: its judgements, by the seam of the fitting room.
using Judge = std::function<absl::StatusOr<std::vector<JudgementRecord>>(
    const std::vector<MeasurementRecord>& rows, const SharedSet& set)>;
Judge DefaultJudge(const std::string& datasets_directory);

// Compares every new measurement with the set in service, and starts a calibration where a group
// has drifted, errors are too large, enough rows have come, or it is time. A job starts only where
// rows have come since the last one, none waits or runs, and the cool-down is over. Thread-safe.
class Watch {
 public:
  // All must outlive this. Jobs start from the set in service, `initial` before the first push.
  Watch(RecordStore& store, SetLibrary& library, Fleet& fleet, JobRunner& jobs, Judge judge,
        WatchOptions options, runtime::Metrics& metrics);
  ~Watch();

  // There are new measurements.
  void Wake();
  // A rollback was made: what was measured before says nothing about the set that is back.
  absl::Status AfterRollback();
  absl::StatusOr<calibration::v1::GetWatchStatusResponse> Status() const;
  // Whether everything that was taken in so far has been judged, and acted on.
  bool Idle();

 private:
  struct Gauges;
  struct Group {
    calibration::v1::WatchedGroup state;
    double trimmed_mape_percent = 0;
    bool has_intervals = false;  // else the coverage says nothing
    int64_t changed_at = 0;  // sequence of the first measurement that has drifted
  };

  absl::StatusOr<SharedSet> SetInService() const;
  absl::StatusOr<std::vector<Group>> Groups(Records& records, const std::string& version) const;
  absl::Status JudgeNew();
  absl::Status StartJobIfDue();
  absl::StatusOr<int64_t> QuietUntil(Records& records) const;
  void Run();

  RecordStore& store_;
  Fleet& fleet_;
  JobRunner& jobs_;
  const Judge judge_;
  const WatchOptions options_;
  const std::unique_ptr<Gauges> gauges_;
  const absl::StatusOr<SharedSet> initial_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool woken_ = true;
  bool busy_ = false;
  std::thread thread_;  // last: starts when all is there
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_WATCH_H_
