// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_RPC_METRICS_H_
#define SEXTANT_SERVICES_RUNTIME_RPC_METRICS_H_

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "services/runtime/metrics.h"

namespace sextant::runtime {

// Makes every call of a server count in
//   grpc_server_call_started_total{grpc_method}
//   grpc_server_call_duration_seconds{grpc_method,grpc_status}   (histogram; failures too)
// `metrics` must outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetrics(
    Metrics& metrics);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_RPC_METRICS_H_
