// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_ORCHESTRATOR_REMOTE_PORTS_H_
#define SEXTANT_SERVICES_ORCHESTRATOR_REMOTE_PORTS_H_

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "common/orchestrator/ports.h"
#include "common/orchestrator/predict.h"
#include "common/workload/job.h"
#include "grpcpp/channel.h"
#include "services/orchestrator/estimate_cache.h"
#include "services/orchestrator/parameter_watch.h"
#include "services/runtime/call.h"
#include "services/runtime/metrics.h"
#include "sextant/network_sim/v1/network_sim_service.grpc.pb.h"
#include "sextant/operator_cost/v1/operator_cost_service.grpc.pb.h"

namespace sextant::orchestrator_service {

// The two services below, as all predictions of a server share them: stubs, the last parameter set
// fetched, and the answers known so far. Thread-safe.
class RemoteServices {
 public:
  static constexpr size_t kDefaultCacheCapacity = 1'000'000;  // of each kind; about 150 MB at most

  // `metrics` must outlive this.
  RemoteServices(const std::shared_ptr<grpc::Channel>& operator_cost,
                 const std::shared_ptr<grpc::Channel>& network_sim, runtime::Metrics& metrics,
                 size_t cache_capacity = kDefaultCacheCapacity);

  // orchestrator::Predict over gRPC. Which parameter set is in service is known by a watch, under
  // which an acknowledged push is seen at once; where the watch is down, one short call asks. Then
  // at most one batch goes to each service, with what is not yet known. The prediction is made with
  // that one set; where the network service does not have it, the answer says so in a warning. Ends
  // by the deadline of `call`; UNAVAILABLE names the service that cannot be reached.
  absl::StatusOr<orchestrator::Prediction> Predict(const workload::Job& job,
                                                   const orchestrator::PredictOptions& options,
                                                   runtime::Call& call);

  // The parameter set in service.
  absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> CurrentSet(runtime::Call& call);

 private:
  friend class RemoteOperatorCost;
  friend class RemoteNetworkTime;

  void Count(const workload::Job& job, const absl::StatusOr<orchestrator::Prediction>& prediction);
  // `version` is now in service: answers of others, but for the last, will not be asked for again.
  void DropStale(const std::string& version);

  std::unique_ptr<operator_cost::v1::OperatorCostService::Stub> operator_cost_;
  std::unique_ptr<network_sim::v1::NetworkSimService::Stub> network_sim_;
  runtime::CounterMetric hits_;
  runtime::CounterMetric misses_;
  // By kind, then by result.
  std::array<std::array<runtime::CounterMetric, 3>, 3> predictions_;

  EstimateCache<OperatorKey, operator_cost::OperatorEstimate> operators_;
  EstimateCache<CollectiveKey, collectives::CollectiveEstimate> collectives_;

  std::mutex mutex_;
  std::shared_ptr<const parameters::ParameterSet> last_set_;  // null before the first fetch
  std::string watched_version_;
  std::unique_ptr<ParameterWatch> watch_;  // last: its threads use the rest
};

}  // namespace sextant::orchestrator_service

#endif  // SEXTANT_SERVICES_ORCHESTRATOR_REMOTE_PORTS_H_
