// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "services/orchestrator/remote_ports.h"
#include "services/orchestrator/service.h"
#include "services/runtime/channel.h"
#include "services/runtime/flags.h"

int main(int argc, char** argv) {
  namespace runtime = sextant::runtime;
  namespace service = sextant::orchestrator_service;

  runtime::BlockShutdownSignals();
  std::string operator_cost = "127.0.0.1:50051";
  std::string network_sim = "127.0.0.1:50052";
  runtime::Flags flags("orchestrator", "127.0.0.1:50053", "127.0.0.1:9092");
  flags.Add("operator_cost", &operator_cost, "host:port of the operator_cost service");
  flags.Add("network_sim", &network_sim, "host:port of the network_sim service");
  if (const auto exit_code = flags.Parse(argc, argv)) return *exit_code;

  runtime::Metrics metrics;
  const auto credentials = runtime::MakeChannelCredentials(flags.client());
  if (!credentials.ok()) return runtime::FailToStart(credentials.status());
  service::RemoteServices services(runtime::Connect(operator_cost, *credentials),
                                   runtime::Connect(network_sim, *credentials), metrics);
  service::Service served(services, flags.default_deadline());
  auto server = runtime::Server::Start(flags.server(), {{&served, service::kFullName}}, metrics);
  if (!server.ok()) return runtime::FailToStart(server.status());
  return runtime::ServeUntilSignal(**server);
}
