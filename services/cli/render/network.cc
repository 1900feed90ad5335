// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/network.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/number.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using network_sim::NetworkJobResult;
using network_sim::NetworkResult;
using network_sim::NetworkStatus;

// Against the same case without its faults.
std::string SlowdownText(const NetworkResult& result) {
  if (result.faulty_link_count == 0 || !(result.slowdown > 0)) return "-";
  return absl::StrFormat("%.2fx", result.slowdown);
}

}  // namespace

std::string NetworkJson(const std::vector<NetworkResult>& results) {
  JsonWriter json;
  json.BeginObject();
  json.Key("cases");
  json.BeginArray();
  for (const NetworkResult& result : results) {
    const bool timed = result.status == NetworkStatus::kOk;
    json.BeginObject();
    json.Field("id", result.case_id);
    json.Field("fidelity", network_sim::FidelityName(result.fidelity));
    json.Field("status", network_sim::NetworkStatusName(result.status));
    json.FieldOrNull("reason", result.reason);
    json.Field("total_seconds", timed ? std::optional(result.total_seconds) : std::nullopt);
    json.Key("jobs");
    json.BeginArray();
    for (const NetworkJobResult& job : result.jobs) {
      json.BeginObject();
      json.Field("name", job.name);
      json.Field("algorithm", job.algorithm);
      json.Field("start_seconds", job.start_seconds);
      json.Field("finish_seconds", timed ? std::optional(job.finish_seconds) : std::nullopt);
      json.Field("total_seconds", timed ? std::optional(job.total_seconds) : std::nullopt);
      json.EndObject();
    }
    json.EndArray();
    json.FieldOrNull("limiting_link", result.limiting_link);
    json.Field("limiting_link_seconds",
               timed ? std::optional(result.limiting_link_seconds) : std::nullopt);
    const bool compared = timed && result.healthy_seconds > 0;
    json.Field("healthy_seconds", compared ? std::optional(result.healthy_seconds) : std::nullopt);
    json.Field("slowdown", compared ? std::optional(result.slowdown) : std::nullopt);
    json.Field("faulty_link_count", result.faulty_link_count);
    json.Field("rerouted_count", result.rerouted_count);
    json.Field("reembedded_count", result.reembedded_count);
    json.Field("unreachable_ranks", result.unreachable_ranks);
    json.Field("mapping", result.mapping);
    json.Field("mapping_gain", result.mapping_gain);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Finish();
}

std::string NetworkCsv(const std::vector<NetworkResult>& results) {
  std::string csv = "case_id,seconds\n";
  for (const NetworkResult& result : results) {
    const bool timed = result.status == NetworkStatus::kOk;
    absl::StrAppend(&csv, CsvField(result.case_id), ",",
                    timed ? ShortestNumber(result.total_seconds) : "", "\n");
  }
  return csv;
}

std::string NetworkText(const std::vector<NetworkResult>& results) {
  Table table({{"case"},
               {"fidelity"},
               {"time", Align::kRight},
               {"slow-down", Align::kRight},
               {"limiting link"},
               {"status"}});
  for (const NetworkResult& result : results) {
    const bool timed = result.status == NetworkStatus::kOk;
    const std::string status(network_sim::NetworkStatusName(result.status));
    table.AddRow({result.case_id, std::string(network_sim::FidelityName(result.fidelity)),
                  timed ? FormatSeconds(result.total_seconds) : "-", SlowdownText(result),
                  result.limiting_link,
                  result.reason.empty() ? status : absl::StrCat(status, ": ", result.reason)});
    if (!result.mapping.empty()) {
      table.AddRow({absl::StrCat("  layout ", absl::StrJoin(result.mapping, ", ")), "", "", "",
                    result.mapping_gain > 1
                        ? absl::StrFormat("%.2f times faster than as given", result.mapping_gain)
                        : "",
                    ""});
    }
    if (result.jobs.size() < 2) continue;
    for (const NetworkJobResult& job : result.jobs) {
      table.AddRow({absl::StrCat("  ", job.name, " (", job.algorithm, ")"), "",
                    timed ? FormatSeconds(job.total_seconds) : "-", "", "", ""});
    }
  }
  return table.ToText();
}

}  // namespace sextant::cli
