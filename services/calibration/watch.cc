// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/watch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "calibration/evaluate/validate.h"
#include "common/base/status_macros.h"
#include "common/catalog/catalog.h"
#include "google/protobuf/util/time_util.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "services/calibration/drift.h"
#include "services/calibration/measurement_files.h"
#include "services/runtime/log.h"

namespace sextant::calibration_service {
namespace {

using calibration::v1::CalibrationJob;
using google::protobuf::util::TimeUtil;

constexpr int64_t kPage = 500;               // measurements judged at once
constexpr int64_t kJudgementLimit = 20'000;  // newest that are looked at

// Names of small numbers in the store.
constexpr char kJudgedThrough[] = "judged_through";
constexpr char kUsedThrough[] = "used_through";
constexpr char kWatchFrom[] = "watch_from";
constexpr char kAttemptedThrough[] = "attempted_through";
constexpr char kRolledBack[] = "rolled_back_us";

// "operators" of the store is "operator" of a validation.
std::string StoreKind(const std::string& kind) {
  return kind == "operator" || kind == "collective" ? kind + "s" : kind;
}

int64_t EndMicroseconds(const CalibrationJob& job) {
  return TimeUtil::TimestampToMicroseconds(job.has_end_time() ? job.end_time() : job.create_time());
}

}  // namespace

Judge DefaultJudge(const std::string& datasets_directory) {
  const std::string directory =
      datasets_directory.empty() ? catalog::DefaultDatasetsDirectory() : datasets_directory;
  return [directory](const std::vector<MeasurementRecord>& rows,
                     const SharedSet& set) -> absl::StatusOr<std::vector<JudgementRecord>> {
    SEXTANT_ASSIGN_OR_RETURN(const auto catalog, catalog::Catalog::Open(directory));
    SEXTANT_ASSIGN_OR_RETURN(const auto typed, TypedMeasurements(rows, catalog));
    SEXTANT_ASSIGN_OR_RETURN(const auto report, sextant::calibration::Validate(typed, set));
    std::map<std::pair<std::string, std::string>, int64_t> sequences;
    for (const MeasurementRecord& row : rows) sequences[{row.kind, row.id}] = row.sequence;
    std::vector<JudgementRecord> judgements;
    for (const auto& row : report.rows) {
      if (!row.error_percent || !row.counted || !std::isfinite(*row.error_percent)) continue;
      JudgementRecord judgement{.measurement = sequences[{StoreKind(row.kind), row.id}],
                                .version = set->version(),
                                .accelerator = row.accelerator,
                                .kind = row.kind,
                                .metric = row.metric,
                                .error_percent = *row.error_percent,
                                .extrapolated = row.extrapolated};
      if (row.interval_low_seconds && row.interval_high_seconds && row.measured_seconds) {
        judgement.inside_interval = *row.interval_low_seconds <= *row.measured_seconds &&
                                    *row.measured_seconds <= *row.interval_high_seconds;
      }
      judgements.push_back(std::move(judgement));
    }
    return judgements;
  };
}

struct Watch::Gauges {
  using Family = prometheus::Family<prometheus::Gauge>;

  explicit Gauges(runtime::Metrics& metrics)
      : registry(metrics.registry()),
        mape(Make("sextant_calibration_rolling_mape_ratio",
                  "Mean absolute relative error of the set in service on the newest "
                  "measurements.")),
        bias(Make("sextant_calibration_rolling_bias_ratio",
                  "Median signed error; above 0 where predictions are too long.")),
        p_value(Make("sextant_calibration_drift_p_value",
                     "Chance of as many errors on one side without drift.")),
        drifted(Make("sextant_calibration_drifted", "1 where the group has drifted.")),
        interval(Make("sextant_calibration_interval_coverage_ratio",
                      "Share of measurements within the interval of their prediction.")),
        domain(Make("sextant_calibration_domain_coverage_ratio",
                    "Share of measurements inside the domain that the set was fitted on.")),
        judged(prometheus::BuildCounter()
                   .Name("sextant_calibration_judged_measurements_total")
                   .Help("Measured numbers compared with the set in service.")
                   .Register(registry)
                   .Add({})),
        started(prometheus::BuildCounter()
                    .Name("sextant_calibration_automatic_jobs_total")
                    .Help("Jobs that the watch started, by what started them.")
                    .Register(registry)),
        unused(Make("sextant_calibration_unused_measurements",
                    "Measurements that no calibration has used yet.")
                   .Add({})),
        current(Make("sextant_calibration_push_target_current",
                     "1 where the target serves the set that it should.")) {
    for (const char* trigger : {"drift", "error", "count", "schedule"}) {
      started.Add({{"trigger", trigger}});
    }
  }

  Family& Make(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry& registry;
  Family &mape, &bias, &p_value, &drifted, &interval, &domain;
  prometheus::Counter& judged;
  prometheus::Family<prometheus::Counter>& started;
  prometheus::Gauge& unused;
  Family& current;
  // Groups and targets shown, to take away those that are no more.
  std::map<std::map<std::string, std::string>, std::vector<prometheus::Gauge*>> groups;
};

Watch::Watch(RecordStore& store, SetLibrary& library, Fleet& fleet, JobRunner& jobs, Judge judge,
             WatchOptions options, runtime::Metrics& metrics)
    : store_(store),
      fleet_(fleet),
      jobs_(jobs),
      judge_(std::move(judge)),
      options_(options),
      gauges_(std::make_unique<Gauges>(metrics)),
      initial_(library.Find("default")),
      thread_([this] { Run(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

absl::Status Watch::AfterRollback() {
  return store_.Transact([](Records& records) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const auto newest,
                             records.MeasurementsBefore(RecordStore::kNewest, 1));
    const int64_t last = newest.empty() ? 0 : newest.front().sequence;
    SEXTANT_RETURN_IF_ERROR(records.PutNumber(kWatchFrom, last));
    SEXTANT_RETURN_IF_ERROR(records.PutNumber(kAttemptedThrough, last));
    return records.PutNumber(kRolledBack, NowMicroseconds());
  });
}

absl::StatusOr<SharedSet> Watch::SetInService() const {
  SEXTANT_ASSIGN_OR_RETURN(SharedSet set, fleet_.InService());
  return set != nullptr ? set : initial_;
}

absl::Status Watch::JudgeNew() {
  while (true) {
    SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, SetInService());
    int64_t from = 0;
    SEXTANT_ASSIGN_OR_RETURN(
        const auto rows,
        store_.Ask([&](Records& records) -> absl::StatusOr<std::vector<MeasurementRecord>> {
          SEXTANT_ASSIGN_OR_RETURN(from, records.Number(kJudgedThrough));
          return records.MeasurementsAfter(from, kPage);
        }));
    if (rows.empty()) return absl::OkStatus();
    auto judgements = judge_(rows, set);
    if (!judgements.ok()) {
      // Rows that cannot be judged must not hold up those behind them.
      runtime::Log(runtime::Severity::kWarning, "measurements cannot be judged",
                   {{"reason", judgements.status().message()}});
      judgements = std::vector<JudgementRecord>();
    }
    bool mine = false;
    if (const absl::Status transacted = store_.Transact([&](Records& records) -> absl::Status {
          // Another replica may have judged them meanwhile.
          SEXTANT_ASSIGN_OR_RETURN(const int64_t now, records.Number(kJudgedThrough));
          mine = now == from;
          if (!mine) return absl::OkStatus();
          for (const JudgementRecord& judgement : *judgements) {
            SEXTANT_RETURN_IF_ERROR(records.AddJudgement(judgement));
          }
          return records.PutNumber(kJudgedThrough, rows.back().sequence);
        });
        !transacted.ok())
      return transacted;
    if (mine) gauges_->judged.Increment(static_cast<double>(judgements->size()));
  }
}

absl::StatusOr<std::vector<Watch::Group>> Watch::Groups(Records& records,
                                                        const std::string& version) const {
  SEXTANT_ASSIGN_OR_RETURN(const auto judgements, records.Judgements(version, kJudgementLimit));
  SEXTANT_ASSIGN_OR_RETURN(const int64_t watch_from, records.Number(kWatchFrom));
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<const JudgementRecord*>>
      by_group;  // newest first
  for (const JudgementRecord& judgement : judgements) {
    if (judgement.measurement <= watch_from) continue;
    by_group[{judgement.accelerator, judgement.kind, judgement.metric}].push_back(&judgement);
  }
  std::vector<Group> groups;
  for (const auto& [key, all] : by_group) {
    const size_t count = std::min(all.size(), static_cast<size_t>(options_.window));
    std::vector<double> errors;
    double inside = 0, intervals = 0, known = 0;
    for (size_t i = 0; i < count; ++i) {
      errors.push_back(all[i]->error_percent);
      if (all[i]->inside_interval) {
        ++intervals;
        inside += *all[i]->inside_interval ? 1 : 0;
      }
      known += all[i]->extrapolated ? 0 : 1;
    }
    const DriftTest test = TestDrift(errors, options_.drift_threshold_percent);
    Group group;
    std::vector<double> history;
    for (auto it = all.rbegin(); it != all.rend(); ++it) history.push_back((*it)->error_percent);
    const auto change = static_cast<size_t>(ChangePoint(history, options_.drift_threshold_percent));
    group.changed_at = all[all.size() - 1 - change]->measurement;
    group.trimmed_mape_percent = test.trimmed_mape_percent;
    group.state.set_accelerator(std::get<0>(key));
    group.state.set_kind(std::get<1>(key));
    group.state.set_metric(std::get<2>(key));
    group.state.set_count(static_cast<int64_t>(count));
    group.state.set_mape_percent(test.mape_percent);
    group.state.set_bias_percent(test.bias_percent);
    group.state.set_drift_p_value(test.p_value);
    group.state.set_drifted(test.drifted);
    group.has_intervals = intervals > 0;
    if (intervals > 0) group.state.set_interval_coverage_percent(100 * inside / intervals);
    group.state.set_domain_coverage_percent(100 * known / static_cast<double>(count));
    groups.push_back(std::move(group));
  }
  return groups;
}

absl::StatusOr<int64_t> Watch::QuietUntil(Records& records) const {
  SEXTANT_ASSIGN_OR_RETURN(int64_t last_us, records.Number(kRolledBack));
  SEXTANT_ASSIGN_OR_RETURN(const auto job, records.LastJob(true));
  if (job.has_value()) last_us = std::max(last_us, EndMicroseconds(job->job));
  return last_us == 0 ? 0 : last_us + options_.cool_down.count() * 1'000'000;
}

absl::Status Watch::StartJobIfDue() {
  SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, SetInService());
  std::vector<Group> groups;
  int64_t unused = 0;
  JobRecord job;
  bool start = false;
  if (const absl::Status transacted = store_.Transact([&](Records& records) -> absl::Status {
        SEXTANT_ASSIGN_OR_RETURN(groups, Groups(records, set->version()));
        SEXTANT_ASSIGN_OR_RETURN(const int64_t used, records.Number(kUsedThrough));
        SEXTANT_ASSIGN_OR_RETURN(unused, records.MeasurementCountAfter(used));
        SEXTANT_ASSIGN_OR_RETURN(const int64_t attempted, records.Number(kAttemptedThrough));
        SEXTANT_ASSIGN_OR_RETURN(const int64_t fresh, records.MeasurementCountAfter(attempted));
        SEXTANT_ASSIGN_OR_RETURN(const int64_t quiet_until, QuietUntil(records));
        SEXTANT_ASSIGN_OR_RETURN(const auto last, records.LastJob(false));
        const int64_t now_us = NowMicroseconds();
        const bool busy = last.has_value() && !last->job.has_end_time();
        if (!options_.automatic || fresh == 0 || busy || now_us < quiet_until)
          return absl::OkStatus();

        std::string trigger, detail;
        for (const Group& group : groups) {
          const auto& state = group.state;
          const std::string name =
              absl::StrCat(state.accelerator(), " ", state.kind(), " ", state.metric());
          if (state.drifted()) {
            trigger = "drift";
            detail = absl::StrFormat("%s: median error %+.1f %% over %d rows, p = %.1e", name,
                                     state.bias_percent(), state.count(), state.drift_p_value());
            job.request.superseded.push_back(
                {state.accelerator(), StoreKind(state.kind()), group.changed_at});
          } else if (trigger.empty() && options_.error_threshold_percent > 0 &&
                     state.count() >= 10 &&
                     group.trimmed_mape_percent > options_.error_threshold_percent) {
            trigger = "error";
            detail = absl::StrFormat("%s: mean error %.1f %% over %d rows", name,
                                     state.mape_percent(), state.count());
          }
        }
        if (trigger.empty() && options_.row_count > 0 && fresh >= options_.row_count) {
          trigger = "count";
          detail = absl::StrCat(fresh, " new rows");
        }
        if (trigger.empty() && options_.schedule.count() > 0) {
          SEXTANT_ASSIGN_OR_RETURN(const auto oldest, records.MeasurementsAfter(attempted, 1));
          const int64_t since_us =
              last.has_value() ? EndMicroseconds(last->job) : oldest.front().ingested_us;
          if (now_us - since_us >= options_.schedule.count() * 1'000'000) trigger = "schedule";
        }
        if (trigger.empty()) return absl::OkStatus();
        job.request.automatic = true;
        job.request.push = true;
        job.request.initial_version = set->version();
        job.job.set_trigger(trigger);
        job.job.set_trigger_detail(detail);
        SEXTANT_RETURN_IF_ERROR(SetLibrary::Store(set, records));
        SEXTANT_RETURN_IF_ERROR(JobRunner::Add(records, &job));
        SEXTANT_ASSIGN_OR_RETURN(const auto newest,
                                 records.MeasurementsBefore(RecordStore::kNewest, 1));
        start = true;
        return records.PutNumber(kAttemptedThrough, newest.front().sequence);
      });
      !transacted.ok())
    return transacted;

  Gauges& gauges = *gauges_;
  gauges.unused.Set(static_cast<double>(unused));
  std::set<std::map<std::string, std::string>> seen;
  for (const Group& group : groups) {
    const auto& state = group.state;
    const std::map<std::string, std::string> labels = {
        {"accelerator", state.accelerator()}, {"kind", state.kind()}, {"metric", state.metric()}};
    seen.insert(labels);
    gauges.mape.Add(labels).Set(state.mape_percent() / 100);
    gauges.bias.Add(labels).Set(state.bias_percent() / 100);
    gauges.p_value.Add(labels).Set(state.drift_p_value());
    gauges.drifted.Add(labels).Set(state.drifted());
    if (group.has_intervals) {
      gauges.interval.Add(labels).Set(state.interval_coverage_percent() / 100);
    } else {
      gauges.interval.Remove(&gauges.interval.Add(labels));
    }
    gauges.domain.Add(labels).Set(state.domain_coverage_percent() / 100);
    gauges.groups[labels];
  }
  // Under a new set a group starts without judgements.
  std::erase_if(gauges.groups, [&](const auto& item) {
    if (seen.contains(item.first)) return false;
    for (auto* family : {&gauges.mape, &gauges.bias, &gauges.p_value, &gauges.drifted,
                         &gauges.interval, &gauges.domain}) {
      family->Remove(&family->Add(item.first));
    }
    return true;
  });
  for (const TargetState& target : fleet_.Targets()) {
    gauges.current.Add({{"target", target.target}}).Set(target.current);
  }
  if (!start) return absl::OkStatus();
  gauges.started.Add({{"trigger", job.job.trigger()}}).Increment();
  runtime::Log(runtime::Severity::kInfo, "calibration queued",
               {{"job", job.job.name()},
                {"trigger", job.job.trigger()},
                {"detail", job.job.trigger_detail()}});
  jobs_.Wake();
  return absl::OkStatus();
}

absl::StatusOr<calibration::v1::GetWatchStatusResponse> Watch::Status() const {
  SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, SetInService());
  return store_.Ask(
      [&](Records& records) -> absl::StatusOr<calibration::v1::GetWatchStatusResponse> {
        calibration::v1::GetWatchStatusResponse status;
        status.set_version(set->version());
        SEXTANT_ASSIGN_OR_RETURN(const auto groups, Groups(records, set->version()));
        for (const Group& group : groups) *status.add_groups() = group.state;
        SEXTANT_ASSIGN_OR_RETURN(const int64_t used, records.Number(kUsedThrough));
        SEXTANT_ASSIGN_OR_RETURN(const int64_t unused, records.MeasurementCountAfter(used));
        status.set_unused_count(unused);
        SEXTANT_ASSIGN_OR_RETURN(const int64_t quiet_until, QuietUntil(records));
        if (quiet_until > NowMicroseconds()) {
          *status.mutable_quiet_until() = TimeUtil::MicrosecondsToTimestamp(quiet_until);
        }
        return status;
      });
}

void Watch::Run() {
  constexpr std::chrono::seconds kTick{1};  // for schedules, cool-downs and other replicas' rows
  std::string last_error;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kTick, [this] { return stopping_ || woken_; });
      if (stopping_) return;
      woken_ = false;
      busy_ = true;
    }
    absl::Status status = JudgeNew();
    if (status.ok()) status = StartJobIfDue();
    if (!status.ok() && std::string(status.message()) != last_error) {
      runtime::Log(runtime::Severity::kWarning, "watch failed", {{"reason", status.message()}});
    }
    last_error = std::string(status.message());
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }
}

bool Watch::Idle() {
  const std::lock_guard lock(mutex_);
  return !woken_ && !busy_;
}

}  // namespace sextant::calibration_service
