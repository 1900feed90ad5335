// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_ORCHESTRATOR_PARAMETER_WATCH_H_
#define SEXTANT_SERVICES_ORCHESTRATOR_PARAMETER_WATCH_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "sextant/operator_cost/v1/operator_cost_service.grpc.pb.h"

namespace sextant::orchestrator_service {

// Which version does the operator_cost service have in service? Known without asking, by a
// WatchParameters stream, for as long as the lease of the last message holds; so a set whose push
// was acknowledged is never missed, whatever is slow or cut off. Thread-safe.
class ParameterWatch {
 public:
  // `on_change` is called with every version that is new, on a thread of the watch.
  ParameterWatch(const std::shared_ptr<grpc::Channel>& operator_cost,
                 std::function<void(const std::string& version)> on_change);
  ~ParameterWatch();
  ParameterWatch(const ParameterWatch&) = delete;
  ParameterWatch& operator=(const ParameterWatch&) = delete;

  // Empty where it is not known now: then the service must be asked.
  std::string Version() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Stub = operator_cost::v1::OperatorCostService::Stub;
  using Stream = grpc::ClientReaderWriter<operator_cost::v1::WatchParametersRequest,
                                          operator_cost::v1::WatchParametersResponse>;

  void Run();
  void Watch();                  // one stream, until it breaks
  void ReadAll(Stream& stream);  // its answers

  const std::unique_ptr<Stub> stub_;
  const std::function<void(const std::string&)> on_change_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool broken_ = false;       // the stream has ended
  bool acknowledge_ = false;  // a version came that the service does not know we know
  std::string version_;
  int64_t sequence_ = 0;                       // of the last message sent
  std::map<int64_t, Clock::time_point> sent_;  // those not yet answered
  Clock::time_point lease_end_{};
  std::shared_ptr<grpc::ClientContext> context_;  // of the stream, to end it
  std::thread thread_;                            // last: starts when all is there
};

}  // namespace sextant::orchestrator_service

#endif  // SEXTANT_SERVICES_ORCHESTRATOR_PARAMETER_WATCH_H_
