// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/health.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "services/cli/remote.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

constexpr std::array<const char*, 4> kServices = {
    "sextant.operator_cost.v1.OperatorCostService", "sextant.network_sim.v1.NetworkSimService",
    "sextant.orchestrator.v1.OrchestratorService", "sextant.calibration.v1.CalibrationService"};

const char* StateOf(const absl::Status& health) {
  if (health.ok()) return "serving";
  return absl::IsNotFound(health) ? "absent" : "not_serving";
}

}  // namespace

absl::StatusOr<ExitCode> CheckHealth(const CommonOptions& common, const std::string& target,
                                     Terminal& terminal) {
  const client::Client client = ClientOf(common, target);
  const absl::Status whole = client.CheckHealth();
  if (!whole.ok()) {
    return absl::Status(whole.code(), absl::StrCat(target, ": ", whole.message()));
  }
  JsonWriter json;
  Table table({{"service"}, {"state"}});
  json.BeginObject();
  json.Field("target", target);
  json.Field("state", StateOf(whole));
  json.Key("services");
  json.BeginObject();
  table.AddRow({target, StateOf(whole)});
  for (const char* service : kServices) {
    const char* state = StateOf(client.CheckHealth(service));
    json.Field(service, state);
    table.AddRow({absl::StrCat("  ", service), state});
  }
  json.EndObject();
  json.EndObject();
  terminal.Print(common.output == "json" ? json.Finish() : table.ToText());
  return ExitCode::kOk;
}

}  // namespace sextant::cli
