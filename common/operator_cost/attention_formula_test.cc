// SPDX-License-Identifier: Apache-2.0
#include "common/operator_cost/attention_formula.h"

#include "common/operator_cost/test_accelerators.h"
#include "gtest/gtest.h"

namespace sextant::operator_cost {
namespace {

// Only blocks, walks and launches cost anything: bandwidths and rates are as stated, and the
// queries are small.
DecodeParameters<double> BlocksOnly(double blocks_per_sm) {
  return {.hbm_efficiency = 1,
          .compute_efficiency = 1,
          .query_efficiency = 1,
          .key_seconds = 20e-9,
          .block_seconds = 4e-6,
          .tail = 0,
          .blocks_per_sm = blocks_per_sm,
          .combine_seconds = 5e-6,
          .split_seconds = 0.2e-6,
          .pack_seconds = 3e-6,
          .wide_group_unshared = 0,
          .fixed_seconds = 7e-6};
}

double DecodeSeconds(int64_t batch_size, int64_t key_tokens, int64_t heads, int64_t kv_heads,
                     const DecodeParameters<double>& p) {
  const AttentionShape shape{.phase = AttentionPhase::kDecode,
                             .batch_size = batch_size,
                             .query_tokens = 1,
                             .key_tokens = key_tokens,
                             .head_count = heads,
                             .kv_head_count = kv_heads,
                             .head_size = 128};
  return DecodeCost(shape, Precision::kBf16, TestA100(), p).seconds;
}

TEST(DecodeCost, OfAnUnsplitShortGridIsOneBlocksWalk) {
  // 8 blocks, 64 tiles of 128 keys each: 7 us + 4 us + 63 x 128 x 20 ns = 172.28 us, and 8 heads'
  // query and result over 2 TB/s: 2 ns.
  EXPECT_NEAR(DecodeSeconds(1, 8192, 8, 8, BlocksOnly(0)), 172.28e-6, 0.01e-6);
}

TEST(DecodeCost, OfASplitCacheIsAShorterWalkAndACombination) {
  // 108 SMs, 2 groups: 54 splits of 64 tiles make 64 / 54 tiles a block:
  // 7 + 4 + (64 / 54 - 1) x 2.56 + 5 + 53 x 0.2 us = 27.074 us; 16 queries and results: 4 ns.
  EXPECT_NEAR(DecodeSeconds(1, 8192, 16, 2, BlocksOnly(1)), 27.074e-6, 0.01e-6);
}

TEST(DecodeCost, GroupsArePackedWhereABatchHasSeveral) {
  const double one = DecodeSeconds(1, 128, 32, 4, BlocksOnly(0));
  EXPECT_NEAR(DecodeSeconds(2, 128, 32, 4, BlocksOnly(0)) - one, 3e-6, 0.05e-6);
  EXPECT_NEAR(DecodeSeconds(2, 128, 32, 1, BlocksOnly(0)), one, 0.05e-6);
  EXPECT_NEAR(DecodeSeconds(2, 128, 4, 4, BlocksOnly(0)), one, 0.05e-6);
}

TEST(DecodeCost, WaitsForEachStartedWaveOfBlocks) {
  // 108 blocks fit at once; the 109th adds a wave of 4 us.
  const double full = DecodeSeconds(108, 1, 1, 1, BlocksOnly(0));
  EXPECT_NEAR(DecodeSeconds(109, 1, 1, 1, BlocksOnly(0)) - full, 4e-6, 0.01e-6);
  EXPECT_NEAR(DecodeSeconds(216, 1, 1, 1, BlocksOnly(0)) - full, 4e-6, 0.05e-6);
}

TEST(DecodeCost, OfAWideGroupWithoutASharingKernelIsThatOfItsHeads) {
  DecodeParameters<double> p = BlocksOnly(0);
  p.wide_group_unshared = 1;
  // 54 x 64 heads: 32 blocks an SM instead of one, and 0.44 us for 0.88 MB more of queries and
  // results.
  EXPECT_NEAR(DecodeSeconds(54, 1, 64, 1, p) - DecodeSeconds(54, 1, 32, 1, p), 124.44e-6, 0.1e-6);
}

}  // namespace
}  // namespace sextant::operator_cost
