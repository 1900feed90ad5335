// SPDX-License-Identifier: Apache-2.0
#include "services/operator_cost/service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/operator_cost/operator_cost.h"
#include "common/wire/convert.h"
#include "services/parameter_store/parameter_calls.h"
#include "services/runtime/nested.h"

namespace sextant::operator_cost_service {

namespace v1 = operator_cost::v1;

namespace {

struct Batch {
  hardware::Accelerator accelerator;
  std::vector<operator_cost::Operator> operators;
};

absl::StatusOr<Batch> FromRequest(const v1::EstimateOperatorsRequest& request) {
  base::Violations violations;
  const int count = request.operators_size();
  if (count < 1 || count > kMaxBatchCount) {
    violations.Add("operators", absl::StrCat("has ", count, " entries but must have 1 to ",
                                             kMaxBatchCount, "; send several batches"));
    return violations.ToStatus();
  }
  Batch batch;
  auto accelerator = wire::FromProto(request.accelerator());
  if (accelerator.ok()) {
    batch.accelerator = *std::move(accelerator);
    const absl::Status valid = hardware::ValidateAccelerator(batch.accelerator);
    if (!valid.ok()) runtime::AddNested(violations, "accelerator", valid);
  } else {
    runtime::AddNested(violations, "accelerator", accelerator.status());
  }
  batch.operators.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto op = wire::FromProto(request.operators(i));
    if (op.ok()) {
      batch.operators.push_back(*std::move(op));
    } else {
      runtime::AddNested(violations, absl::StrCat("operators[", i, "]"), op.status());
    }
  }
  if (!violations.empty()) return violations.ToStatus();
  return batch;
}

}  // namespace

Service::Service(parameter_store::ParameterStore& store, runtime::Metrics& metrics,
                 std::chrono::milliseconds default_deadline)
    : store_(store),
      default_deadline_(default_deadline),
      operators_total_(metrics, "sextant_operator_cost_estimated_operators_total",
                       "Operators that were timed."),
      parameter_set_(metrics, "operator_cost") {
  store_.OnChange([this](const std::string& version) {
    parameter_set_.Set(version, store_.InServiceSinceSeconds());
  });
}

grpc::Status Service::EstimateOperators(grpc::ServerContext* context,
                                        const v1::EstimateOperatorsRequest* request,
                                        v1::EstimateOperatorsResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const Batch batch, FromRequest(*request));
    const auto set = store_.Preferred(request->preferred_parameter_set_version());
    const auto parameters =
        operator_cost::ResolveOperatorParameters(*set, batch.accelerator, request->profile());
    SEXTANT_RETURN_IF_ERROR(call.Check());
    SEXTANT_ASSIGN_OR_RETURN(
        const auto estimates,
        operator_cost::EstimateOperators(batch.operators, batch.accelerator, parameters));
    response->mutable_estimates()->Reserve(static_cast<int>(estimates.size()));
    for (const auto& estimate : estimates) *response->add_estimates() = wire::ToProto(estimate);
    response->set_parameter_set_version(set->version());
    operators_total_.Increment(static_cast<double>(estimates.size()));
    return call.Check();
  });
}

grpc::Status Service::GetParameterSet(grpc::ServerContext* context,
                                      const v1::GetParameterSetRequest* request,
                                      v1::GetParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::GetParameterSet(store_, *request, response);
  });
}

grpc::Status Service::PushParameterSet(grpc::ServerContext* context,
                                       const v1::PushParameterSetRequest* request,
                                       v1::PushParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::PushParameterSet(store_, *request, response);
  });
}

grpc::Status Service::PrepareParameterSet(grpc::ServerContext* context,
                                          const v1::PrepareParameterSetRequest* request,
                                          v1::PrepareParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::PrepareParameterSet(store_, *request, response);
  });
}

grpc::Status Service::CommitParameterSet(grpc::ServerContext* context,
                                         const v1::CommitParameterSetRequest* request,
                                         v1::CommitParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::CommitParameterSet(store_, *request, response);
  });
}

grpc::Status Service::WatchParameters(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::WatchParametersResponse, v1::WatchParametersRequest>* stream) {
  return parameter_store::WatchParameters(store_, *context, *stream);
}

grpc::Status Service::RollbackParameterSet(grpc::ServerContext* context,
                                           const v1::RollbackParameterSetRequest*,
                                           v1::RollbackParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::RollbackParameterSet(store_, response);
  });
}

}  // namespace sextant::operator_cost_service
