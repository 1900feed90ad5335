// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_SERVER_H_
#define SEXTANT_SERVICES_RUNTIME_SERVER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/runtime/log.h"
#include "services/runtime/security.h"

namespace grpc {
class Channel;
class Server;
class Service;
}  // namespace grpc

namespace sextant::runtime {

class Metrics;

// What every server of the suite can be told.
struct ServerOptions {
  std::string service_name = "sextant";        // in log lines: "operator_cost", ...
  std::string listen = "127.0.0.1:50051";      // gRPC; port 0: any free one; empty: in process only
  std::string metrics_listen = "127.0.0.1:0";  // /metrics; empty: none
  ServerSecurity security;                     // not asked in process
  bool reflection = true;
  LoggedCalls logged_calls = LoggedCalls::kFailed;
  std::chrono::milliseconds drain{5000};  // how long calls in progress may finish on shutdown
};

// A gRPC service, and the full name under which health checks ask for it.
struct ServedService {
  grpc::Service* service = nullptr;
  std::string full_name;  // "sextant.operator_cost.v1.OperatorCostService"
};

// A running server: its services, health v1, reflection, metrics. Every full name and "" are
// SERVING from the start until Shutdown. Thread-safe.
class Server {
 public:
  // Binds and starts. `services` and `metrics` must outlive the server. UNAVAILABLE where an
  // address cannot be bound; INVALID_ARGUMENT where neither TLS nor plaintext is asked for
  // (MakeServerCredentials).
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       const std::vector<ServedService>& services,
                                                       Metrics& metrics);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  int metrics_port() const { return metrics_port_; }  // 0: no metrics endpoint
  // A channel into this server without a socket.
  std::shared_ptr<grpc::Channel> InProcessChannel();

  // Called first thing in Shutdown, to end calls that last (watches). Not thread-safe.
  void OnShutdown(std::function<void()> callback) { on_shutdown_ = std::move(callback); }
  // Health turns NOT_SERVING, new calls are refused, calls in progress get the drain time, then are
  // cancelled. Idempotent. Never call it from a signal handler: it takes locks.
  void Shutdown();

 private:
  Server(ServerOptions options, Metrics& metrics);

  ServerOptions options_;
  Metrics& metrics_;
  int port_ = 0;
  int metrics_port_ = 0;
  std::function<void()> on_shutdown_;
  std::unique_ptr<grpc::Server> server_;
};

// Blocks SIGTERM and SIGINT in this thread and all that it starts, so that WaitForShutdownSignal
// gets them. Call first thing in main, before any other thread exists.
void BlockShutdownSignals();
// Returns the signal number once SIGTERM or SIGINT arrives.
int WaitForShutdownSignal();
// Logs why a server cannot start; returns the exit code, 1.
int FailToStart(const absl::Status& status);
// The rest of a server's main: waits for a signal, then shuts down. Returns the exit code, 0.
int ServeUntilSignal(Server& server);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_SERVER_H_
