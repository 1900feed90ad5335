// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/job_runner.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/util/time_util.h"
#include "services/runtime/log.h"

namespace sextant::calibration_service {

using calibration::v1::CalibrationJob;
using google::protobuf::util::TimeUtil;

namespace {

constexpr char kCollection[] = "calibrationJobs/";

absl::StatusOr<CalibrationOutcome> Guarded(const Calibrator& calibrator,
                                           const CalibrationInput& input) {
  try {
    return calibrator(input);
  } catch (const std::exception& error) {  // a failed fit must not take the service down
    return absl::InternalError(error.what());
  }
}

}  // namespace

JobRunner::JobRunner(Calibrator calibrator, SetLibrary& library, const PushTargets& targets)
    : calibrator_(std::move(calibrator)),
      library_(library),
      targets_(targets),
      thread_([this] { Run(); }) {}

JobRunner::~JobRunner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const Waiting& waiting : waiting_) {
      jobs_[waiting.sequence].set_state(CalibrationJob::STATE_CANCELLED);
    }
    waiting_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

absl::StatusOr<CalibrationJob> JobRunner::Create(CalibrationInput input, bool push) {
  CalibrationJob job;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMaxQueuedJobs) {
      return absl::ResourceExhaustedError(absl::StrCat(
          kMaxQueuedJobs, " calibration jobs are waiting already; try again when one has ended"));
    }
    const uint64_t sequence = ++last_sequence_;
    job.set_name(absl::StrCat(kCollection, sequence));
    job.set_state(CalibrationJob::STATE_QUEUED);
    *job.mutable_create_time() = TimeUtil::GetCurrentTime();
    jobs_[sequence] = job;
    waiting_.push_back({sequence, std::move(input), push});
    while (jobs_.size() > kMaxRememberedJobs) jobs_.erase(jobs_.begin());
  }
  changed_.notify_all();
  return job;
}

absl::StatusOr<CalibrationJob> JobRunner::Get(absl::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [sequence, job] : jobs_) {
    if (job.name() == name) return job;
  }
  return absl::NotFoundError(absl::StrCat("unknown calibration job \"", name,
                                          "\"; ListCalibrationJobs names those remembered"));
}

std::vector<CalibrationJob> JobRunner::List(uint64_t before, size_t count, uint64_t* next) const {
  const std::lock_guard lock(mutex_);
  std::vector<CalibrationJob> page;
  *next = 0;
  auto it = before == 0 ? jobs_.end() : jobs_.lower_bound(before);
  while (it != jobs_.begin()) {
    --it;
    if (page.size() == count) {
      *next = it->first + 1;
      break;
    }
    page.push_back(it->second);
    page.back().clear_report();
  }
  return page;
}

void JobRunner::Run() {
  while (true) {
    Waiting waiting;
    CalibrationJob job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      waiting = std::move(waiting_.front());
      waiting_.pop_front();
      jobs_[waiting.sequence].set_state(CalibrationJob::STATE_RUNNING);
      job = jobs_[waiting.sequence];
    }
    runtime::Log(runtime::Severity::kInfo, "calibration started", {{"job", job.name()}});
    job = Calibrate(waiting, std::move(job));
    *job.mutable_end_time() = TimeUtil::GetCurrentTime();
    runtime::Log(runtime::Severity::kInfo, "calibration ended",
                 {{"job", job.name()},
                  {"state", CalibrationJob::State_Name(job.state())},
                  {"error", job.error()},
                  {"version", job.parameter_set_version()}});
    const std::lock_guard lock(mutex_);
    jobs_[waiting.sequence] = std::move(job);
  }
}

CalibrationJob JobRunner::Calibrate(const Waiting& waiting, CalibrationJob job) {
  auto outcome = Guarded(calibrator_, waiting.input);
  absl::Status status = outcome.status();
  if (status.ok() && outcome->publish) status = library_.Store(outcome->set);
  if (!status.ok()) {
    job.set_state(CalibrationJob::STATE_FAILED);
    job.set_error(std::string(status.message()));
    return job;
  }
  job.set_state(CalibrationJob::STATE_SUCCEEDED);
  job.set_parameter_set_version(outcome->set->version());
  job.set_published(outcome->publish);
  if (outcome->initial_held_out_mape_percent.has_value()) {
    job.set_initial_held_out_mape_percent(*outcome->initial_held_out_mape_percent);
  }
  if (outcome->held_out_mape_percent.has_value()) {
    job.set_held_out_mape_percent(*outcome->held_out_mape_percent);
  }
  job.set_used_row_count(outcome->used_row_count);
  job.set_refused_row_count(outcome->refused_row_count);
  job.set_report(outcome->report);
  if (!outcome->publish || !waiting.push) return job;
  for (const PushResult& result : targets_.Push(*outcome->set)) {
    auto* item = job.add_push_results();
    item->set_target(result.target);
    item->set_acknowledged_version(result.acknowledged_version);
    item->set_error(std::string(result.status.message()));
  }
  return job;
}

}  // namespace sextant::calibration_service
