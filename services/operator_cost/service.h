// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_OPERATOR_COST_SERVICE_H_
#define SEXTANT_SERVICES_OPERATOR_COST_SERVICE_H_

#include <chrono>

#include "services/parameter_store/parameter_set_metrics.h"
#include "services/parameter_store/parameter_store.h"
#include "services/runtime/call.h"
#include "services/runtime/metrics.h"
#include "sextant/operator_cost/v1/operator_cost_service.grpc.pb.h"

namespace sextant::operator_cost_service {

inline constexpr char kFullName[] = "sextant.operator_cost.v1.OperatorCostService";
inline constexpr int kMaxBatchCount = 10000;

// sextant.operator_cost.v1.OperatorCostService over common/operator_cost. Thread-safe.
class Service final : public operator_cost::v1::OperatorCostService::Service {
 public:
  // `store` and `metrics` must outlive the service.
  Service(parameter_store::ParameterStore& store, runtime::Metrics& metrics,
          std::chrono::milliseconds default_deadline = runtime::kDefaultDeadline);

  grpc::Status EstimateOperators(grpc::ServerContext* context,
                                 const operator_cost::v1::EstimateOperatorsRequest* request,
                                 operator_cost::v1::EstimateOperatorsResponse* response) override;
  grpc::Status GetParameterSet(grpc::ServerContext* context,
                               const operator_cost::v1::GetParameterSetRequest* request,
                               operator_cost::v1::GetParameterSetResponse* response) override;
  grpc::Status PushParameterSet(grpc::ServerContext* context,
                                const operator_cost::v1::PushParameterSetRequest* request,
                                operator_cost::v1::PushParameterSetResponse* response) override;
  grpc::Status PrepareParameterSet(
      grpc::ServerContext* context, const operator_cost::v1::PrepareParameterSetRequest* request,
      operator_cost::v1::PrepareParameterSetResponse* response) override;
  grpc::Status CommitParameterSet(grpc::ServerContext* context,
                                  const operator_cost::v1::CommitParameterSetRequest* request,
                                  operator_cost::v1::CommitParameterSetResponse* response) override;
  grpc::Status WatchParameters(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<operator_cost::v1::WatchParametersResponse,
                               operator_cost::v1::WatchParametersRequest>* stream) override;
  grpc::Status RollbackParameterSet(
      grpc::ServerContext* context, const operator_cost::v1::RollbackParameterSetRequest* request,
      operator_cost::v1::RollbackParameterSetResponse* response) override;

 private:
  parameter_store::ParameterStore& store_;
  std::chrono::milliseconds default_deadline_;
  runtime::CounterMetric operators_total_;
  parameter_store::ParameterSetMetrics parameter_set_;
};

}  // namespace sextant::operator_cost_service

#endif  // SEXTANT_SERVICES_OPERATOR_COST_SERVICE_H_
