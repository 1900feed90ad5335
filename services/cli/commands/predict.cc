// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/predict.h"

#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/catalog/job_reader.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/trace.h"
#include "services/cli/library.h"
#include "services/cli/remote.h"
#include "services/cli/render/prediction.h"
#include "services/cli/render/trace.h"

namespace sextant::cli {
namespace {

absl::Status WriteTrace(const CommonOptions& common, const workload::Job& job,
                        const catalog::Catalog& catalog, const std::string& file,
                        Terminal& terminal) {
  if (!common.server.empty()) {
    return absl::InvalidArgumentError(
        "--trace is written by the embedded library; leave out --server");
  }
  SEXTANT_ASSIGN_OR_RETURN(const auto parameters, ParametersInUse(common, catalog, terminal));
  orchestrator::LocalOperatorCost operator_cost(parameters);
  orchestrator::LocalNetworkTime network_time(parameters);
  SEXTANT_ASSIGN_OR_RETURN(const orchestrator::Trace trace,
                           orchestrator::TraceJob(job, operator_cost, network_time));
  std::ofstream out(file);
  out << ChromeTraceJson(trace);
  out.close();
  if (!out) return absl::InvalidArgumentError(absl::StrCat("cannot write ", file));
  terminal.Note(absl::StrCat("wrote the timeline to ", file));
  return absl::OkStatus();
}

// Says how far a long run is, once in `interval` calls.
class ServingNotes {
 public:
  ServingNotes(int64_t interval, Terminal& terminal) : interval_(interval), terminal_(terminal) {}

  absl::Status Say(const serving::Progress& p) {
    if (++calls_ % interval_ == 0) {
      terminal_.Note(absl::StrFormat("%d of %d requests completed after %.4g s of the run",
                                     p.completed_request_count, p.offered_request_count,
                                     p.simulated_seconds));
    }
    return absl::OkStatus();
  }

 private:
  const int64_t interval_;
  Terminal& terminal_;
  int64_t calls_ = 0;
};
constexpr int64_t kChecksPerNote = 512;  // of a thousand engine steps each: about a second
constexpr int64_t kUpdatesPerNote = 10;  // a server's, ten a second

}  // namespace

absl::StatusOr<orchestrator::Prediction> PredictionOf(const CommonOptions& common,
                                                      const workload::Job& job,
                                                      const catalog::Catalog& catalog,
                                                      bool sensitivities, Terminal& terminal) {
  ServingNotes notes(common.server.empty() ? kChecksPerNote : kUpdatesPerNote, terminal);
  const auto progress = [&](const serving::Progress& p) { return notes.Say(p); };
  if (!common.server.empty()) {
    const client::Client server = ConnectedClient(common, terminal);
    return job.serving.has_value() ? server.PredictStream(job, sensitivities, progress)
                                   : server.Predict(job, sensitivities);
  }
  SEXTANT_ASSIGN_OR_RETURN(const auto parameters, ParametersInUse(common, catalog, terminal));
  orchestrator::LocalOperatorCost operator_cost(parameters);
  orchestrator::LocalNetworkTime network_time(parameters);
  return orchestrator::Predict(job, operator_cost, network_time,
                               {.sensitivities = sensitivities, .serving_progress = progress});
}

absl::StatusOr<ExitCode> PredictJob(const CommonOptions& common, const PredictOptions& options,
                                    Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(options.job_file));
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  std::vector<std::string> notes;
  SEXTANT_ASSIGN_OR_RETURN(
      const workload::Job job,
      catalog::ReadJob(text, options.job_file == "-" ? "stdin" : options.job_file,
                       options.overrides, catalog, &notes));
  for (const std::string& note : notes) terminal.Note(note);
  SEXTANT_ASSIGN_OR_RETURN(const orchestrator::Prediction prediction,
                           PredictionOf(common, job, catalog, /*sensitivities=*/true, terminal));
  if (!options.trace_file.empty()) {
    SEXTANT_RETURN_IF_ERROR(WriteTrace(common, job, catalog, options.trace_file, terminal));
  }
  terminal.Print(common.output == "json" ? PredictionJson(job, prediction)
                                         : PredictionText(job, prediction));
  if (prediction.memory.fits) return ExitCode::kOk;
  terminal.Error(ShortfallMessage(prediction));
  return ExitCode::kModelSaysNo;
}

}  // namespace sextant::cli
