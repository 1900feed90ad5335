// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_STORE_RECORD_STORE_H_
#define SEXTANT_SERVICES_CALIBRATION_STORE_RECORD_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "services/calibration/store/database.h"
#include "sextant/calibration/v1/calibration_service.pb.h"

// Everything that the calibration service must not forget: measurements, jobs, parameter sets,
// pushes, judgements. Times are microseconds since 1970 in names that end in _us.
namespace sextant::calibration_service {

struct MeasurementRecord {
  int64_t sequence = 0;  // in order of arrival, from 1
  std::string kind;      // "operators", "collectives", "training", "inference"
  std::string id;        // unique within its kind
  std::string accelerator;
  std::string software;
  std::string suite;
  std::string measured_time;  // as the file says; may be empty
  int64_t ingested_us = 0;
  std::map<std::string, std::string> columns;
};

enum class Taken : int { kNew, kKnown, kConflict };  // kConflict: the id has another content

// What a job works on.
struct JobRequest {
  bool push = false;
  bool automatic = false;  // started by the watch
  std::string initial_version;
  // Sequence numbers of the measurements to use; nothing: all that there are.
  std::optional<std::vector<int64_t>> measurements;
  // Measurements of a group that drifted, from before it did: not used.
  struct Superseded {
    std::string accelerator;
    std::string kind;  // as MeasurementRecord::kind
    int64_t before = 0;
  };
  std::vector<Superseded> superseded;
};

struct JobRecord {
  int64_t sequence = 0;
  calibration::v1::CalibrationJob job;  // state and attempt_count included
  JobRequest request;
  bool cancel_requested = false;
};

struct PushRecord {
  int64_t sequence = 0;
  std::string version;
  int64_t previous = 0;  // sequence of the push that a rollback goes back to; 0: none
  std::string kind;      // "baseline", "push", "rollback"
  std::string state;     // "preparing", "committing", "done", "aborted"
  int64_t created_us = 0;
  int64_t ended_us = 0;
  std::string error;
};

struct TargetRecord {
  std::string target;
  std::string acknowledged_version;
  std::string foreign_version;
};

struct SetRecord {
  std::string version;
  std::string name;
  std::string json;
};

// One measured number against the prediction of the set that was in service.
struct JudgementRecord {
  int64_t measurement = 0;  // its sequence
  std::string version;
  std::string accelerator;
  std::string kind;
  std::string metric;
  double error_percent = 0;  // signed: predicted over measured minus one
  std::optional<bool> inside_interval;
  bool extrapolated = false;
};

// What one transaction may do. Valid only within it.
class Records {
 public:
  explicit Records(Database& database) : database_(database) {}

  // `sequence` is set for a new one.
  absl::StatusOr<Taken> AddMeasurement(MeasurementRecord* measurement);
  absl::StatusOr<std::vector<MeasurementRecord>> MeasurementsAfter(int64_t sequence, int64_t limit);
  absl::StatusOr<std::vector<MeasurementRecord>> MeasurementsBefore(int64_t sequence,
                                                                    int64_t limit);
  absl::StatusOr<int64_t> MeasurementCountAfter(int64_t sequence);

  // A new job takes its number and name.
  absl::Status AddJob(JobRecord* job, int64_t now_us);
  absl::Status UpdateJob(const JobRecord& job);
  absl::Status RequestCancel(int64_t sequence);
  absl::StatusOr<std::optional<JobRecord>> FindJob(int64_t sequence);
  absl::StatusOr<std::vector<JobRecord>> JobsBefore(int64_t sequence, int64_t limit);
  absl::StatusOr<int64_t> WaitingJobCount();
  // The oldest job that waits, or that runs without anyone who renews its lease; now held by
  // `owner` until `lease_until_us`.
  absl::StatusOr<std::optional<JobRecord>> ClaimJob(const std::string& owner, int64_t now_us,
                                                    int64_t lease_until_us);
  absl::Status RenewLease(int64_t sequence, const std::string& owner, int64_t lease_until_us);
  // Ends all leases: their holders are gone.
  absl::Status ExpireLeases();
  absl::StatusOr<std::optional<JobRecord>> LastJob(bool automatic_only);

  absl::Status AddSet(const SetRecord& set, int64_t now_us);  // idempotent
  absl::StatusOr<std::optional<SetRecord>> FindSet(absl::string_view version);
  absl::StatusOr<std::vector<SetRecord>> Sets();

  absl::Status AddPush(PushRecord* push);
  absl::Status UpdatePush(const PushRecord& push);
  absl::StatusOr<std::optional<PushRecord>> FindPush(int64_t sequence);
  absl::StatusOr<std::vector<PushRecord>> PushesBefore(int64_t sequence, int64_t limit);
  // The newest that was not aborted and that is (not) decided: "committing" or "done".
  absl::StatusOr<std::optional<PushRecord>> LastPush(bool decided);
  absl::Status PutTarget(const TargetRecord& target);
  absl::StatusOr<std::vector<TargetRecord>> Targets();

  absl::Status AddJudgement(const JudgementRecord& judgement);
  // The newest `limit` under `version`, newest first.
  absl::StatusOr<std::vector<JudgementRecord>> Judgements(absl::string_view version, int64_t limit);

  // Small numbers by name; 0 where never set.
  absl::Status PutNumber(absl::string_view name, int64_t value);
  absl::StatusOr<int64_t> Number(absl::string_view name);

 private:
  Database& database_;
};

// The store. Opening brings an older schema up to date; FAILED_PRECONDITION for a newer one.
// Thread-safe: transactions run one after another.
class RecordStore {
 public:
  static constexpr int64_t kNewest = INT64_MAX;  // as `sequence` of ...Before

  // A SQLite file, ":memory:", or a PostgreSQL connection string.
  static absl::StatusOr<std::unique_ptr<RecordStore>> Open(const std::string& location);

  // Runs `work` in one transaction: everything is stored where it returns OK, nothing elsewhere.
  absl::Status Transact(const std::function<absl::Status(Records&)>& work);
  // The same for work with an answer.
  template <typename Work>
  auto Ask(const Work& work) -> decltype(work(std::declval<Records&>())) {
    decltype(work(std::declval<Records&>())) answer = absl::UnknownError("not asked");
    const absl::Status status = Transact([&](Records& records) {
      answer = work(records);
      return answer.status();
    });
    if (!status.ok()) return status;
    return answer;
  }

  bool exclusive() const { return database_->exclusive(); }

 private:
  explicit RecordStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}
  absl::Status Migrate();

  std::mutex mutex_;
  std::unique_ptr<Database> database_;
};

int64_t NowMicroseconds();

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_STORE_RECORD_STORE_H_
