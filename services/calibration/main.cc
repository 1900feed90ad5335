// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/calibration/loop.h"
#include "services/calibration/service.h"
#include "services/runtime/flags.h"
#include "services/runtime/log.h"
#include "services/runtime/metrics.h"

namespace {

// Numbers come as text, so that an environment variable and a flag are read the same.
bool ReadNumber(const std::string& flag, const std::string& text, double* value) {
  if (absl::SimpleAtod(text, value) && *value >= 0 && *value <= 1e9) return true;
  sextant::runtime::FailToStart(absl::InvalidArgumentError(
      absl::StrCat(flag, " is \"", text, "\" but must be a number from 0 to 1e9")));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  namespace runtime = sextant::runtime;
  namespace service = sextant::calibration_service;

  runtime::BlockShutdownSignals();
  service::LoopOptions options;
  std::string drift = "10", error = "0", rows = "0", schedule = "0", cool_down = "3600";
  std::string automatic = "true";
  runtime::Flags flags("calibration", "127.0.0.1:50054", "127.0.0.1:9093");
  flags.Add("datasets_dir", &options.datasets_directory, "catalog; empty: the built-in one");
  flags.Add("state_directory", &options.state_directory, "holds the store; empty: in memory");
  flags.Add("database", &options.database,
            "PostgreSQL connection string, for several replicas; empty: SQLite");
  flags.Add("push_target", &options.fleet.targets,
            "host:port that sets are pushed to, or dns:host:port for every address of a name; may "
            "be repeated");
  flags.Add("automatic", &automatic, "false: only judge measurements, start no jobs");
  flags.Add("drift_threshold_percent", &drift, "median error of a group that starts a job");
  flags.Add("error_threshold_percent", &error, "rolling MAPE that starts a job; 0: none");
  flags.Add("recalibrate_rows", &rows, "new rows that start a job; 0: none");
  flags.Add("recalibrate_seconds", &schedule, "longest time between jobs while rows come; 0: any");
  flags.Add("cool_down_seconds", &cool_down, "shortest time between jobs that start by themselves");
  if (const auto exit_code = flags.Parse(argc, argv)) return *exit_code;

  double row_count = 0, schedule_seconds = 0, cool_down_seconds = 0;
  if (!ReadNumber("drift_threshold_percent", drift, &options.watch.drift_threshold_percent) ||
      !ReadNumber("error_threshold_percent", error, &options.watch.error_threshold_percent) ||
      !ReadNumber("recalibrate_rows", rows, &row_count) ||
      !ReadNumber("recalibrate_seconds", schedule, &schedule_seconds) ||
      !ReadNumber("cool_down_seconds", cool_down, &cool_down_seconds)) {
    return 2;
  }
  options.watch.row_count = static_cast<int64_t>(row_count);
  options.watch.schedule = std::chrono::seconds(static_cast<int64_t>(schedule_seconds));
  options.watch.cool_down = std::chrono::seconds(static_cast<int64_t>(cool_down_seconds));
  options.watch.automatic = automatic != "false" && automatic != "0";
  options.fleet.timeout = flags.default_deadline();
  auto credentials = runtime::MakeChannelCredentials(flags.client());
  if (!credentials.ok()) return runtime::FailToStart(credentials.status());
  options.fleet.credentials = *std::move(credentials);
  runtime::Metrics metrics;
  auto loop = service::Loop::Start(std::move(options), metrics);
  if (!loop.ok()) return runtime::FailToStart(loop.status());
  service::Service served(**loop, flags.default_deadline());
  auto server = runtime::Server::Start(flags.server(), {{&served, service::kFullName}}, metrics);
  if (!server.ok()) return runtime::FailToStart(server.status());
  (*server)->OnShutdown([&] { (*loop)->jobs().Stop(); });
  return runtime::ServeUntilSignal(**server);
}
