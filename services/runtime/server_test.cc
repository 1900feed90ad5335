// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/server.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "services/runtime/channel.h"
#include "services/runtime/metrics.h"

namespace sextant::runtime {
namespace {

ServerOptions AnyPort() {
  return {.listen = "127.0.0.1:0", .metrics_listen = "127.0.0.1:0", .security = {.insecure = true}};
}

grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service,
                         grpc::health::v1::HealthCheckResponse* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  return grpc::health::v1::Health::NewStub(channel)->Check(&context, request, response);
}

TEST(Server, IsServingFromTheStartAndRefusesUnknownNames) {
  Metrics metrics;
  auto server = Server::Start(AnyPort(), {}, metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = Connect(absl::StrCat("127.0.0.1:", (*server)->port()));
  grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(CheckHealth(channel, "", &response).ok());
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  EXPECT_EQ(CheckHealth(channel, "nobody.v1.Nobody", &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(Server, CallsAreCountedByMethodAndStatusFailuresToo) {
  Metrics metrics;
  auto server = Server::Start(AnyPort(), {}, metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = (*server)->InProcessChannel();
  grpc::health::v1::HealthCheckResponse response;
  EXPECT_TRUE(CheckHealth(channel, "", &response).ok());
  EXPECT_FALSE(CheckHealth(channel, "nobody", &response).ok());
  const std::string text = metrics.Text();
  EXPECT_NE(text.find("grpc_server_call_started_total{grpc_method=\"grpc.health.v1.Health/Check\"}"
                      " 2"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("grpc_status=\"OK\""), std::string::npos);
  EXPECT_NE(text.find("grpc_status=\"NOT_FOUND\""), std::string::npos);
  EXPECT_NE(text.find("sextant_build_info"), std::string::npos);
}

TEST(Server, AnAddressInUseIsRefusedByName) {
  Metrics metrics;
  auto first = Server::Start(AnyPort(), {}, metrics);
  ASSERT_TRUE(first.ok()) << first.status();
  Metrics other_metrics;
  ServerOptions options = AnyPort();
  options.listen = absl::StrCat("127.0.0.1:", (*first)->port());
  const auto second = Server::Start(options, {}, other_metrics);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(options.listen), absl::string_view::npos);
}

TEST(Server, AnAddressWithoutALegalPortIsRefused) {
  Metrics metrics;
  for (const char* listen : {"127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", ":1:x"}) {
    ServerOptions options = AnyPort();
    options.listen = listen;
    EXPECT_EQ(Server::Start(options, {}, metrics).status().code(),
              absl::StatusCode::kInvalidArgument)
        << listen;
  }
}

TEST(Server, ASignalEndsServing) {
  BlockShutdownSignals();
  Metrics metrics;
  auto server = Server::Start(AnyPort(), {}, metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  kill(getpid(), SIGTERM);  // stays pending until waited for
  EXPECT_EQ(ServeUntilSignal(**server), 0);
}

}  // namespace
}  // namespace sextant::runtime
