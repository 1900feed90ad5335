// SPDX-License-Identifier: Apache-2.0
#include "common/serving/speculation.h"

#include "gtest/gtest.h"

namespace sextant::serving {
namespace {

// One proposal that stands half of the time yields 1.5 tokens; four at 0.8: 1 + 0.8 + 0.64 + 0.512
// + 0.4096.
TEST(TokensPerStep, IsTheGeometricSum) {
  EXPECT_DOUBLE_EQ(TokensPerStep({}), 1);
  EXPECT_DOUBLE_EQ(TokensPerStep({.draft_tokens = 3, .acceptance = 0}), 1);
  EXPECT_DOUBLE_EQ(TokensPerStep({.draft_tokens = 3, .acceptance = 1}), 4);
  EXPECT_DOUBLE_EQ(TokensPerStep({.draft_tokens = 1, .acceptance = 0.5}), 1.5);
  EXPECT_NEAR(TokensPerStep({.draft_tokens = 4, .acceptance = 0.8}), 3.3616, 1e-12);
}

TEST(StepOverPass, AddsOneDraftPassForEachProposal) {
  EXPECT_DOUBLE_EQ(StepOverPass({.draft_tokens = 4, .acceptance = 0.8, .draft_cost = 0.05}), 1.2);
}

TEST(AcceptedTokens, NeverExceedsWhatWasChecked) {
  EXPECT_EQ(AcceptedTokens({.draft_tokens = 4, .acceptance = 0}, 4, 0.9), 0);
  EXPECT_EQ(AcceptedTokens({.draft_tokens = 4, .acceptance = 1}, 3, 0.0), 3);
  EXPECT_EQ(AcceptedTokens({.draft_tokens = 4, .acceptance = 0.9}, 0, 0.999), 0);
  EXPECT_EQ(AcceptedTokens({.draft_tokens = 4, .acceptance = 0.9}, 4, 1 - 1e-16), 4);
}

// The mean over evenly spread draws is that of the formula.
TEST(AcceptedTokens, HasTheMeanOfTheFormula) {
  for (const double acceptance : {0.3, 0.7, 0.9}) {
    const Speculation s{.draft_tokens = 5, .acceptance = acceptance};
    constexpr int kDraws = 20000;
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) {
      sum += static_cast<double>(AcceptedTokens(s, 5, (i + 0.5) / kDraws));
    }
    EXPECT_NEAR(1 + sum / kDraws, TokensPerStep(s), 1e-3);
  }
}

}  // namespace
}  // namespace sextant::serving
