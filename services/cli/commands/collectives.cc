// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/collectives.h"

#include "common/base/status_macros.h"
#include "common/catalog/concurrent_reader.h"
#include "services/cli/library.h"
#include "services/cli/remote.h"
#include "services/cli/render/collectives.h"

namespace sextant::cli {
namespace {

using collectives::ConcurrentCollectives;

absl::StatusOr<CollectivesAnswer> Answer(const CommonOptions& common,
                                         const catalog::Catalog& catalog,
                                         const ConcurrentCollectives& question,
                                         Terminal& terminal) {
  CollectivesAnswer answer;
  if (!common.server.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(
        answer.times,
        ConnectedClient(common, terminal).EstimateConcurrent(question, &answer.parameter_set));
    return answer;
  }
  SEXTANT_ASSIGN_OR_RETURN(const auto set, ParametersInUse(common, catalog, terminal));
  answer.parameter_set = set->version();
  SEXTANT_ASSIGN_OR_RETURN(
      answer.times,
      collectives::TimeConcurrent(question, collectives::ResolveCollectiveParameters(
                                                *set, question.cluster, question.profile)));
  return answer;
}

}  // namespace

absl::StatusOr<ExitCode> TimeCollectives(const CommonOptions& common, const std::string& file,
                                         Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(file));
  SEXTANT_ASSIGN_OR_RETURN(
      const ConcurrentCollectives question,
      catalog::ReadConcurrentCollectives(text, file == "-" ? "stdin" : file, catalog));
  const absl::StatusOr<CollectivesAnswer> answered = Answer(common, catalog, question, terminal);
  if (absl::IsFailedPrecondition(answered.status())) {
    terminal.Error(answered.status().message());
    return ExitCode::kModelSaysNo;
  }
  SEXTANT_ASSIGN_OR_RETURN(const CollectivesAnswer answer, answered);
  terminal.Print(common.output == "json"  ? CollectivesJson(question, answer)
                 : common.output == "csv" ? CollectivesCsv(question, answer)
                                          : CollectivesText(question, answer));
  return ExitCode::kOk;
}

}  // namespace sextant::cli
