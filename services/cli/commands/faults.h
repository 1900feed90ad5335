// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMANDS_FAULTS_H_
#define SEXTANT_SERVICES_CLI_COMMANDS_FAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/common_options.h"
#include "services/cli/exit_code.h"
#include "services/cli/terminal.h"

namespace sextant::cli {

struct FaultsOptions {
  std::string job_file;
  std::vector<std::string> overrides;
  std::string topology = "own";  // "own", "fat-tree", "torus:8x16x8", or a network case file
  std::string routing = "automatic";
  std::vector<double> fractions = {0.75, 0.5, 0.25, 0};
  int64_t draw_count = 0;  // of random faults; 0: none
  uint64_t seed = 1;
  double dead_probability = 0.001;
  double derated_probability = 0.01;
  bool compare_mappings = false;
};

// `sextant faults`: what each broken part of the interconnect costs a training step, what random
// faults cost, and which mapping bears them best.
absl::StatusOr<ExitCode> StudyFaults(const CommonOptions& common, const FaultsOptions& options,
                                     Terminal& terminal);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMANDS_FAULTS_H_
