// SPDX-License-Identifier: Apache-2.0
#include "services/serve/serve.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "services/calibration/service.h"
#include "services/network_sim/service.h"
#include "services/operator_cost/service.h"
#include "services/orchestrator/service.h"
#include "services/parameter_store/parameter_store.h"
#include "services/runtime/log.h"
#include "services/runtime/metrics.h"

namespace sextant::serve {
namespace {

std::string SubDirectory(const std::string& directory, absl::string_view name) {
  return directory.empty() ? "" : absl::StrCat(directory, "/", name);
}

absl::StatusOr<std::unique_ptr<parameter_store::ParameterStore>> OpenStore(
    const ServeOptions& options, absl::string_view service) {
  return parameter_store::ParameterStore::Open(parameter_store::StoreOptions{
      .initial = options.parameters,
      .datasets_directory = options.datasets_directory,
      .state_directory = SubDirectory(options.state_directory, service)});
}

}  // namespace

// Destroyed from the last to the first: the public server before what it serves.
struct AllServices::Parts {
  runtime::Metrics metrics;
  std::unique_ptr<parameter_store::ParameterStore> operator_cost_store;
  std::unique_ptr<parameter_store::ParameterStore> network_sim_store;
  std::unique_ptr<operator_cost_service::Service> operator_cost;
  std::unique_ptr<network_sim_service::Service> network_sim;
  std::unique_ptr<runtime::Server> inner;  // the two lower services, without a socket
  std::unique_ptr<orchestrator_service::RemoteServices> lower;
  std::unique_ptr<orchestrator_service::Service> orchestrator;
  std::unique_ptr<calibration_service::Loop> loop;
  std::unique_ptr<calibration_service::Service> calibration;
  std::unique_ptr<runtime::Server> outer;

  void StopWatches() {
    operator_cost_store->watchers().Stop();
    network_sim_store->watchers().Stop();
    loop->jobs().Stop();
  }
};

AllServices::AllServices(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
AllServices::~AllServices() = default;

absl::StatusOr<std::unique_ptr<AllServices>> AllServices::Start(const ServeOptions& options) {
  auto parts = std::make_unique<Parts>();
  Parts& p = *parts;
  const auto deadline = options.default_deadline;
  SEXTANT_ASSIGN_OR_RETURN(p.operator_cost_store, OpenStore(options, "operator_cost"));
  SEXTANT_ASSIGN_OR_RETURN(p.network_sim_store, OpenStore(options, "network_sim"));
  p.operator_cost =
      std::make_unique<operator_cost_service::Service>(*p.operator_cost_store, p.metrics, deadline);
  p.network_sim =
      std::make_unique<network_sim_service::Service>(*p.network_sim_store, p.metrics, deadline);
  const runtime::ServedService operator_cost{p.operator_cost.get(),
                                             operator_cost_service::kFullName};
  const runtime::ServedService network_sim{p.network_sim.get(), network_sim_service::kFullName};

  runtime::ServerOptions inner_options = options.server;
  inner_options.listen.clear();
  inner_options.metrics_listen.clear();
  SEXTANT_ASSIGN_OR_RETURN(
      p.inner, runtime::Server::Start(inner_options, {operator_cost, network_sim}, p.metrics));
  const auto channel = p.inner->InProcessChannel();
  p.lower = std::make_unique<orchestrator_service::RemoteServices>(channel, channel, p.metrics);
  p.orchestrator = std::make_unique<orchestrator_service::Service>(*p.lower, deadline);

  calibration_service::LoopOptions loop_options;
  loop_options.state_directory = SubDirectory(options.state_directory, "calibration");
  loop_options.datasets_directory = options.datasets_directory;
  loop_options.clients = {client::Client(channel, "this process", deadline)};
  SEXTANT_ASSIGN_OR_RETURN(p.loop,
                           calibration_service::Loop::Start(std::move(loop_options), p.metrics));
  p.calibration = std::make_unique<calibration_service::Service>(*p.loop, deadline);
  SEXTANT_ASSIGN_OR_RETURN(
      p.outer, runtime::Server::Start(options.server,
                                      {operator_cost,
                                       network_sim,
                                       {p.orchestrator.get(), orchestrator_service::kFullName},
                                       {p.calibration.get(), calibration_service::kFullName}},
                                      p.metrics));
  p.outer->OnShutdown([parts = parts.get()] { parts->StopWatches(); });
  return std::unique_ptr<AllServices>(new AllServices(std::move(parts)));
}

runtime::Server& AllServices::server() { return *parts_->outer; }

int RunAllServices(const ServeOptions& options) {
  runtime::SetLogService(options.server.service_name);
  auto services = AllServices::Start(options);
  if (!services.ok()) return runtime::FailToStart(services.status());
  return runtime::ServeUntilSignal((*services)->server());
}

}  // namespace sextant::serve
