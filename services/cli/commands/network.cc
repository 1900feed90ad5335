// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/network.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/network_sim/case_reader.h"
#include "common/network_sim/simulate.h"
#include "services/cli/remote.h"
#include "services/cli/render/network.h"

namespace sextant::cli {
namespace {

using network_sim::NetworkCase;
using network_sim::NetworkResult;
using network_sim::NetworkStatus;

// `server` is null for the embedded library.
absl::StatusOr<NetworkResult> TimeFile(const std::string& file, network_sim::Fidelity fidelity,
                                       const client::Client* server, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(file));
  if (server != nullptr) return server->SimulateCase(text, fidelity);
  SEXTANT_ASSIGN_OR_RETURN(const NetworkCase network_case,
                           network_sim::ParseNetworkCase(text, file == "-" ? "stdin" : file));
  return network_sim::SimulateNetworkCase(network_case, fidelity);
}

}  // namespace

absl::StatusOr<ExitCode> TimeNetworkCases(const CommonOptions& common,
                                          const NetworkOptions& options, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const network_sim::Fidelity fidelity,
                           network_sim::ParseFidelity(options.fidelity));
  std::unique_ptr<client::Client> server;
  if (!common.server.empty()) {
    server = std::make_unique<client::Client>(ConnectedClient(common, terminal));
  }
  std::vector<NetworkResult> results;
  base::Violations failures;
  absl::StatusCode failure = absl::StatusCode::kOk;
  bool all_timed = true;
  for (const std::string& file : options.case_files) {
    absl::StatusOr<NetworkResult> result = TimeFile(file, fidelity, server.get(), terminal);
    if (!result.ok()) {
      if (options.case_files.size() == 1) return result.status();
      AddFailure(file, result.status(), &failures);
      failure = result.status().code();
      continue;
    }
    all_timed &= result->status == NetworkStatus::kOk;
    results.push_back(*std::move(result));
  }
  if (!results.empty()) {
    terminal.Print(common.output == "json"  ? NetworkJson(results)
                   : common.output == "csv" ? NetworkCsv(results)
                                            : NetworkText(results));
  }
  if (!failures.empty()) return failures.ToStatus(failure);
  for (const NetworkResult& result : results) {
    if (result.status == NetworkStatus::kOk) continue;
    terminal.Error(absl::StrCat(result.case_id, ": ", network_sim::NetworkStatusName(result.status),
                                ": ", result.reason));
  }
  return all_timed ? ExitCode::kOk : ExitCode::kModelSaysNo;
}

}  // namespace sextant::cli
