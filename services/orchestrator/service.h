// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_ORCHESTRATOR_SERVICE_H_
#define SEXTANT_SERVICES_ORCHESTRATOR_SERVICE_H_

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "services/orchestrator/advice_book.h"
#include "services/orchestrator/remote_ports.h"
#include "services/runtime/call.h"
#include "sextant/orchestrator/v1/orchestrator_service.grpc.pb.h"

namespace sextant::orchestrator_service {

inline constexpr char kFullName[] = "sextant.orchestrator.v1.OrchestratorService";
inline constexpr int kMaxBatchCount = 1000;
// Of sweeps and of streams.
inline constexpr std::chrono::milliseconds kSweepDeadline{3600 * 1000};
inline constexpr size_t kAdviceCapacity = 10000;  // some 5 kB each
// Each takes every core: more at once would only be slower.
inline constexpr int kMostSearches = 4;

// OK where a batch has 1 to kMaxBatchCount entries.
absl::Status CheckBatch(absl::string_view field, int count);

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
  grpc::Status PredictStream(
      grpc::ServerContext* context, const orchestrator::v1::PredictRequest* request,
      grpc::ServerWriter<orchestrator::v1::PredictStreamResponse>* writer) override;
  grpc::Status PredictBatch(grpc::ServerContext* context,
                            const orchestrator::v1::PredictBatchRequest* request,
                            orchestrator::v1::PredictBatchResponse* response) override;
  // In this process, under the parameter set in service: a point is far less than a call.
  grpc::Status Sweep(grpc::ServerContext* context, const orchestrator::v1::SweepRequest* request,
                     grpc::ServerWriter<orchestrator::v1::SweepResponse>* writer) override;
  // In this process, too.
  grpc::Status AdviseJob(grpc::ServerContext* context,
                         const orchestrator::v1::AdviseJobRequest* request,
                         orchestrator::v1::AdviseJobResponse* response) override;
  grpc::Status AdviseJobBatch(grpc::ServerContext* context,
                              const orchestrator::v1::AdviseJobBatchRequest* request,
                              orchestrator::v1::AdviseJobBatchResponse* response) override;
  grpc::Status AdviseJobStream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<orchestrator::v1::AdviseJobResult,
                               orchestrator::v1::AdviseJobRequest>* stream) override;

 private:
  absl::Status AdviseOne(const orchestrator::v1::AdviseJobRequest& request, runtime::Call& call,
                         orchestrator::v1::AdviseJobResponse& response);
  orchestrator::v1::AdviseJobResult AdviseResult(const orchestrator::v1::AdviseJobRequest& request,
                                                 runtime::Call& call);

  RemoteServices& services_;
  std::chrono::milliseconds default_deadline_;
  AdviceBook advice_{kAdviceCapacity, kMostSearches};
};

}  // namespace sextant::orchestrator_service

#endif  // SEXTANT_SERVICES_ORCHESTRATOR_SERVICE_H_
