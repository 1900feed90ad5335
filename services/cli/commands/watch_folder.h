// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_WATCH_FOLDER_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_WATCH_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/measured.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct WatchFolderOptions {
  std::string directory;
  MeasuredContext context;           // of files that are no tables of measurements
  std::vector<std::string> targets;  // servers to push to, without --server
  std::string output_file;           // where each published set goes; empty: nowhere
  double cool_down_seconds = 3600;   // between jobs that start by themselves, without --server
  bool once = false;                 // end when all that is there now has been dealt with
};

// `sextant calibrate --watch DIR`: takes in every file that is written into the folder, as soon as
// it stops growing; FILE.context says what FILE does not. With --server the calibration service
// there does the rest. Without, this process does: its store is DIR/.sextant, measurements are
// compared with the set in service, and drift starts a calibration that is pushed to the targets.
// Runs until it is interrupted.
absl::StatusOr<ExitCode> WatchFolder(const CommonOptions& common, const WatchFolderOptions& options,
                                     Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_WATCH_FOLDER_H_
