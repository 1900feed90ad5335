// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_SWEEP_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_SWEEP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct SweepOptions {
  std::string sweep_file;
  std::vector<std::string> overrides;  // of the job: "gpu_count=64"
  std::optional<int> top_count;        // over the file's
  std::string shard = "0/1";           // "I/N", from 0
  int thread_count = 0;                // 0: one per core
  std::string html_file;               // where to write the page; empty: nowhere
};

// `sextant sweep run`: kModelSaysNo, with the nearest misses printed, where nothing meets the
// limits; kInterrupted, with what is done printed, after Ctrl-C.
absl::StatusOr<ExitCode> RunSweepFile(const CommonOptions& common, const SweepOptions& options,
                                      Terminal& terminal);

// `sextant sweep merge`: the answer of the whole sweep from the JSON answers of its shards.
// `html_file` as SweepOptions.
absl::StatusOr<ExitCode> MergeSweeps(const CommonOptions& common,
                                     const std::vector<std::string>& files,
                                     const std::string& html_file, Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_SWEEP_H_
