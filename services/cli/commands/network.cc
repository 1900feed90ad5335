// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/network.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// A file that was read and is valid, or says why not.
struct CaseFile {
  std::string name;
  std::string text;
  absl::StatusOr<NetworkCase> network_case;
};

CaseFile ReadCase(const std::string& file, Terminal& terminal) {
  absl::StatusOr<std::string> text = terminal.Read(file);
  if (!text.ok()) return {file, "", text.status()};
  absl::StatusOr<NetworkCase> parsed =
      network_sim::ParseNetworkCase(*text, file == "-" ? "stdin" : file);
  return {file, *std::move(text), std::move(parsed)};
}

// Says now and then how far a simulation is, from the second time on that a step is reached.
class ProgressNotes {
 public:
  ProgressNotes(std::string name, Terminal& terminal) : name_(std::move(name)), out_(terminal) {}

  // `step` grows by one about every second.
  void Say(int64_t step, const network_sim::Progress& progress) {
    if (step <= last_step_) return;
    last_step_ = step;
    const std::string share =
        progress.message_count > 0
            ? absl::StrCat(100 * progress.arrived_count / progress.message_count,
                           " % of the messages have arrived, ")
            : "";
    out_.Note(absl::StrCat(name_, ": ", share, "simulated second ", progress.simulated_seconds));
  }

 private:
  const std::string name_;
  Terminal& out_;
  int64_t last_step_ = 0;
};

constexpr int64_t kEventsPerNote = int64_t{1} << 22;  // about a second
constexpr int64_t kUpdatesPerNote = 10;               // a server's, ten a second

absl::StatusOr<NetworkResult> TimeEmbedded(const CaseFile& file, network_sim::Fidelity fidelity,
                                           Terminal& terminal) {
  ProgressNotes notes(file.network_case->id, terminal);
  return network_sim::SimulateNetworkCase(
      *file.network_case, fidelity, {.check = [&](const network_sim::Progress& progress) {
        notes.Say(progress.event_count / kEventsPerNote, progress);
        return absl::OkStatus();
      }});
}

// One case is watched; several go in batches.
absl::StatusOr<std::vector<NetworkResult>> TimeRemote(const std::vector<const CaseFile*>& files,
                                                      network_sim::Fidelity fidelity,
                                                      const client::Client& server,
                                                      Terminal& terminal) {
  if (files.size() == 1) {
    ProgressNotes notes(files[0]->network_case->id, terminal);
    int64_t updates = 0;
    SEXTANT_ASSIGN_OR_RETURN(
        NetworkResult result,
        server.SimulateCase(files[0]->text, fidelity, [&](const network_sim::Progress& progress) {
          notes.Say(++updates / kUpdatesPerNote, progress);
        }));
    return std::vector<NetworkResult>{std::move(result)};
  }
  std::vector<std::string> texts;
  for (const CaseFile* file : files) texts.push_back(file->text);
  return server.SimulateCases(texts, fidelity);
}

}  // namespace

absl::StatusOr<ExitCode> TimeNetworkCases(const CommonOptions& common,
                                          const NetworkOptions& options, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const network_sim::Fidelity fidelity,
                           network_sim::ParseFidelity(options.fidelity));
  std::vector<NetworkResult> results;
  base::Violations failures;
  absl::StatusCode failure = absl::StatusCode::kOk;
  const auto fail = [&](const std::string& file, const absl::Status& status) {
    AddFailure(file, status, &failures);
    failure = status.code();
  };
  std::vector<CaseFile> files;
  for (const std::string& name : options.case_files) {
    files.push_back(ReadCase(name, terminal));
    const absl::Status& status = files.back().network_case.status();
    if (status.ok()) continue;
    if (options.case_files.size() == 1) return status;
    fail(name, status);
  }
  if (common.server.empty()) {
    for (const CaseFile& file : files) {
      if (!file.network_case.ok()) continue;
      absl::StatusOr<NetworkResult> result = TimeEmbedded(file, fidelity, terminal);
      if (result.ok()) {
        results.push_back(*std::move(result));
      } else if (files.size() == 1) {
        return result.status();
      } else {
        fail(file.name, result.status());
      }
    }
  } else {
    std::vector<const CaseFile*> valid;
    for (const CaseFile& file : files) {
      if (file.network_case.ok()) valid.push_back(&file);
    }
    if (!valid.empty()) {
      SEXTANT_ASSIGN_OR_RETURN(
          results, TimeRemote(valid, fidelity, ConnectedClient(common, terminal), terminal));
    }
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
  const bool all_timed =
      std::all_of(results.begin(), results.end(),
                  [](const NetworkResult& result) { return result.status == NetworkStatus::kOk; });
  return all_timed ? ExitCode::kOk : ExitCode::kModelSaysNo;
}

}  // namespace sextant::cli
