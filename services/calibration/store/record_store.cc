// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/store/record_store.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "google/protobuf/util/json_util.h"

namespace sextant::calibration_service {
namespace {

using calibration::v1::CalibrationJob;
using nlohmann::json;

// Each brings the schema from its index to the next version. Never change one that was released:
// append. {serial}: a column that numbers its rows.
constexpr const char* kMigrations[][16] = {
    {"CREATE TABLE measurements (sequence {serial}, kind TEXT NOT NULL, id TEXT NOT NULL, "
     "accelerator TEXT NOT NULL, software TEXT NOT NULL, suite TEXT NOT NULL, "
     "measured_time TEXT NOT NULL, ingested_us BIGINT NOT NULL, columns TEXT NOT NULL, "
     "UNIQUE (kind, id))",
     "CREATE TABLE jobs (sequence {serial}, state TEXT NOT NULL, automatic BIGINT NOT NULL, "
     "job TEXT NOT NULL, request TEXT NOT NULL, cancel_requested BIGINT NOT NULL, "
     "owner TEXT NOT NULL, lease_until_us BIGINT NOT NULL)",
     "CREATE INDEX jobs_by_state ON jobs (state)",
     "CREATE TABLE parameter_sets (version TEXT PRIMARY KEY, name TEXT NOT NULL, "
     "json TEXT NOT NULL, created_us BIGINT NOT NULL)",
     "CREATE TABLE pushes (sequence {serial}, version TEXT NOT NULL, previous BIGINT NOT NULL, "
     "kind TEXT NOT NULL, state TEXT NOT NULL, created_us BIGINT NOT NULL, "
     "ended_us BIGINT NOT NULL, error TEXT NOT NULL)",
     "CREATE TABLE push_targets (target TEXT PRIMARY KEY, acknowledged_version TEXT NOT NULL, "
     "foreign_version TEXT NOT NULL)",
     "CREATE TABLE judgements (sequence {serial}, measurement BIGINT NOT NULL, "
     "version TEXT NOT NULL, accelerator TEXT NOT NULL, kind TEXT NOT NULL, metric TEXT NOT NULL, "
     "error_percent DOUBLE PRECISION NOT NULL, inside_interval BIGINT, "
     "extrapolated BIGINT NOT NULL)",
     "CREATE INDEX judgements_by_version ON judgements (version, sequence)",
     "CREATE TABLE numbers (name TEXT PRIMARY KEY, value BIGINT NOT NULL)"},
};
constexpr int64_t kSchemaVersion = std::size(kMigrations);

constexpr char kMeasurementColumns[] =
    "sequence, kind, id, accelerator, software, suite, measured_time, ingested_us, columns";
constexpr char kJobColumns[] = "sequence, job, request, cancel_requested";
constexpr char kPushColumns[] =
    "sequence, version, previous, kind, state, created_us, ended_us, error";

int64_t Integer(const SqlValue& value) {
  const auto* integer = std::get_if<int64_t>(&value);
  return integer == nullptr ? 0 : *integer;
}

std::string Text(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? "" : *text;
}

absl::Status Damaged(absl::string_view what, int64_t sequence, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("stored ", what, " ", sequence, ": ", why));
}

absl::StatusOr<MeasurementRecord> MeasurementOf(const SqlRow& row) {
  MeasurementRecord record;
  record.sequence = Integer(row[0]);
  record.kind = Text(row[1]);
  record.id = Text(row[2]);
  record.accelerator = Text(row[3]);
  record.software = Text(row[4]);
  record.suite = Text(row[5]);
  record.measured_time = Text(row[6]);
  record.ingested_us = Integer(row[7]);
  const json columns = json::parse(Text(row[8]), nullptr, false);
  if (!columns.is_object()) return Damaged("measurement", record.sequence, "is not JSON");
  for (const auto& [name, value] : columns.items()) {
    if (value.is_string()) record.columns[name] = value.get<std::string>();
  }
  return record;
}

absl::StatusOr<std::vector<MeasurementRecord>> MeasurementsOf(const std::vector<SqlRow>& rows) {
  std::vector<MeasurementRecord> records;
  for (const SqlRow& row : rows) {
    SEXTANT_ASSIGN_OR_RETURN(records.emplace_back(), MeasurementOf(row));
  }
  return records;
}

std::string RequestJson(const JobRequest& request) {
  json document = {{"push", request.push},
                   {"automatic", request.automatic},
                   {"initial_version", request.initial_version}};
  if (request.measurements) document["measurements"] = *request.measurements;
  for (const JobRequest::Superseded& item : request.superseded) {
    document["superseded"].push_back(
        {{"accelerator", item.accelerator}, {"kind", item.kind}, {"before", item.before}});
  }
  return document.dump(-1, ' ', true, json::error_handler_t::replace);
}

JobRequest RequestOf(const json& document) {
  JobRequest request;
  request.push = document.value("push", false);
  request.automatic = document.value("automatic", false);
  request.initial_version = document.value("initial_version", "");
  if (document.contains("measurements")) {
    request.measurements = document["measurements"].get<std::vector<int64_t>>();
  }
  for (const json& item : document.value("superseded", json::array())) {
    request.superseded.push_back(
        {item.value("accelerator", ""), item.value("kind", ""), item.value("before", int64_t{0})});
  }
  return request;
}

absl::StatusOr<std::string> JobJson(const CalibrationJob& job) {
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(job, &text);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  return text;
}

absl::StatusOr<JobRecord> JobOf(const SqlRow& row) {
  JobRecord record;
  record.sequence = Integer(row[0]);
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // of a newer program
  const auto status =
      google::protobuf::util::JsonStringToMessage(Text(row[1]), &record.job, options);
  if (!status.ok()) return Damaged("job", record.sequence, std::string(status.message()));
  const json request = json::parse(Text(row[2]), nullptr, false);
  if (!request.is_object()) return Damaged("job", record.sequence, "its request is not JSON");
  record.request = RequestOf(request);
  record.cancel_requested = Integer(row[3]) != 0;
  return record;
}

absl::StatusOr<std::optional<JobRecord>> MaybeJob(const absl::StatusOr<std::vector<SqlRow>>& rows) {
  if (!rows.ok()) return rows.status();
  if (rows->empty()) return std::nullopt;
  SEXTANT_ASSIGN_OR_RETURN(JobRecord record, JobOf(rows->front()));
  return record;
}

PushRecord PushOf(const SqlRow& row) {
  return {.sequence = Integer(row[0]),
          .version = Text(row[1]),
          .previous = Integer(row[2]),
          .kind = Text(row[3]),
          .state = Text(row[4]),
          .created_us = Integer(row[5]),
          .ended_us = Integer(row[6]),
          .error = Text(row[7])};
}

absl::StatusOr<std::optional<PushRecord>> MaybePush(
    const absl::StatusOr<std::vector<SqlRow>>& rows) {
  if (!rows.ok()) return rows.status();
  if (rows->empty()) return std::nullopt;
  return PushOf(rows->front());
}

std::string StateName(const CalibrationJob& job) { return CalibrationJob::State_Name(job.state()); }

}  // namespace

int64_t NowMicroseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

absl::StatusOr<Taken> Records::AddMeasurement(MeasurementRecord* measurement) {
  const std::string columns =
      json(measurement->columns).dump(-1, ' ', true, json::error_handler_t::replace);
  SEXTANT_ASSIGN_OR_RETURN(
      const auto added,
      database_.Execute(
          "INSERT INTO measurements (kind, id, accelerator, software, suite, measured_time, "
          "ingested_us, columns) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
          "ON CONFLICT (kind, id) DO NOTHING RETURNING sequence",
          {measurement->kind, measurement->id, measurement->accelerator, measurement->software,
           measurement->suite, measurement->measured_time, measurement->ingested_us, columns}));
  if (!added.empty()) {
    measurement->sequence = Integer(added[0][0]);
    return Taken::kNew;
  }
  SEXTANT_ASSIGN_OR_RETURN(
      const auto known,
      database_.Execute("SELECT sequence, columns FROM measurements WHERE kind = $1 AND id = $2",
                        {measurement->kind, measurement->id}));
  if (known.empty()) return absl::InternalError("a measurement is neither new nor known");
  measurement->sequence = Integer(known[0][0]);
  return Text(known[0][1]) == columns ? Taken::kKnown : Taken::kConflict;
}

absl::StatusOr<std::vector<MeasurementRecord>> Records::MeasurementsAfter(int64_t sequence,
                                                                          int64_t limit) {
  SEXTANT_ASSIGN_OR_RETURN(const auto rows,
                           database_.Execute(absl::StrCat("SELECT ", kMeasurementColumns,
                                                          " FROM measurements WHERE sequence > $1 "
                                                          "ORDER BY sequence LIMIT $2"),
                                             {sequence, limit}));
  return MeasurementsOf(rows);
}

absl::StatusOr<std::vector<MeasurementRecord>> Records::MeasurementsBefore(int64_t sequence,
                                                                           int64_t limit) {
  SEXTANT_ASSIGN_OR_RETURN(const auto rows,
                           database_.Execute(absl::StrCat("SELECT ", kMeasurementColumns,
                                                          " FROM measurements WHERE sequence < $1 "
                                                          "ORDER BY sequence DESC LIMIT $2"),
                                             {sequence, limit}));
  return MeasurementsOf(rows);
}

absl::StatusOr<int64_t> Records::MeasurementCountAfter(int64_t sequence) {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute("SELECT COUNT(*) FROM measurements WHERE sequence > $1", {sequence}));
  return Integer(rows[0][0]);
}

absl::Status Records::AddJob(JobRecord* job, int64_t now_us) {
  // The number is part of the name, which is part of the stored job: two steps.
  SEXTANT_ASSIGN_OR_RETURN(
      const auto added,
      database_.Execute(
          "INSERT INTO jobs (state, automatic, job, request, cancel_requested, "
          "owner, lease_until_us) VALUES ($1, $2, '{}', $3, 0, '', 0) "
          "RETURNING sequence",
          {StateName(job->job), int64_t{job->request.automatic}, RequestJson(job->request)}));
  job->sequence = Integer(added[0][0]);
  job->job.set_name(absl::StrCat("calibrationJobs/", job->sequence));
  job->job.mutable_create_time()->set_seconds(now_us / 1'000'000);
  job->job.mutable_create_time()->set_nanos(static_cast<int32_t>(now_us % 1'000'000) * 1000);
  return UpdateJob(*job);
}

absl::Status Records::UpdateJob(const JobRecord& job) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, JobJson(job.job));
  return database_
      .Execute("UPDATE jobs SET state = $1, job = $2 WHERE sequence = $3",
               {StateName(job.job), text, job.sequence})
      .status();
}

absl::Status Records::RequestCancel(int64_t sequence) {
  return database_.Execute("UPDATE jobs SET cancel_requested = 1 WHERE sequence = $1", {sequence})
      .status();
}

absl::StatusOr<std::optional<JobRecord>> Records::FindJob(int64_t sequence) {
  return MaybeJob(database_.Execute(
      absl::StrCat("SELECT ", kJobColumns, " FROM jobs WHERE sequence = $1"), {sequence}));
}

absl::StatusOr<std::vector<JobRecord>> Records::JobsBefore(int64_t sequence, int64_t limit) {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute(absl::StrCat("SELECT ", kJobColumns,
                                     " FROM jobs WHERE sequence < $1 ORDER BY sequence DESC "
                                     "LIMIT $2"),
                        {sequence, limit}));
  std::vector<JobRecord> jobs;
  for (const SqlRow& row : rows) {
    SEXTANT_ASSIGN_OR_RETURN(jobs.emplace_back(), JobOf(row));
  }
  return jobs;
}

absl::StatusOr<int64_t> Records::WaitingJobCount() {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows, database_.Execute("SELECT COUNT(*) FROM jobs WHERE state = 'STATE_QUEUED'"));
  return Integer(rows[0][0]);
}

absl::StatusOr<std::optional<JobRecord>> Records::ClaimJob(const std::string& owner, int64_t now_us,
                                                           int64_t lease_until_us) {
  // One job runs at a time, whoever runs it.
  SEXTANT_ASSIGN_OR_RETURN(
      const auto held, database_.Execute("SELECT sequence FROM jobs WHERE state = 'STATE_RUNNING' "
                                         "AND lease_until_us >= $1 LIMIT 1",
                                         {now_us}));
  if (!held.empty()) return std::nullopt;
  SEXTANT_ASSIGN_OR_RETURN(auto job,
                           MaybeJob(database_.Execute(absl::StrCat(
                               "SELECT ", kJobColumns,
                               " FROM jobs WHERE state = 'STATE_QUEUED' OR state = 'STATE_RUNNING' "
                               "ORDER BY sequence LIMIT 1"))));
  if (job.has_value()) {
    SEXTANT_RETURN_IF_ERROR(
        database_
            .Execute("UPDATE jobs SET owner = $1, lease_until_us = $2, state = 'STATE_RUNNING' "
                     "WHERE sequence = $3",
                     {owner, lease_until_us, job->sequence})
            .status());
  }
  return job;
}

absl::Status Records::RenewLease(int64_t sequence, const std::string& owner,
                                 int64_t lease_until_us) {
  SEXTANT_ASSIGN_OR_RETURN(const auto renewed,
                           database_.Execute("UPDATE jobs SET lease_until_us = $1 WHERE "
                                             "sequence = $2 AND owner = $3 RETURNING sequence",
                                             {lease_until_us, sequence, owner}));
  if (!renewed.empty()) return absl::OkStatus();
  return absl::AbortedError("another process has taken the job");
}

absl::Status Records::ExpireLeases() {
  return database_.Execute("UPDATE jobs SET lease_until_us = 0").status();
}

absl::StatusOr<std::optional<JobRecord>> Records::LastJob(bool automatic_only) {
  return MaybeJob(database_.Execute(
      absl::StrCat("SELECT ", kJobColumns,
                   " FROM jobs WHERE automatic >= $1 ORDER BY sequence DESC LIMIT 1"),
      {int64_t{automatic_only}}));
}

absl::Status Records::AddSet(const SetRecord& set, int64_t now_us) {
  return database_
      .Execute(
          "INSERT INTO parameter_sets (version, name, json, created_us) "
          "VALUES ($1, $2, $3, $4) ON CONFLICT (version) DO NOTHING",
          {set.version, set.name, set.json, now_us})
      .status();
}

absl::StatusOr<std::optional<SetRecord>> Records::FindSet(absl::string_view version) {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute("SELECT version, name, json FROM parameter_sets WHERE version = $1",
                        {std::string(version)}));
  if (rows.empty()) return std::nullopt;
  return SetRecord{Text(rows[0][0]), Text(rows[0][1]), Text(rows[0][2])};
}

absl::StatusOr<std::vector<SetRecord>> Records::Sets() {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute("SELECT version, name, json FROM parameter_sets ORDER BY version"));
  std::vector<SetRecord> sets;
  for (const SqlRow& row : rows) sets.push_back({Text(row[0]), Text(row[1]), Text(row[2])});
  return sets;
}

absl::Status Records::AddPush(PushRecord* push) {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto added,
      database_.Execute("INSERT INTO pushes (version, previous, kind, state, created_us, "
                        "ended_us, error) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING sequence",
                        {push->version, push->previous, push->kind, push->state, push->created_us,
                         push->ended_us, push->error}));
  push->sequence = Integer(added[0][0]);
  return absl::OkStatus();
}

absl::Status Records::UpdatePush(const PushRecord& push) {
  return database_
      .Execute("UPDATE pushes SET state = $1, ended_us = $2, error = $3 WHERE sequence = $4",
               {push.state, push.ended_us, push.error, push.sequence})
      .status();
}

absl::StatusOr<std::optional<PushRecord>> Records::FindPush(int64_t sequence) {
  return MaybePush(database_.Execute(
      absl::StrCat("SELECT ", kPushColumns, " FROM pushes WHERE sequence = $1"), {sequence}));
}

absl::StatusOr<std::vector<PushRecord>> Records::PushesBefore(int64_t sequence, int64_t limit) {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute(absl::StrCat("SELECT ", kPushColumns,
                                     " FROM pushes WHERE sequence < $1 ORDER BY sequence DESC "
                                     "LIMIT $2"),
                        {sequence, limit}));
  std::vector<PushRecord> pushes;
  for (const SqlRow& row : rows) pushes.push_back(PushOf(row));
  return pushes;
}

absl::StatusOr<std::optional<PushRecord>> Records::LastPush(bool decided) {
  const char* states = decided ? "('committing', 'done')" : "('preparing')";
  return MaybePush(
      database_.Execute(absl::StrCat("SELECT ", kPushColumns, " FROM pushes WHERE state IN ",
                                     states, " ORDER BY sequence DESC LIMIT 1")));
}

absl::Status Records::PutTarget(const TargetRecord& target) {
  return database_
      .Execute(
          "INSERT INTO push_targets (target, acknowledged_version, foreign_version) "
          "VALUES ($1, $2, $3) ON CONFLICT (target) DO UPDATE SET "
          "acknowledged_version = excluded.acknowledged_version, "
          "foreign_version = excluded.foreign_version",
          {target.target, target.acknowledged_version, target.foreign_version})
      .status();
}

absl::StatusOr<std::vector<TargetRecord>> Records::Targets() {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute("SELECT target, acknowledged_version, foreign_version FROM push_targets "
                        "ORDER BY target"));
  std::vector<TargetRecord> targets;
  for (const SqlRow& row : rows) targets.push_back({Text(row[0]), Text(row[1]), Text(row[2])});
  return targets;
}

absl::Status Records::AddJudgement(const JudgementRecord& judgement) {
  SqlValue inside;
  if (judgement.inside_interval) inside = int64_t{*judgement.inside_interval};
  return database_
      .Execute(
          "INSERT INTO judgements (measurement, version, accelerator, kind, metric, "
          "error_percent, inside_interval, extrapolated) "
          "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
          {judgement.measurement, judgement.version, judgement.accelerator, judgement.kind,
           judgement.metric, judgement.error_percent, inside, int64_t{judgement.extrapolated}})
      .status();
}

absl::StatusOr<std::vector<JudgementRecord>> Records::Judgements(absl::string_view version,
                                                                 int64_t limit) {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute("SELECT measurement, version, accelerator, kind, metric, error_percent, "
                        "inside_interval, extrapolated FROM judgements WHERE version = $1 "
                        "ORDER BY sequence DESC LIMIT $2",
                        {std::string(version), limit}));
  std::vector<JudgementRecord> judgements;
  for (const SqlRow& row : rows) {
    JudgementRecord& judgement = judgements.emplace_back();
    judgement.measurement = Integer(row[0]);
    judgement.version = Text(row[1]);
    judgement.accelerator = Text(row[2]);
    judgement.kind = Text(row[3]);
    judgement.metric = Text(row[4]);
    if (const auto* error = std::get_if<double>(&row[5])) judgement.error_percent = *error;
    if (const auto* inside = std::get_if<int64_t>(&row[6])) judgement.inside_interval = *inside;
    judgement.extrapolated = Integer(row[7]) != 0;
  }
  return judgements;
}

absl::Status Records::PutNumber(absl::string_view name, int64_t value) {
  return database_
      .Execute(
          "INSERT INTO numbers (name, value) VALUES ($1, $2) "
          "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
          {std::string(name), value})
      .status();
}

absl::StatusOr<int64_t> Records::Number(absl::string_view name) {
  SEXTANT_ASSIGN_OR_RETURN(
      const auto rows,
      database_.Execute("SELECT value FROM numbers WHERE name = $1", {std::string(name)}));
  return rows.empty() ? 0 : Integer(rows[0][0]);
}

absl::StatusOr<std::unique_ptr<RecordStore>> RecordStore::Open(const std::string& location) {
  SEXTANT_ASSIGN_OR_RETURN(auto database, OpenDatabase(location));
  std::unique_ptr<RecordStore> store(new RecordStore(std::move(database)));
  SEXTANT_RETURN_IF_ERROR(store->Migrate());
  if (store->exclusive()) {
    SEXTANT_RETURN_IF_ERROR(
        store->Transact([](Records& records) { return records.ExpireLeases(); }));
  }
  return store;
}

absl::Status RecordStore::Migrate() {
  // One transaction: a kill in the middle leaves the old schema.
  return Transact([&](Records&) -> absl::Status {
    SEXTANT_RETURN_IF_ERROR(
        database_->Execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
            .status());
    SEXTANT_ASSIGN_OR_RETURN(const auto rows,
                             database_->Execute("SELECT MAX(version) FROM schema_version"));
    const int64_t version = Integer(rows[0][0]);
    if (version > kSchemaVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat("the store has schema version ", version, " but this program knows up to ",
                       kSchemaVersion, "; use the program that made it, or a newer one"));
    }
    for (int64_t step = version; step < kSchemaVersion; ++step) {
      for (const char* statement : kMigrations[step]) {
        if (statement == nullptr) break;
        SEXTANT_RETURN_IF_ERROR(
            database_
                ->Execute(absl::StrReplaceAll(statement, {{"{serial}", database_->SerialKey()}}))
                .status());
      }
      SEXTANT_RETURN_IF_ERROR(
          database_->Execute("INSERT INTO schema_version (version) VALUES ($1)", {step + 1})
              .status());
    }
    return absl::OkStatus();
  });
}

absl::Status RecordStore::Transact(const std::function<absl::Status(Records&)>& work) {
  const std::lock_guard lock(mutex_);
  SEXTANT_RETURN_IF_ERROR(database_->Begin());
  Records records(*database_);
  absl::Status status = work(records);
  if (status.ok()) status = database_->Commit();
  if (!status.ok()) database_->Rollback();
  return status;
}

}  // namespace sextant::calibration_service
