// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/rpc_metrics.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/server_interceptor.h"
#include "prometheus/counter.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "services/runtime/grpc_status.h"

namespace sextant::runtime {
namespace {

using Clock = std::chrono::steady_clock;

const prometheus::Histogram::BucketBoundaries& RpcSecondsBuckets() {
  static const auto* buckets = new prometheus::Histogram::BucketBoundaries{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
  return *buckets;
}

struct Families {
  prometheus::Family<prometheus::Counter>& started;
  prometheus::Family<prometheus::Histogram>& duration;
};

class CallInterceptor : public grpc::experimental::Interceptor {
 public:
  CallInterceptor(Families families, std::string method)
      : families_(families), method_(std::move(method)), start_(Clock::now()) {
    families_.started.Add({{"grpc_method", method_}}).Increment();
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      const std::chrono::duration<double> elapsed = Clock::now() - start_;
      families_.duration
          .Add({{"grpc_method", method_},
                {"grpc_status", StatusName(methods->GetSendStatus().error_code())}},
               RpcSecondsBuckets())
          .Observe(elapsed.count());
    }
    methods->Proceed();
  }

 private:
  Families families_;
  std::string method_;
  Clock::time_point start_;
};

class CallInterceptorFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallInterceptorFactory(Families families) : families_(families) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    // Only methods of registered services arrive here, so that the label stays a closed set.
    absl::string_view method = info->method() == nullptr ? "" : info->method();
    if (!method.empty() && method.front() == '/') method.remove_prefix(1);
    return new CallInterceptor(families_, std::string(method));
  }

 private:
  Families families_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetrics(
    Metrics& metrics) {
  const Families families{prometheus::BuildCounter()
                              .Name("grpc_server_call_started_total")
                              .Help("Calls started, whether or not they ended.")
                              .Register(metrics.registry()),
                          prometheus::BuildHistogram()
                              .Name("grpc_server_call_duration_seconds")
                              .Help("Seconds from the start of a call to its status.")
                              .Register(metrics.registry())};
  return std::make_unique<CallInterceptorFactory>(families);
}

}  // namespace sextant::runtime
