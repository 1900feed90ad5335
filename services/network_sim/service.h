// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_NETWORK_SIM_SERVICE_H_
#define SEXTANT_SERVICES_NETWORK_SIM_SERVICE_H_

#include <chrono>

#include "services/parameter_store/parameter_set_metrics.h"
#include "services/parameter_store/parameter_store.h"
#include "services/runtime/call.h"
#include "services/runtime/metrics.h"
#include "sextant/network_sim/v1/network_sim_service.grpc.pb.h"

namespace sextant::network_sim_service {

inline constexpr char kFullName[] = "sextant.network_sim.v1.NetworkSimService";
inline constexpr int kMaxBatchCount = 10000;
inline constexpr int kMaxCaseCount = 1000;

// sextant.network_sim.v1.NetworkSimService over common/collectives and
// common/network_sim. Thread-safe.
class Service final : public network_sim::v1::NetworkSimService::Service {
 public:
  // `store` and `metrics` must outlive the service.
  Service(parameter_store::ParameterStore& store, runtime::Metrics& metrics,
          std::chrono::milliseconds default_deadline = runtime::kDefaultDeadline);

  grpc::Status EstimateCollectives(grpc::ServerContext* context,
                                   const network_sim::v1::EstimateCollectivesRequest* request,
                                   network_sim::v1::EstimateCollectivesResponse* response) override;
  grpc::Status EstimateConcurrent(grpc::ServerContext* context,
                                  const network_sim::v1::EstimateConcurrentRequest* request,
                                  network_sim::v1::EstimateConcurrentResponse* response) override;
  grpc::Status SimulateCase(grpc::ServerContext* context,
                            const network_sim::v1::SimulateCaseRequest* request,
                            network_sim::v1::SimulateCaseResponse* response) override;
  grpc::Status SimulateCases(grpc::ServerContext* context,
                             const network_sim::v1::SimulateCasesRequest* request,
                             network_sim::v1::SimulateCasesResponse* response) override;
  grpc::Status WatchCase(grpc::ServerContext* context,
                         const network_sim::v1::SimulateCaseRequest* request,
                         grpc::ServerWriter<network_sim::v1::WatchCaseResponse>* writer) override;
  grpc::Status GetParameterSet(grpc::ServerContext* context,
                               const network_sim::v1::GetParameterSetRequest* request,
                               network_sim::v1::GetParameterSetResponse* response) override;
  grpc::Status PushParameterSet(grpc::ServerContext* context,
                                const network_sim::v1::PushParameterSetRequest* request,
                                network_sim::v1::PushParameterSetResponse* response) override;
  grpc::Status PrepareParameterSet(grpc::ServerContext* context,
                                   const network_sim::v1::PrepareParameterSetRequest* request,
                                   network_sim::v1::PrepareParameterSetResponse* response) override;
  grpc::Status CommitParameterSet(grpc::ServerContext* context,
                                  const network_sim::v1::CommitParameterSetRequest* request,
                                  network_sim::v1::CommitParameterSetResponse* response) override;
  grpc::Status WatchParameters(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<network_sim::v1::WatchParametersResponse,
                               network_sim::v1::WatchParametersRequest>* stream) override;
  grpc::Status RollbackParameterSet(
      grpc::ServerContext* context, const network_sim::v1::RollbackParameterSetRequest* request,
      network_sim::v1::RollbackParameterSetResponse* response) override;

 private:
  parameter_store::ParameterStore& store_;
  std::chrono::milliseconds default_deadline_;
  runtime::CounterMetric collectives_total_;
  runtime::CounterMetric events_total_;
  parameter_store::ParameterSetMetrics parameter_set_;
};

}  // namespace sextant::network_sim_service

#endif  // SEXTANT_SERVICES_NETWORK_SIM_SERVICE_H_
