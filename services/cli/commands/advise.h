// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_ADVISE_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_ADVISE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/advise/advise.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct AdviseOptions {
  std::string job_file;
  std::vector<std::string> overrides;  // "training.global_batch_size=512"
  advise::AdviceOptions advice;
};

// `sextant advise`: kModelSaysNo, with the nearest layout printed, where nothing fits or meets the
// limits.
absl::StatusOr<ExitCode> AdviseJob(const CommonOptions& common, const AdviseOptions& options,
                                   Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_ADVISE_H_
