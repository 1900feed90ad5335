// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "services/calibration/service.h"
#include "services/runtime/flags.h"
#include "services/runtime/metrics.h"

int main(int argc, char** argv) {
  namespace runtime = sextant::runtime;
  namespace service = sextant::calibration_service;

  runtime::BlockShutdownSignals();
  std::string state_directory;
  std::string datasets_dir;
  std::vector<std::string> targets;
  runtime::Flags flags("calibration", "127.0.0.1:50054", "127.0.0.1:9093");
  flags.Add("datasets_dir", &datasets_dir, "catalog; empty: the built-in one");
  flags.Add("state_directory", &state_directory, "where published sets are kept; empty: none");
  flags.Add("push_target", &targets, "host:port that sets are pushed to; may be repeated");
  if (const auto exit_code = flags.Parse(argc, argv)) return *exit_code;

  auto library = service::SetLibrary::Open(state_directory, datasets_dir);
  if (!library.ok()) return runtime::FailToStart(library.status());
  const auto push_targets = service::PushTargets::To(targets, flags.default_deadline());
  service::JobRunner jobs(service::DefaultCalibrator(datasets_dir), **library, push_targets);
  service::Service served(jobs, **library, push_targets, flags.default_deadline());
  runtime::Metrics metrics;
  auto server = runtime::Server::Start(flags.server(), {{&served, service::kFullName}}, metrics);
  if (!server.ok()) return runtime::FailToStart(server.status());
  return runtime::ServeUntilSignal(**server);
}
