// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "services/operator_cost/service.h"
#include "services/parameter_store/parameter_store.h"
#include "services/runtime/flags.h"
#include "services/runtime/log.h"

int main(int argc, char** argv) {
  namespace runtime = sextant::runtime;
  namespace store = sextant::parameter_store;
  namespace service = sextant::operator_cost_service;

  runtime::BlockShutdownSignals();
  store::StoreOptions options;
  runtime::Flags flags("operator_cost", "127.0.0.1:50051", "127.0.0.1:9090");
  flags.Add("parameters", &options.initial, "set to serve before any was pushed: name or path");
  flags.Add("datasets_dir", &options.datasets_directory, "catalog; empty: the built-in one");
  flags.Add("state_directory", &options.state_directory, "where pushed sets are kept; empty: none");
  if (const auto exit_code = flags.Parse(argc, argv)) return *exit_code;

  auto parameters = store::ParameterStore::Open(options);
  if (!parameters.ok()) return runtime::FailToStart(parameters.status());
  runtime::Metrics metrics;
  service::Service served(**parameters, metrics, flags.default_deadline());
  auto server = runtime::Server::Start(flags.server(), {{&served, service::kFullName}}, metrics);
  if (!server.ok()) return runtime::FailToStart(server.status());
  (*server)->OnShutdown([&] { (*parameters)->watchers().Stop(); });
  return runtime::ServeUntilSignal(**server);
}
