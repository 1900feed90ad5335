// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMPLETION_H_
#define SEXTANT_SERVICES_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sextant::cli {

// One verb as a shell completes it.
struct CompletedVerb {
  std::string name;
  std::string description;           // one line
  std::vector<std::string> words;    // subcommands and fixed arguments
  std::vector<std::string> options;  // "--output", ...
};

enum class Shell { kBash, kZsh, kFish };

// A script that the shell sources, for example from ~/.bashrc:
// `source <(sextant completion bash)`. Files are completed wherever a verb takes them.
std::string CompletionScript(Shell shell, const std::vector<CompletedVerb>& verbs);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMPLETION_H_
