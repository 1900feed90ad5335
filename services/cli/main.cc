// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "services/cli/command_line.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  sextant::cli::Terminal terminal(std::cin, std::cout, std::cerr);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const sextant::cli::ExitCode code = sextant::cli::RunCommandLine(
      arguments, [](const char* name) { return std::getenv(name); }, terminal);
  std::cout.flush();
  return static_cast<int>(code);
}
