// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_SERVE_SERVE_H_
#define SEXTANT_SERVICES_SERVE_SERVE_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/runtime/server.h"

namespace sextant::serve {

struct ServeOptions {
  runtime::ServerOptions server{
      .service_name = "sextant", .listen = "127.0.0.1:50051", .metrics_listen = "127.0.0.1:9090"};
  std::chrono::milliseconds default_deadline{30000};
  std::string parameters = "default";  // catalog name, or path of a set file
  std::string datasets_directory;      // empty: the built-in one
  std::string state_directory;         // empty: pushed sets are forgotten with the process
};

// All four services in one process on one gRPC port. The orchestrator asks the services below
// through the same messages as over a network, without a socket; the calibration service pushes to
// this process. Thread-safe.
class AllServices {
 public:
  // UNAVAILABLE where an address cannot be bound; NOT_FOUND for an unknown parameter set.
  static absl::StatusOr<std::unique_ptr<AllServices>> Start(const ServeOptions& options);
  ~AllServices();
  AllServices(const AllServices&) = delete;
  AllServices& operator=(const AllServices&) = delete;

  runtime::Server& server();

 private:
  struct Parts;
  explicit AllServices(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// The whole program `sextant serve`: starts, waits for SIGTERM or SIGINT, drains. Returns the exit
// code. Call runtime::BlockShutdownSignals() first, before any thread exists.
int RunAllServices(const ServeOptions& options);

}  // namespace sextant::serve

#endif  // SEXTANT_SERVICES_SERVE_SERVE_H_
