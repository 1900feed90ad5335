// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/server.h"

#include <csignal>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "services/runtime/call_log.h"
#include "services/runtime/channel.h"
#include "services/runtime/log.h"
#include "services/runtime/metrics.h"
#include "services/runtime/rpc_metrics.h"

namespace sextant::runtime {
namespace {

// Each call in progress holds a thread. Admission answers calls beyond its own, lower limit; beyond
// this one gRPC itself says RESOURCE_EXHAUSTED.
constexpr int kMaxThreads = 256;

constexpr int kMaxConnectionAgeMs = 10 * 60 * 1000;
constexpr int kKeepaliveMs = 60 * 1000;
constexpr int kMinPingMs = 20 * 1000;

// gRPC would take a port modulo 65536.
bool HasPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  return colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 && port <= 65535;
}

}  // namespace

Server::Server(ServerOptions options, Metrics& metrics)
    : options_(std::move(options)), metrics_(metrics) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      const std::vector<ServedService>& services,
                                                      Metrics& metrics) {
  const bool in_process = options.listen.empty();
  if (!in_process && !HasPort(options.listen)) {
    base::Violations violations;
    violations.Add("listen", absl::StrCat("is \"", options.listen,
                                          "\" but must be host:port, with a port up to 65535"));
    return violations.ToStatus();
  }
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (!in_process) {
    SEXTANT_ASSIGN_OR_RETURN(credentials, MakeServerCredentials(options.security, metrics));
  }
  std::unique_ptr<Server> server(new Server(options, metrics));
  grpc::EnableDefaultHealthCheckService(true);
  if (options.reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  if (!in_process) builder.AddListeningPort(options.listen, credentials, &server->port_);
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // Two servers on one port would each get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota(options.service_name);
  quota.SetMaxThreads(kMaxThreads);
  // Connections end now and then (calls on them may finish), so that clients of a name find its new
  // instances; dead peers are noticed, and so are those that ping too often.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kMaxConnectionAgeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMs);
  builder.SetResourceQuota(quota);
  for (const ServedService& served : services) builder.RegisterService(served.service);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeRpcMetrics(metrics));
  // A call between services of one process is part of one from outside.
  if (!in_process && options.logged_calls != LoggedCalls::kNone) {
    interceptors.push_back(MakeCallLog(options.logged_calls));
  }
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || (!in_process && server->port_ == 0)) {
    return absl::UnavailableError(
        absl::StrCat("listen is \"", options.listen,
                     "\" but cannot be bound; use a free host:port, or port 0 for any"));
  }
  if (!options.metrics_listen.empty()) {
    auto metrics_port = metrics.Expose(options.metrics_listen);
    if (!metrics_port.ok()) return metrics_port.status();
    server->metrics_port_ = *metrics_port;
  }
  grpc::HealthCheckServiceInterface* health = server->server_->GetHealthCheckService();
  if (health == nullptr) return absl::InternalError("the health service is missing");
  for (const ServedService& served : services) health->SetServingStatus(served.full_name, true);
  health->SetServingStatus("", true);
  if (in_process) return server;
  Log(Severity::kInfo, "listening",
      {{"listen", options.listen},
       {"transport", !options.security.tls()                   ? "plaintext"
                     : options.security.client_ca_file.empty() ? "tls"
                                                               : "mutual tls"},
       {"grpc_port", absl::StrCat(server->port_)},
       {"metrics_port", absl::StrCat(server->metrics_port_)}});
  return server;
}

Server::~Server() { Shutdown(); }

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  return server_->InProcessChannel(ClientArguments());
}

void Server::Shutdown() {
  if (server_ == nullptr) return;
  if (on_shutdown_) on_shutdown_();
  if (auto* health = server_->GetHealthCheckService(); health != nullptr) health->Shutdown();
  server_->Shutdown(std::chrono::system_clock::now() + options_.drain);
  server_->Wait();
  server_ = nullptr;
  if (options_.listen.empty()) return;
  metrics_.Close();
  Log(Severity::kInfo, "stopped");
}

namespace {

sigset_t ShutdownSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void BlockShutdownSignals() {
  const sigset_t signals = ShutdownSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int WaitForShutdownSignal() {
  const sigset_t signals = ShutdownSignals();
  int received = 0;
  while (sigwait(&signals, &received) != 0) {
  }
  return received;
}

int FailToStart(const absl::Status& status) {
  Log(Severity::kError, "cannot start", {{"reason", status.message()}});
  return 1;
}

int ServeUntilSignal(Server& server) {
  const int received = WaitForShutdownSignal();
  Log(Severity::kInfo, "shutting down", {{"signal", absl::StrCat(received)}});
  server.Shutdown();
  return 0;
}

}  // namespace sextant::runtime
