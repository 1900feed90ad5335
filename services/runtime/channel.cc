// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/channel.h"

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

namespace sextant::runtime {
namespace {

// An empty name matches every method. Only UNAVAILABLE is safe to repeat without knowing the call.
// A name with several addresses (a headless service) is several instances: each gets its turn.
constexpr char kServiceConfig[] = R"({
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [{}],
    "retryPolicy": {
      "maxAttempts": 3,
      "initialBackoff": "0.1s",
      "maxBackoff": "1s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})";

}  // namespace

grpc::ChannelArguments ClientArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // Violations travel in trailers; other suites' servers may send larger ones than we do.
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 64 * 1024);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return arguments;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target,
                                       const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                       const std::string& server_name) {
  grpc::ChannelArguments arguments = ClientArguments();
  if (!server_name.empty()) arguments.SetSslTargetNameOverride(server_name);
  return grpc::CreateCustomChannel(
      target, credentials != nullptr ? credentials : grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace sextant::runtime
