// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/wire/convert.h"

namespace sextant::orchestrator_service {

namespace v1 = orchestrator::v1;

namespace {

absl::StatusOr<types::v1::Prediction> PredictProto(RemoteServices& services,
                                                   const types::v1::Job& proto,
                                                   const orchestrator::PredictOptions& options,
                                                   runtime::Call& call) {
  // Paths of violations are those of the job, the same as without a server.
  SEXTANT_ASSIGN_OR_RETURN(const workload::Job job, wire::FromProto(proto));
  SEXTANT_ASSIGN_OR_RETURN(const auto prediction, services.Predict(job, options, call));
  return wire::ToProto(prediction);
}

}  // namespace

grpc::Status Service::Predict(grpc::ServerContext* context, const v1::PredictRequest* request,
                              v1::PredictResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(
        *response->mutable_prediction(),
        PredictProto(services_, request->job(), {.sensitivities = request->sensitivities()}, call));
    return call.Check();
  });
}

grpc::Status Service::PredictBatch(grpc::ServerContext* context,
                                   const v1::PredictBatchRequest* request,
                                   v1::PredictBatchResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    const int count = request->jobs_size();
    if (count < 1 || count > kMaxBatchCount) {
      base::Violations violations;
      violations.Add("jobs", absl::StrCat("has ", count, " entries but must have 1 to ",
                                          kMaxBatchCount, "; send several batches"));
      return violations.ToStatus();
    }
    for (const types::v1::Job& job : request->jobs()) {
      SEXTANT_RETURN_IF_ERROR(call.Check());
      auto prediction = PredictProto(services_, job, {}, call);
      v1::PredictResult* result = response->add_results();
      if (prediction.ok()) {
        *result->mutable_prediction() = *std::move(prediction);
        continue;
      }
      result->mutable_error()->set_code(
          static_cast<int>(runtime::ToGrpcStatus(prediction.status()).error_code()));
      result->mutable_error()->set_message(std::string(prediction.status().message()));
    }
    return call.Check();
  });
}

}  // namespace sextant::orchestrator_service
