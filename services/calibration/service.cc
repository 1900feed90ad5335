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

absl::StatusOr<CalibrationInput> FromRequest(const v1::CreateCalibrationJobRequest& request,
                                             const SetLibrary& library) {
  base::Violations violations;
  CalibrationInput input;
  if (request.measurements().empty()) {
    violations.Add("measurements", "is empty but must have at least one file");
  }
  for (int i = 0; i < request.measurements_size(); ++i) {
    const v1::MeasurementFile& file = request.measurements(i);
    if (file.csv_text().empty()) {
      violations.Add(absl::StrCat("measurements[", i, "].csv_text"), "is missing but required");
    }
    input.measurements.push_back(
        {file.file_name().empty() ? "measurements" : file.file_name(), file.csv_text()});
  }
  absl::string_view initial = request.initial_parameter_set();
  absl::ConsumePrefix(&initial, kSetCollection);
  auto set = library.Find(initial.empty() ? "default" : initial);
  if (set.ok()) {
    input.initial = *std::move(set);
  } else {
    violations.AddStatus("initial_parameter_set", set.status());
  }
  if (!violations.empty()) return violations.ToStatus();
  return input;
}

}  // namespace

grpc::Status Service::CreateCalibrationJob(grpc::ServerContext* context,
                                           const v1::CreateCalibrationJobRequest* request,
                                           v1::CalibrationJob* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(auto input, FromRequest(*request, library_));
    SEXTANT_ASSIGN_OR_RETURN(*response, jobs_.Create(std::move(input), request->push()));
    return absl::OkStatus();
  });
}

grpc::Status Service::GetCalibrationJob(grpc::ServerContext* context,
                                        const v1::GetCalibrationJobRequest* request,
                                        v1::CalibrationJob* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(*response, jobs_.Get(request->name()));
    return absl::OkStatus();
  });
}

grpc::Status Service::ListCalibrationJobs(grpc::ServerContext* context,
                                          const v1::ListCalibrationJobsRequest* request,
                                          v1::ListCalibrationJobsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const size_t count, PageSize(request->page_size(), 50, 100));
    uint64_t before = 0;
    if (!request->page_token().empty() && !absl::SimpleAtoi(request->page_token(), &before)) {
      return BadToken(request->page_token());
    }
    uint64_t next = 0;
    for (auto& job : jobs_.List(before, count, &next)) {
      *response->add_calibration_jobs() = std::move(job);
    }
    if (next != 0) response->set_next_page_token(absl::StrCat(next));
    return absl::OkStatus();
  });
}

grpc::Status Service::GetParameterSet(grpc::ServerContext* context,
                                      const v1::GetParameterSetRequest* request,
                                      types::v1::ParameterSet* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const absl::string_view id, SetId(request->name()));
    SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, library_.Find(id));
    *response = wire::ToProto(*set);
    return absl::OkStatus();
  });
}

grpc::Status Service::ListParameterSets(grpc::ServerContext* context,
                                        const v1::ListParameterSetsRequest* request,
                                        v1::ListParameterSetsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const size_t count, PageSize(request->page_size(), 100, 1000));
    SEXTANT_ASSIGN_OR_RETURN(const auto all, library_.All());
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
      SEXTANT_RETURN_IF_ERROR(library_.Store(set));
    } else {
      SEXTANT_ASSIGN_OR_RETURN(const absl::string_view id, SetId(request->name()));
      SEXTANT_ASSIGN_OR_RETURN(set, library_.Find(id));
    }
    response->set_version(set->version());
    AddResults(targets_.Push(*set), response->mutable_results());
    return absl::OkStatus();
  });
}

grpc::Status Service::RollbackParameterSet(grpc::ServerContext* context,
                                           const v1::RollbackParameterSetRequest*,
                                           v1::RollbackParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) -> absl::Status {
    AddResults(targets_.Rollback(), response->mutable_results());
    return absl::OkStatus();
  });
}

}  // namespace sextant::calibration_service
