// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_RESILIENCE_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_RESILIENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct ResilienceOptions {
  std::string job_file;
  std::vector<std::string> overrides;
  std::string profile = "llama-3-h100";  // of datasets/reliability, or a file
  int64_t spare_node_count = 0;
  double checkpoint_interval_seconds = 0;  // 0: the best one
  std::optional<double> checkpoint_seconds;  // over what the job's state needs
  std::optional<double> straggler_share;     // over the profile's
};

// `sextant resilience`: what interruptions leave of a training job's throughput.
absl::StatusOr<ExitCode> AnswerResilience(const CommonOptions& common,
                                          const ResilienceOptions& options, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_RESILIENCE_H_
