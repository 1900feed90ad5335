// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/inference_formula.h"

#include "common/orchestrator/graph.h"
#include "gtest/gtest.h"

namespace sextant::orchestrator {
namespace {

constexpr InferenceParameters<double> kNoOverhead = {.step_seconds = 0,
                                                     .prefill_seconds = 0,
                                                     .prompt_token_seconds = 0,
                                                     .sequence_seconds = 0,
                                                     .dispatch_seconds = 0,
                                                     .pass_tokens = 2048,
                                                     .tensor_parallel_factor = 1,
                                                     .fused_attention = 1};

PricedInference FourStages() {
  PricedInference job;
  job.prefill = {.matrix_seconds = 4, .kernel_count = 400};
  job.decode = {.matrix_seconds = 0.4, .kernel_count = 400};
  job.contexts = {{100, 0}};
  job.decode_step_count = 1;
  job.slowest_stage_share = 0.25;
  job.prefill_tokens = 2048;
  return job;
}

// Twelve micro-batches over four stages of one second each: 4 s for the first, 1 s for each other.
TEST(PrefillTimes, MicroBatchesFollowOneAnotherThroughTheStages) {
  PricedInference job = FourStages();
  EXPECT_DOUBLE_EQ(PrefillTimes(job, kNoOverhead).Total(), 4);
  job.prefill_micro_batch_count = 12;
  EXPECT_DOUBLE_EQ(PrefillTimes(job, kNoOverhead).Total(), 4 + 11 * 1.0);
}

TEST(PrefillTimes, TokensBeyondWhatThePassIsSizedForCostTheEngine) {
  PricedInference job = FourStages();
  InferenceParameters<double> p = kNoOverhead;
  p.prompt_token_seconds = 1e-4;
  EXPECT_DOUBLE_EQ(PrefillTimes(job, p).Total(), 4);
  job.prefill_tokens = 12048;
  EXPECT_DOUBLE_EQ(PrefillTimes(job, p).Total(), 5);
}

// A token waits for its own pass through four stages; eight micro-batches keep each stage busy for
// eight passes of its own.
TEST(DecodeTimes, AStageIsBusyOrATokenWaits) {
  PricedInference job = FourStages();
  for (const int64_t few : {1, 2, 4}) {
    job.decode_micro_batch_count = few;
    EXPECT_DOUBLE_EQ(DecodeTimes(job, kNoOverhead).Total(), 0.4);
  }
  job.decode_micro_batch_count = 8;
  EXPECT_DOUBLE_EQ(DecodeTimes(job, kNoOverhead).Total(), 0.8);
}

// Contexts 11..20 with a line from 1 s to 10 s: 55 s over ten steps.
TEST(DecodeTimes, AttentionIsSummedExactlyOverAGrowingContext) {
  PricedInference job = FourStages();
  job.decode_step_count = 10;
  for (const std::vector<PricedContext>& points :
       {std::vector<PricedContext>{{11, 1}, {20, 10}},
        std::vector<PricedContext>{{11, 1}, {13, 3}, {14, 4}, {20, 10}}}) {
    job.contexts = points;
    EXPECT_NEAR(DecodeTimes(job, kNoOverhead).attention, 55, 1e-12);
  }
}

TEST(DecodeTimes, DispatchShowsOnlyWhereTheDeviceIsFaster) {
  PricedInference job = FourStages();
  InferenceParameters<double> p = kNoOverhead;
  p.dispatch_seconds = 0.4 / 400;
  EXPECT_DOUBLE_EQ(DecodeTimes(job, p).framework, 0);
  p.dispatch_seconds = 0.5 / 400;
  EXPECT_NEAR(DecodeTimes(job, p).Total(), 0.5, 1e-12);
}

TEST(MicroBatchSequences, SplitsEvenlyThenHalvesToTheTokenBudget) {
  EXPECT_EQ(MicroBatchSequences(64, 4096, 1, 2048), 64);  // nothing to overlap with
  EXPECT_EQ(MicroBatchSequences(64, 1, 4, 2048), 16);
  EXPECT_EQ(MicroBatchSequences(64, 1, 3, 2048), 64);    // no even share
  EXPECT_EQ(MicroBatchSequences(16, 128, 3, 2048), 16);  // 2048 tokens fit
  EXPECT_EQ(MicroBatchSequences(32, 128, 3, 2048), 16);
  EXPECT_EQ(MicroBatchSequences(256, 60, 3, 2048), 32);  // 64 x 60 = 3840 does not
  EXPECT_EQ(MicroBatchSequences(8, 100000, 3, 2048), 1);
  for (int64_t sequences = 1; sequences <= 48; ++sequences) {
    for (const int64_t stages : {1, 2, 3, 4, 8}) {
      const int64_t local = MicroBatchSequences(sequences, 200, stages, 2048);
      EXPECT_EQ(sequences % local, 0) << sequences << " over " << stages;
    }
  }
}

}  // namespace
}  // namespace sextant::orchestrator
