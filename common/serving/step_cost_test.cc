// SPDX-License-Identifier: Apache-2.0
#include "common/serving/step_cost.h"

#include "gtest/gtest.h"

namespace sextant::serving {
namespace {

TEST(Line, IsStraightBetweenItsPointsAndBeyondTheLast) {
  const Line line({1, 2, 4}, {10, 20, 60});
  EXPECT_DOUBLE_EQ(line.At(0), 10);
  EXPECT_DOUBLE_EQ(line.At(1.5), 15);
  EXPECT_DOUBLE_EQ(line.At(3), 40);
  EXPECT_DOUBLE_EQ(line.At(6), 100);
  EXPECT_DOUBLE_EQ(Line({5}, {7}).At(100), 7);
  EXPECT_DOUBLE_EQ(Line().At(1), 0);
}

// z = x y is bilinear: the plane gives it back everywhere inside, and straight on beyond.
TEST(Plane, IsBilinear) {
  const Plane plane({1, 3, 5}, {2, 4}, {2, 4, 6, 12, 10, 20});
  for (const double x : {1.0, 2.0, 3.7, 5.0, 8.0}) {
    for (const double y : {2.0, 2.5, 4.0, 6.0}) {
      EXPECT_NEAR(plane.At(x, y), x * y, 1e-12) << x << " " << y;
    }
  }
  EXPECT_DOUBLE_EQ(plane.At(0, 0), 2);
}

StepTables Tables() {
  StepTables t;
  t.prompt_pass = Line({0, 100}, {0, 1});
  t.decode_pass = Line({0, 100}, {0, 0.5});
  t.engine_step = 0.01;
  t.engine_prefill = 0.1;
  t.engine_per_sequence = 0.001;
  return t;
}

TEST(StepCost, AddsWhatTheEngineDoesOutsideItsKernels) {
  const StepCost cost(Tables());
  EXPECT_NEAR(cost.Seconds({.prompt_tokens = 100}), 1 + 0.01 + 0.1, 1e-12);
  EXPECT_NEAR(cost.Seconds({.decode_sequences = 10, .decode_tokens = 10}), 0.05 + 0.01 + 0.01, 1e-12);
  EXPECT_NEAR(cost.Seconds({.prompt_tokens = 90, .decode_sequences = 10, .decode_tokens = 10}), 1 + 0.01 + 0.1 + 0.01,
              1e-12);
}

TEST(StepCost, TheHostHidesBehindTheDeviceOrTheDeviceBehindTheHost) {
  StepTables t = Tables();
  t.dispatch = 0.3;
  EXPECT_NEAR(StepCost(t).Seconds({.decode_sequences = 10, .decode_tokens = 10}), 0.3 + 0.02, 1e-12);
  EXPECT_NEAR(StepCost(t).Seconds({.decode_sequences = 100, .decode_tokens = 100}), 0.5 + 0.11, 1e-12);
}

// Ten sequences of four tokens each: the pass of 40 tokens, and half of it again for the drafts.
TEST(StepCost, DraftsCostTheirShareOfThePassThatChecksThem) {
  StepTables t = Tables();
  const StepLoad load{.decode_sequences = 10, .decode_tokens = 40};
  EXPECT_NEAR(StepCost(t).Seconds(load), 0.2 + 0.02, 1e-12);
  t.draft_share = 0.5;
  EXPECT_NEAR(StepCost(t).Seconds(load), 0.3 + 0.02, 1e-12);
  EXPECT_NEAR(StepCost(t).Seconds({.prompt_tokens = 100}), StepCost(Tables()).Seconds({.prompt_tokens = 100}), 1e-12);
}

TEST(StepCost, AJobBesideItStretchesEveryStep) {
  StepTables t = Tables();
  t.stretch = 1 / (1 - 0.2);
  const StepLoad load{.prompt_tokens = 10, .decode_sequences = 10, .decode_tokens = 10};
  EXPECT_NEAR(StepCost(t).Seconds(load), 1.25 * StepCost(Tables()).Seconds(load), 1e-12);
}

// Short chunks together fill the device; a long one alone does not get faster by company.
TEST(StepCost, ChunksShareAnAttentionKernel) {
  StepTables t;
  t.prompt_attention_floor = 0.1;
  const StepCost cost(t);
  EXPECT_NEAR(cost.Seconds({.prompt_tokens = 8,
                            .prompt_attention_seconds = 0.4,
                            .longest_prompt_attention_seconds = 0.2}),
              0.5, 1e-12);
  EXPECT_NEAR(cost.Seconds({.prompt_tokens = 8,
                            .prompt_attention_seconds = 0.05,
                            .longest_prompt_attention_seconds = 0.2}),
              0.2, 1e-12);
}

}  // namespace
}  // namespace sextant::serving
