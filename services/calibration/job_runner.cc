// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/job_runner.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "services/runtime/log.h"

namespace sextant::calibration_service {

using calibration::v1::CalibrationJob;
using google::protobuf::util::TimeUtil;

namespace {

constexpr char kCollection[] = "calibrationJobs/";
constexpr int64_t kLeaseMicroseconds = 15'000'000;
constexpr std::chrono::milliseconds kPoll{500};  // for jobs of other replicas

absl::StatusOr<int64_t> SequenceOf(absl::string_view name) {
  absl::string_view number = name;
  int64_t sequence = 0;
  if (absl::ConsumePrefix(&number, kCollection) && absl::SimpleAtoi(number, &sequence)) {
    return sequence;
  }
  return absl::NotFoundError(
      absl::StrCat("unknown calibration job \"", name, "\"; ListCalibrationJobs names all"));
}

absl::Status UnknownJob(absl::string_view name) {
  return SequenceOf(absl::StrCat("?", name)).status();
}

absl::StatusOr<CalibrationOutcome> Guarded(const Calibrator& calibrator,
                                           const CalibrationInput& input) {
  try {
    return calibrator(input);
  } catch (const std::exception& error) {  // a failed fit must not take the service down
    return absl::InternalError(error.what());
  }
}

}  // namespace

JobRunner::JobRunner(Calibrator calibrator, RecordStore& store, SetLibrary& library, Fleet& fleet)
    : calibrator_(std::move(calibrator)),
      store_(store),
      library_(library),
      fleet_(fleet),
      owner_(absl::StrCat(getpid(), "-", NowMicroseconds())),
      thread_([this] { Run(); }) {}

JobRunner::~JobRunner() {
  interrupted_ = true;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    watches_end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void JobRunner::Stop() {
  {
    const std::lock_guard lock(mutex_);
    watches_end_ = true;
  }
  changed_.notify_all();
}

void JobRunner::Wake() {
  {
    const std::lock_guard lock(mutex_);
    ++changes_;
  }
  changed_.notify_all();
}

absl::Status JobRunner::Add(Records& records, JobRecord* job) {
  SEXTANT_ASSIGN_OR_RETURN(const int64_t waiting, records.WaitingJobCount());
  if (waiting >= kMaxQueuedJobs) {
    return absl::ResourceExhaustedError(absl::StrCat(
        kMaxQueuedJobs, " calibration jobs are waiting already; try again when one has ended"));
  }
  job->job.set_state(CalibrationJob::STATE_QUEUED);
  job->job.set_initial_parameter_set_version(job->request.initial_version);
  return records.AddJob(job, NowMicroseconds());
}

absl::StatusOr<CalibrationJob> JobRunner::Get(absl::string_view name) const {
  SEXTANT_ASSIGN_OR_RETURN(const int64_t sequence, SequenceOf(name));
  SEXTANT_ASSIGN_OR_RETURN(const auto job,
                           store_.Ask([&](Records& records) { return records.FindJob(sequence); }));
  if (!job.has_value()) return UnknownJob(name);
  return job->job;
}

absl::StatusOr<std::vector<CalibrationJob>> JobRunner::List(int64_t before, size_t count,
                                                            int64_t* next) const {
  SEXTANT_ASSIGN_OR_RETURN(auto records, store_.Ask([&](Records& r) {
    return r.JobsBefore(before, static_cast<int64_t>(count) + 1);
  }));
  *next = 0;
  if (records.size() > count) {
    records.pop_back();
    *next = records.back().sequence;
  }
  std::vector<CalibrationJob> page;
  for (JobRecord& record : records) {
    page.push_back(std::move(record.job));
    page.back().clear_report();
  }
  return page;
}

absl::StatusOr<CalibrationJob> JobRunner::Cancel(absl::string_view name) {
  SEXTANT_ASSIGN_OR_RETURN(const int64_t sequence, SequenceOf(name));
  auto cancelled = store_.Ask([&](Records& records) -> absl::StatusOr<CalibrationJob> {
    SEXTANT_ASSIGN_OR_RETURN(auto job, records.FindJob(sequence));
    if (!job.has_value()) return UnknownJob(name);
    const bool waits = job->job.state() == CalibrationJob::STATE_QUEUED;
    const bool fits = job->job.state() == CalibrationJob::STATE_RUNNING && !job->job.published();
    if (!waits && !fits) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, waits || fits ? "" : " has ended or is being pushed",
                       "; a set in service is taken back with RollbackParameterSet"));
    }
    SEXTANT_RETURN_IF_ERROR(records.RequestCancel(sequence));
    if (waits) {
      job->job.set_state(CalibrationJob::STATE_CANCELLED);
      *job->job.mutable_end_time() = TimeUtil::GetCurrentTime();
      SEXTANT_RETURN_IF_ERROR(records.UpdateJob(*job));
    }
    return job->job;
  });
  Wake();
  return cancelled;
}

absl::Status JobRunner::Watch(absl::string_view name,
                              const std::function<bool(const CalibrationJob&)>& tell) {
  std::string told;
  while (true) {
    int64_t seen;
    {
      const std::lock_guard lock(mutex_);
      if (watches_end_) return absl::UnavailableError("the server shuts down; watch again");
      seen = changes_;
    }
    SEXTANT_ASSIGN_OR_RETURN(const CalibrationJob job, Get(name));
    const std::string now = job.SerializeAsString();
    if (now != told && !tell(job)) return absl::OkStatus();
    told = now;
    if (job.has_end_time()) return absl::OkStatus();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPoll, [&] { return watches_end_ || changes_ != seen; });
  }
}

void JobRunner::Run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    const int64_t now_us = NowMicroseconds();
    auto claimed = store_.Ask([&](Records& records) {
      return records.ClaimJob(owner_, now_us, now_us + kLeaseMicroseconds);
    });
    if (claimed.ok() && claimed->has_value()) {
      RunOne(*std::move(*claimed));
      continue;
    }
    std::unique_lock lock(mutex_);
    const int64_t seen = changes_;
    changed_.wait_for(lock, kPoll, [&] { return stopping_ || changes_ != seen; });
  }
}

void JobRunner::RunOne(JobRecord job) {
  CalibrationJob& state = job.job;
  state.set_state(CalibrationJob::STATE_RUNNING);
  state.set_attempt_count(state.attempt_count() + 1);
  if (!state.has_start_time()) *state.mutable_start_time() = TimeUtil::GetCurrentTime();
  absl::Status status;
  if (job.cancel_requested && !state.published()) {
    status = absl::CancelledError("cancelled");
  } else if (state.attempt_count() > kMaxAttempts) {
    status = absl::AbortedError(
        absl::StrCat("was interrupted ", kMaxAttempts, " times by the end of the service"));
  } else {
    runtime::Log(
        runtime::Severity::kInfo, "calibration started",
        {{"job", state.name()}, {"trigger", state.trigger()}, {"detail", state.trigger_detail()}});
    // The lease is renewed beside the work: a fit has no step that is sure to be short.
    std::atomic<bool> done = false;
    std::thread renewer([&] {
      std::unique_lock lock(mutex_);
      while (!done) {
        changed_.wait_for(lock, std::chrono::seconds(3), [&] { return done.load(); });
        lock.unlock();
        if (!done) {
          (void)store_.Transact([&](Records& records) {
            return records.RenewLease(job.sequence, owner_, NowMicroseconds() + kLeaseMicroseconds);
          });
        }
        lock.lock();
      }
    });
    if (!state.published()) status = Calibrate(&job);
    if (status.ok() && state.published() && job.request.push) status = Push(&job);
    {
      const std::lock_guard lock(mutex_);
      done = true;
    }
    changed_.notify_all();
    renewer.join();
  }
  // A shutdown: the next process begins the job again.
  if (interrupted_ && absl::IsCancelled(status)) {
    state.set_attempt_count(state.attempt_count() - 1);
    state.set_state(CalibrationJob::STATE_QUEUED);
    state.clear_phase();
    (void)Save(job);
    return;
  }
  state.clear_phase();
  state.set_phase_fraction(0);
  *state.mutable_end_time() = TimeUtil::GetCurrentTime();
  state.set_state(status.ok()                 ? CalibrationJob::STATE_SUCCEEDED
                  : absl::IsCancelled(status) ? CalibrationJob::STATE_CANCELLED
                                              : CalibrationJob::STATE_FAILED);
  if (!status.ok() && !absl::IsCancelled(status)) state.set_error(std::string(status.message()));
  // Where the store cannot be written the job is not over: it is claimed again later.
  const absl::Status saved = Save(job);
  runtime::Log(saved.ok() ? runtime::Severity::kInfo : runtime::Severity::kError,
               "calibration ended",
               {{"job", state.name()},
                {"state", CalibrationJob::State_Name(state.state())},
                {"error", saved.ok() ? absl::string_view(state.error()) : saved.message()},
                {"version", state.parameter_set_version()}});
  std::function<void(const CalibrationJob&)> on_end;
  {
    const std::lock_guard lock(mutex_);
    on_end = on_end_;
  }
  if (on_end) on_end(state);
}

absl::Status JobRunner::Save(const JobRecord& job) {
  const absl::Status status =
      store_.Transact([&](Records& records) { return records.UpdateJob(job); });
  Wake();
  return status;
}

bool JobRunner::Progress(JobRecord* job, absl::string_view phase, double fraction) {
  if (interrupted_) return false;
  bool go_on = true;
  job->job.set_phase(std::string(phase));
  job->job.set_phase_fraction(fraction);
  const absl::Status status = store_.Transact([&](Records& records) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const auto stored, records.FindJob(job->sequence));
    go_on = stored.has_value() && !stored->cancel_requested;
    return records.UpdateJob(*job);
  });
  Wake();
  return go_on || !status.ok();
}

absl::StatusOr<std::vector<MeasurementRecord>> JobRunner::RowsOf(const JobRequest& request) {
  constexpr int64_t kPage = 5000;
  std::vector<MeasurementRecord> rows;
  std::vector<int64_t> wanted = request.measurements.value_or(std::vector<int64_t>());
  std::sort(wanted.begin(), wanted.end());
  int64_t last = 0;
  while (true) {
    SEXTANT_ASSIGN_OR_RETURN(auto page, store_.Ask([&](Records& records) {
      return records.MeasurementsAfter(last, kPage);
    }));
    if (page.empty()) return rows;
    last = page.back().sequence;
    for (MeasurementRecord& row : page) {
      if (request.measurements.has_value() &&
          !std::binary_search(wanted.begin(), wanted.end(), row.sequence)) {
        continue;
      }
      const bool superseded =
          std::any_of(request.superseded.begin(), request.superseded.end(), [&](const auto& item) {
            return item.kind == row.kind && item.accelerator == row.accelerator &&
                   row.sequence < item.before;
          });
      if (!superseded) rows.push_back(std::move(row));
    }
  }
}

absl::Status JobRunner::Calibrate(JobRecord* job) {
  CalibrationJob& state = job->job;
  if (!Progress(job, "reading", 0)) return absl::CancelledError("cancelled");
  CalibrationInput input;
  SEXTANT_ASSIGN_OR_RETURN(input.rows, RowsOf(job->request));
  SEXTANT_ASSIGN_OR_RETURN(input.initial, library_.Find(job->request.initial_version));
  input.progress = [&](absl::string_view phase, double fraction) {
    return Progress(job, phase, fraction);
  };
  const int64_t through = input.rows.empty() ? 0 : input.rows.back().sequence;
  SEXTANT_ASSIGN_OR_RETURN(const CalibrationOutcome outcome, Guarded(calibrator_, input));
  if (!Progress(job, "publishing", 0)) return absl::CancelledError("cancelled");
  state.set_parameter_set_version(outcome.set->version());
  if (outcome.initial_held_out_mape_percent.has_value()) {
    state.set_initial_held_out_mape_percent(*outcome.initial_held_out_mape_percent);
  }
  if (outcome.held_out_mape_percent.has_value()) {
    state.set_held_out_mape_percent(*outcome.held_out_mape_percent);
  }
  state.set_used_row_count(outcome.used_row_count);
  state.set_refused_row_count(outcome.refused_row_count);
  state.set_report(outcome.report);
  state.set_published(outcome.publish);
  if (outcome.publish) state.set_phase(job->request.push ? "pushing" : "publishing");
  // The set and that it is published: both or neither.
  const absl::Status status = store_.Transact([&](Records& records) -> absl::Status {
    if (outcome.publish) SEXTANT_RETURN_IF_ERROR(SetLibrary::Store(outcome.set, records));
    if (!job->request.measurements.has_value()) {
      SEXTANT_RETURN_IF_ERROR(records.PutNumber("used_through", through));
    }
    return records.UpdateJob(*job);
  });
  if (!status.ok()) state.set_published(false);
  Wake();
  return status;
}

absl::Status JobRunner::Push(JobRecord* job) {
  SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, library_.Find(job->job.parameter_set_version()));
  SEXTANT_ASSIGN_OR_RETURN(const PushOutcome outcome, fleet_.Push(set));
  job->job.clear_push_results();
  for (const PushResult& result : outcome.results) {
    auto* item = job->job.add_push_results();
    item->set_target(result.target);
    item->set_acknowledged_version(result.acknowledged_version);
    item->set_error(std::string(result.status.message()));
  }
  return absl::OkStatus();
}

}  // namespace sextant::calibration_service
