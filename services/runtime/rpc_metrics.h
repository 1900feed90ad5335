// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_RPC_METRICS_H_
#define SEXTANT_SERVICES_RUNTIME_RPC_METRICS_H_

#include "grpcpp/server_builder.h"
#include "services/runtime/metrics.h"

namespace sextant::runtime {

// Makes every call of the server to be built count in
//   grpc_server_call_started_total{grpc_method}
//   grpc_server_call_duration_seconds{grpc_method,grpc_status}   (histogram; failures too)
// `metrics` must outlive the server. The one file that uses gRPC's experimental interface.
void AddRpcMetrics(grpc::ServerBuilder& builder, Metrics& metrics);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_RPC_METRICS_H_
