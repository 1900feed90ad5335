// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_PREDICT_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_PREDICT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/catalog/catalog.h"
#include "common/orchestrator/prediction.h"
#include "common/workload/job.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct PredictOptions {
  std::string job_file;
  std::vector<std::string> overrides;  // "plan.tensor_parallel_size=4"
  std::string trace_file;              // empty: none
};

// The prediction of `job`, embedded or by --server: whatever the common options say.
absl::StatusOr<orchestrator::Prediction> PredictionOf(const CommonOptions& common,
                                                      const workload::Job& job,
                                                      const catalog::Catalog& catalog,
                                                      bool sensitivities, Terminal& terminal);

// `sextant predict`: kModelSaysNo, with the answer printed, where the job does not fit.
absl::StatusOr<ExitCode> PredictJob(const CommonOptions& common, const PredictOptions& options,
                                    Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_PREDICT_H_
