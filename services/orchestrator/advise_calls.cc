// SPDX-License-Identifier: Apache-2.0
// AdviseJob, AdviseJobBatch and AdviseJobStream.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/advise/advise.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/wire/convert.h"
#include "common/wire/convert_advice.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "services/orchestrator/service.h"

namespace sextant::orchestrator_service {

namespace v1 = orchestrator::v1;

namespace {

constexpr size_t kMaxIdBytes = 128;

// Equal exactly where the questions are: maps are written in order.
std::string ContentOf(const v1::AdviseJobRequest& request) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  out.WriteVarint32(static_cast<uint32_t>(request.job().ByteSizeLong()));
  request.job().SerializeWithCachedSizes(&out);
  request.options().ByteSizeLong();
  request.options().SerializeWithCachedSizes(&out);
  out.Trim();
  return bytes;
}

}  // namespace

absl::Status Service::AdviseOne(const v1::AdviseJobRequest& request, runtime::Call& call,
                                v1::AdviseJobResponse& response) {
  base::Violations violations;
  if (request.request_id().size() > kMaxIdBytes) {
    violations.Add("request_id", absl::StrCat("has ", request.request_id().size(),
                                              " bytes but must have at most ", kMaxIdBytes));
    return violations.ToStatus();
  }
  SEXTANT_ASSIGN_OR_RETURN(const auto set, services_.CurrentSet(call));
  const auto search = [&]() -> absl::StatusOr<types::v1::Advice> {
    SEXTANT_ASSIGN_OR_RETURN(const workload::Job job, wire::FromProto(request.job()));
    SEXTANT_ASSIGN_OR_RETURN(const advise::AdviceOptions options,
                             wire::FromProto(request.options()));
    const auto end = std::chrono::steady_clock::now() + default_deadline_;
    SEXTANT_ASSIGN_OR_RETURN(
        const advise::Advice advice,
        advise::Advise(job, options, set, {.keep_going = [end] {
                         return std::chrono::steady_clock::now() < end;
                       }}));
    return wire::ToProto(advice);
  };
  SEXTANT_ASSIGN_OR_RETURN(
      const auto advice,
      advice_.Ask({request.request_id(), ContentOf(request), set->version()}, call.deadline(),
                  search));
  response.set_request_id(request.request_id());
  *response.mutable_advice() = *advice;
  response.set_parameter_set(advice->prediction().parameter_set());
  return call.Check();
}

v1::AdviseJobResult Service::AdviseResult(const v1::AdviseJobRequest& request,
                                          runtime::Call& call) {
  v1::AdviseJobResult result;
  const absl::Status status = AdviseOne(request, call, *result.mutable_response());
  if (status.ok()) return result;
  v1::AdviseJobError& error = *result.mutable_error();
  error.set_request_id(request.request_id());
  error.set_code(static_cast<int>(runtime::ToGrpcStatus(status).error_code()));
  error.set_message(std::string(status.message()));
  return result;
}

grpc::Status Service::AdviseJob(grpc::ServerContext* context, const v1::AdviseJobRequest* request,
                                v1::AdviseJobResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) {
    return AdviseOne(*request, call, *response);
  });
}

grpc::Status Service::AdviseJobBatch(grpc::ServerContext* context,
                                     const v1::AdviseJobBatchRequest* request,
                                     v1::AdviseJobBatchResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_RETURN_IF_ERROR(CheckBatch("requests", request->requests_size()));
    for (const v1::AdviseJobRequest& one : request->requests()) {
      SEXTANT_RETURN_IF_ERROR(call.Check());
      *response->add_results() = AdviseResult(one, call);
    }
    return call.Check();
  });
}

grpc::Status Service::AdviseJobStream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::AdviseJobResult, v1::AdviseJobRequest>* stream) {
  return runtime::Answer(context, kSweepDeadline, [&](runtime::Call& call) -> absl::Status {
    v1::AdviseJobRequest request;
    while (stream->Read(&request)) {
      if (!stream->Write(AdviseResult(request, call))) break;
    }
    return call.Check();
  });
}

}  // namespace sextant::orchestrator_service
