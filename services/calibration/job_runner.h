// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_JOB_RUNNER_H_
#define SEXTANT_SERVICES_CALIBRATION_JOB_RUNNER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "services/calibration/calibrator.h"
#include "services/calibration/push_targets.h"
#include "services/calibration/set_library.h"
#include "sextant/calibration/v1/calibration_service.pb.h"

namespace sextant::calibration_service {

// Runs calibrations one after another on a thread of its own, and remembers the last
// kMaxRememberedJobs of them. Thread-safe.
class JobRunner {
 public:
  static constexpr size_t kMaxQueuedJobs = 16;
  static constexpr size_t kMaxRememberedJobs = 1000;

  // `library` and `targets` must outlive this.
  JobRunner(Calibrator calibrator, SetLibrary& library, const PushTargets& targets);
  // Cancels the jobs that wait; a running one is finished first.
  ~JobRunner();

  // RESOURCE_EXHAUSTED where kMaxQueuedJobs wait already.
  absl::StatusOr<calibration::v1::CalibrationJob> Create(CalibrationInput input, bool push);
  absl::StatusOr<calibration::v1::CalibrationJob> Get(absl::string_view name) const;
  // Newest first, from the one before sequence number `before` (0: the newest), at most `count`.
  // `*next` is what to pass as `before` for the rest; 0: nothing is left.
  std::vector<calibration::v1::CalibrationJob> List(uint64_t before, size_t count,
                                                    uint64_t* next) const;

 private:
  struct Waiting {
    uint64_t sequence = 0;
    CalibrationInput input;
    bool push = false;
  };

  void Run();
  calibration::v1::CalibrationJob Calibrate(const Waiting& waiting,
                                            calibration::v1::CalibrationJob job);

  const Calibrator calibrator_;
  SetLibrary& library_;
  const PushTargets& targets_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  uint64_t last_sequence_ = 0;
  std::deque<Waiting> waiting_;
  std::map<uint64_t, calibration::v1::CalibrationJob> jobs_;  // by sequence number
  std::thread thread_;                                        // last: starts when all is there
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_JOB_RUNNER_H_
