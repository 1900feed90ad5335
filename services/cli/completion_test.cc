// SPDX-License-Identifier: Apache-2.0
#include "services/cli/completion.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::cli {
namespace {

using testing::HasSubstr;

TEST(CompletionScript, EveryShellKnowsEveryVerbAndOption) {
  const std::vector<CompletedVerb> verbs = {
      {.name = "predict", .description = "What will a job do", .options = {"--set"}},
      {.name = "catalog", .description = "It's a list", .words = {"list", "show"}}};
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    const std::string script = CompletionScript(shell, verbs);
    for (const char* word : {"predict", "catalog", "list", "show", "set"}) {
      EXPECT_THAT(script, HasSubstr(word));
    }
  }
}

TEST(CompletionScript, QuotesDescriptions) {
  const std::vector<CompletedVerb> verbs = {{.name = "x", .description = "it's $(unsafe)"}};
  EXPECT_THAT(CompletionScript(Shell::kFish, verbs), HasSubstr("'it'\\''s $(unsafe)'"));
}

}  // namespace
}  // namespace sextant::cli
