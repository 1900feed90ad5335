// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_ORCHESTRATOR_SERVICE_H_
#define SEXTANT_SERVICES_ORCHESTRATOR_SERVICE_H_

#include <chrono>

#include "services/orchestrator/remote_ports.h"
#include "services/runtime/call.h"
#include "sextant/orchestrator/v1/orchestrator_service.grpc.pb.h"

namespace sextant::orchestrator_service {

inline constexpr char kFullName[] = "sextant.orchestrator.v1.OrchestratorService";
inline constexpr int kMaxBatchCount = 1000;
inline constexpr std::chrono::milliseconds kSweepDeadline{3600 * 1000};

// sextant.orchestrator.v1.OrchestratorService over common/orchestrator and the two services below.
// Thread-safe.
class Service final : public orchestrator::v1::OrchestratorService::Service {
 public:
  // `services` must outlive this.
  explicit Service(RemoteServices& services,
                   std::chrono::milliseconds default_deadline = runtime::kDefaultDeadline)
      : services_(services), default_deadline_(default_deadline) {}

  grpc::Status Predict(grpc::ServerContext* context,
                       const orchestrator::v1::PredictRequest* request,
                       orchestrator::v1::PredictResponse* response) override;
  grpc::Status PredictBatch(grpc::ServerContext* context,
                            const orchestrator::v1::PredictBatchRequest* request,
                            orchestrator::v1::PredictBatchResponse* response) override;
  // In this process, under the parameter set in service: a point is far less than a call.
  grpc::Status Sweep(grpc::ServerContext* context, const orchestrator::v1::SweepRequest* request,
                     grpc::ServerWriter<orchestrator::v1::SweepResponse>* writer) override;

 private:
  RemoteServices& services_;
  std::chrono::milliseconds default_deadline_;
};

}  // namespace sextant::orchestrator_service

#endif  // SEXTANT_SERVICES_ORCHESTRATOR_SERVICE_H_
