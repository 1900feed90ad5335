// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/wire/convert.h"
#include "google/protobuf/util/time_util.h"

namespace sextant::calibration_service {

namespace v1 = calibration::v1;

namespace {

constexpr char kSetCollection[] = "parameterSets/";

// The number of entries of a page: `requested`, where it is 0 `standard`, at most `most`.
absl::StatusOr<size_t> PageSize(int requested, size_t standard, size_t most) {
  if (requested < 0) {
    base::Violations violations;
    violations.Add("page_size", absl::StrCat("is ", requested, " but must be at least 0"));
    return violations.ToStatus();
  }
  if (requested == 0) return standard;
  return std::min(static_cast<size_t>(requested), most);
}

absl::Status BadToken(absl::string_view token) {
  base::Violations violations;
  violations.Add("page_token",
                 absl::StrCat("is \"", token, "\" but must be a next_page_token of this list"));
  return violations.ToStatus();
}

absl::StatusOr<absl::string_view> SetId(const std::string& name) {
  absl::string_view id = name;
  if (absl::ConsumePrefix(&id, kSetCollection) && !id.empty()) return id;
  base::Violations violations;
  violations.Add("name", absl::StrCat("is \"", name, "\" but must be \"", kSetCollection,
                                      "<version or catalog name>\""));
  return violations.ToStatus();
}

template <typename Repeated>
void AddResults(const std::vector<PushResult>& results, Repeated* out) {
  for (const PushResult& result : results) {
    auto* item = out->Add();
    item->set_target(result.target);
    item->set_acknowledged_version(result.acknowledged_version);
    item->set_error(std::string(result.status.message()));
  }
}

google::protobuf::Timestamp Time(int64_t microseconds) {
  return google::protobuf::util::TimeUtil::MicrosecondsToTimestamp(microseconds);
}

// The sequence number that a page goes on before.
absl::StatusOr<int64_t> PageStart(const std::string& token) {
  int64_t before = RecordStore::kNewest;
  if (!token.empty() && (!absl::SimpleAtoi(token, &before) || before < 1)) return BadToken(token);
  return before;
}

}  // namespace

grpc::Status Service::IngestMeasurements(grpc::ServerContext* context,
                                         const v1::IngestMeasurementsRequest* request,
                                         v1::IngestMeasurementsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    if (request->files().empty() || request->files_size() > 1000) {
      base::Violations violations;
      violations.Add(
          "files", absl::StrCat("has ", request->files_size(), " entries but must have 1 to 1000"));
      return violations.ToStatus();
    }
    SEXTANT_ASSIGN_OR_RETURN(*response, loop_.Ingest(request->files(), nullptr));
    return absl::OkStatus();
  });
}

grpc::Status Service::ListMeasurements(grpc::ServerContext* context,
                                       const v1::ListMeasurementsRequest* request,
                                       v1::ListMeasurementsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const size_t count, PageSize(request->page_size(), 100, 1000));
    SEXTANT_ASSIGN_OR_RETURN(const int64_t before, PageStart(request->page_token()));
    std::vector<MeasurementRecord> rows;
    SEXTANT_RETURN_IF_ERROR(loop_.store().Transact([&](Records& records) -> absl::Status {
      SEXTANT_ASSIGN_OR_RETURN(rows,
                               records.MeasurementsBefore(before, static_cast<int64_t>(count) + 1));
      SEXTANT_ASSIGN_OR_RETURN(const int64_t total, records.MeasurementCountAfter(0));
      response->set_total_count(total);
      return absl::OkStatus();
    }));
    if (rows.size() > count) {
      rows.pop_back();
      response->set_next_page_token(absl::StrCat(rows.back().sequence));
    }
    for (const MeasurementRecord& row : rows) {
      auto* item = response->add_measurements();
      item->set_name(absl::StrCat("measurements/", row.sequence));
      item->set_id(row.id);
      item->set_kind(row.kind);
      item->set_accelerator(row.accelerator);
      item->set_software(row.software);
      item->set_suite(row.suite);
      item->set_measured_time(row.measured_time);
      *item->mutable_ingest_time() = Time(row.ingested_us);
      item->mutable_columns()->insert(row.columns.begin(), row.columns.end());
    }
    return absl::OkStatus();
  });
}

grpc::Status Service::CreateCalibrationJob(grpc::ServerContext* context,
                                           const v1::CreateCalibrationJobRequest* request,
                                           v1::CalibrationJob* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    base::Violations violations;
    for (int i = 0; i < request->measurements_size(); ++i) {
      if (request->measurements(i).csv_text().empty() &&
          request->measurements(i).content().empty()) {
        violations.Add(absl::StrCat("measurements[", i, "].csv_text"), "is missing but required");
      }
    }
    absl::string_view initial = request->initial_parameter_set();
    absl::ConsumePrefix(&initial, kSetCollection);
    SharedSet set;
    if (initial.empty()) {
      SEXTANT_ASSIGN_OR_RETURN(set, loop_.fleet().InService());
    }
    if (set == nullptr) {
      auto found = loop_.sets().Find(initial.empty() ? "default" : initial);
      if (found.ok()) {
        set = *std::move(found);
      } else {
        violations.AddStatus("initial_parameter_set", found.status());
      }
    }
    if (!violations.empty()) return violations.ToStatus();
    JobRecord job;
    job.request.push = request->push();
    job.request.initial_version = set->version();
    job.job.set_trigger("request");
    if (!request->measurements().empty()) {
      job.request.measurements.emplace();
      SEXTANT_RETURN_IF_ERROR(
          loop_.Ingest(request->measurements(), &*job.request.measurements).status());
    }
    if (const absl::Status transacted =
            loop_.store().Transact([&](Records& records) -> absl::Status {
              SEXTANT_RETURN_IF_ERROR(SetLibrary::Store(set, records));
              return JobRunner::Add(records, &job);
            });
        !transacted.ok())
      return transacted;
    loop_.jobs().Wake();
    *response = job.job;
    return absl::OkStatus();
  });
}

grpc::Status Service::CancelCalibrationJob(grpc::ServerContext* context,
                                           const v1::CancelCalibrationJobRequest* request,
                                           v1::CalibrationJob* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(*response, loop_.jobs().Cancel(request->name()));
    return absl::OkStatus();
  });
}

grpc::Status Service::WatchCalibrationJob(grpc::ServerContext* context,
                                          const v1::WatchCalibrationJobRequest* request,
                                          grpc::ServerWriter<v1::CalibrationJob>* writer) {
  // No deadline of ours: a job may be long.
  return runtime::ToGrpcStatus(
      loop_.jobs().Watch(request->name(), [&](const v1::CalibrationJob& job) {
        return !context->IsCancelled() && writer->Write(job);
      }));
}

grpc::Status Service::ListPushTargets(grpc::ServerContext* context,
                                      const v1::ListPushTargetsRequest*,
                                      v1::ListPushTargetsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, loop_.fleet().InService());
    if (set != nullptr) response->set_version(set->version());
    for (const TargetState& target : loop_.fleet().Targets()) {
      auto* item = response->add_targets();
      item->set_target(target.target);
      item->set_acknowledged_version(target.acknowledged_version);
      item->set_foreign_version(target.foreign_version);
      item->set_current(target.current);
      item->set_error(std::string(target.status.message()));
    }
    return absl::OkStatus();
  });
}

grpc::Status Service::ListPushes(grpc::ServerContext* context, const v1::ListPushesRequest* request,
                                 v1::ListPushesResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const size_t count, PageSize(request->page_size(), 100, 1000));
    SEXTANT_ASSIGN_OR_RETURN(const int64_t before, PageStart(request->page_token()));
    SEXTANT_ASSIGN_OR_RETURN(auto pushes, loop_.store().Ask([&](Records& records) {
      return records.PushesBefore(before, static_cast<int64_t>(count) + 1);
    }));
    if (pushes.size() > count) {
      pushes.pop_back();
      response->set_next_page_token(absl::StrCat(pushes.back().sequence));
    }
    for (const PushRecord& push : pushes) {
      auto* item = response->add_pushes();
      item->set_name(absl::StrCat("pushes/", push.sequence));
      item->set_version(push.version);
      item->set_kind(push.kind);
      item->set_state(push.state);
      *item->mutable_create_time() = Time(push.created_us);
      if (push.ended_us > 0) *item->mutable_end_time() = Time(push.ended_us);
      item->set_error(push.error);
    }
    return absl::OkStatus();
  });
}

grpc::Status Service::GetWatchStatus(grpc::ServerContext* context, const v1::GetWatchStatusRequest*,
                                     v1::GetWatchStatusResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(*response, loop_.watch().Status());
    return absl::OkStatus();
  });
}

grpc::Status Service::GetCalibrationJob(grpc::ServerContext* context,
                                        const v1::GetCalibrationJobRequest* request,
                                        v1::CalibrationJob* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(*response, loop_.jobs().Get(request->name()));
    return absl::OkStatus();
  });
}

grpc::Status Service::ListCalibrationJobs(grpc::ServerContext* context,
                                          const v1::ListCalibrationJobsRequest* request,
                                          v1::ListCalibrationJobsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const size_t count, PageSize(request->page_size(), 50, 100));
    SEXTANT_ASSIGN_OR_RETURN(const int64_t before, PageStart(request->page_token()));
    int64_t next = 0;
    SEXTANT_ASSIGN_OR_RETURN(auto jobs, loop_.jobs().List(before, count, &next));
    for (auto& job : jobs) *response->add_calibration_jobs() = std::move(job);
    if (next != 0) response->set_next_page_token(absl::StrCat(next));
    return absl::OkStatus();
  });
}

grpc::Status Service::GetParameterSet(grpc::ServerContext* context,
                                      const v1::GetParameterSetRequest* request,
                                      types::v1::ParameterSet* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const absl::string_view id, SetId(request->name()));
    SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, loop_.sets().Find(id));
    *response = wire::ToProto(*set);
    return absl::OkStatus();
  });
}

grpc::Status Service::ListParameterSets(grpc::ServerContext* context,
                                        const v1::ListParameterSetsRequest* request,
                                        v1::ListParameterSetsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const size_t count, PageSize(request->page_size(), 100, 1000));
    SEXTANT_ASSIGN_OR_RETURN(const auto all, loop_.sets().All());
    // The token is the last name of the page before.
    auto it = all.begin();
    if (!request->page_token().empty()) {
      it = std::find_if(all.begin(), all.end(),
                        [&](const auto& item) { return item.first == request->page_token(); });
      if (it == all.end()) return BadToken(request->page_token());
      ++it;
    }
    for (; it != all.end(); ++it) {
      if (static_cast<size_t>(response->parameter_sets_size()) == count) {
        response->set_next_page_token(std::prev(it)->first);
        break;
      }
      auto* summary = response->add_parameter_sets();
      summary->set_name(absl::StrCat(kSetCollection, it->first));
      summary->set_version(it->second->version());
      *summary->mutable_provenance() = wire::ToProto(*it->second).provenance();
      for (const auto& [accelerator, values] : it->second->accelerators()) {
        summary->add_accelerators(accelerator);
      }
    }
    return absl::OkStatus();
  });
}

grpc::Status Service::PushParameterSet(grpc::ServerContext* context,
                                       const v1::PushParameterSetRequest* request,
                                       v1::PushParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SharedSet set;
    if (request->has_parameter_set()) {
      SEXTANT_ASSIGN_OR_RETURN(auto given, wire::FromProto(request->parameter_set()));
      set = std::make_shared<const parameters::ParameterSet>(std::move(given));
      SEXTANT_RETURN_IF_ERROR(loop_.sets().Store(set));
    } else {
      SEXTANT_ASSIGN_OR_RETURN(const absl::string_view id, SetId(request->name()));
      SEXTANT_ASSIGN_OR_RETURN(set, loop_.sets().Find(id));
    }
    SEXTANT_ASSIGN_OR_RETURN(const PushOutcome outcome, loop_.fleet().Push(set));
    response->set_version(outcome.version);
    AddResults(outcome.results, response->mutable_results());
    return absl::OkStatus();
  });
}

grpc::Status Service::RollbackParameterSet(grpc::ServerContext* context,
                                           const v1::RollbackParameterSetRequest*,
                                           v1::RollbackParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const PushOutcome outcome, loop_.Rollback());
    response->set_version(outcome.version);
    AddResults(outcome.results, response->mutable_results());
    return absl::OkStatus();
  });
}

}  // namespace sextant::calibration_service
