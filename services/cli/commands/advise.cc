// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/advise.h"

#include "common/base/status_macros.h"
#include "common/catalog/economics.h"
#include "common/catalog/job_reader.h"
#include "common/wire/convert_advice.h"
#include "services/cli/library.h"
#include "services/cli/remote.h"
#include "services/cli/render/advice.h"
#include "services/cli/render/message_json.h"

namespace sextant::cli {

absl::StatusOr<ExitCode> AdviseJob(const CommonOptions& common, const AdviseOptions& options,
                                   Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(options.job_file));
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  std::vector<std::string> notes;
  SEXTANT_ASSIGN_OR_RETURN(
      const workload::Job job,
      catalog::ReadOpenJob(text, options.job_file == "-" ? "stdin" : options.job_file,
                           options.overrides, catalog, &notes));
  for (const std::string& note : notes) terminal.Note(note);
  advise::AdviceOptions wanted = options.advice;
  SEXTANT_ASSIGN_OR_RETURN(wanted.economics, catalog::DefaultEconomics(catalog));
  advise::Advice advice;
  if (common.server.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(const auto parameters, ParametersInUse(common, catalog, terminal));
    SEXTANT_ASSIGN_OR_RETURN(advice, advise::Advise(job, wanted, parameters));
  } else {
    SEXTANT_ASSIGN_OR_RETURN(advice, ConnectedClient(common, terminal).Advise(job, wanted));
  }
  terminal.Print(common.output == "json"  ? MessageJson(wire::ToProto(advice))
                 : common.output == "env" ? AdviceEnvironment(job, advice)
                                          : AdviceText(job, advice));
  if (advice.feasible) return ExitCode::kOk;
  terminal.Error(advice.reason);
  return ExitCode::kModelSaysNo;
}

}  // namespace sextant::cli
