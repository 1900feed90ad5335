// SPDX-License-Identifier: Apache-2.0
#include "common/operator_cost/operator_cost.h"

#include <cmath>
#include <limits>
#include <string>

#include "common/base/violations.h"
#include "common/operator_cost/operator_parameters.h"
#include "common/operator_cost/random_operators.h"
#include "common/operator_cost/test_accelerators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::operator_cost {
namespace {

using ::testing::HasSubstr;

OperatorParameters<double> Initial(const hardware::Accelerator& accelerator) {
  return ResolveOperatorParameters(parameters::ParameterSet(), accelerator, "");
}

OperatorEstimate Estimate(const Operator& op, const hardware::Accelerator& accelerator) {
  return EstimateOperator(op, accelerator, Initial(accelerator));
}

Operator Gemm(int64_t m, int64_t n, int64_t k, Precision precision = Precision::kBf16) {
  return {GemmShape{.m = m, .n = n, .k = k, .weight_precision = precision}, precision};
}

Operator Decode(int64_t batch_size, int64_t key_tokens, int64_t heads, int64_t kv_heads) {
  return {AttentionShape{.phase = AttentionPhase::kDecode,
                         .batch_size = batch_size,
                         .query_tokens = 1,
                         .key_tokens = key_tokens,
                         .head_count = heads,
                         .kv_head_count = kv_heads,
                         .head_size = 128},
          Precision::kBf16};
}

TEST(OperatorEstimate, IsFinitePositiveAndNeverBelowTheRoofline) {
  RandomOperators random(1);
  for (const hardware::Accelerator& accelerator : {TestA100(), TestH100()}) {
    const OperatorParameters<double> parameters = Initial(accelerator);
    for (int i = 0; i < 20000; ++i) {
      const Operator op = random.Any();
      ASSERT_TRUE(ValidateOperator(op, accelerator).ok())
          << ValidateOperator(op, accelerator).message();
      const OperatorEstimate estimate = EstimateOperator(op, accelerator, parameters);
      ASSERT_TRUE(std::isfinite(estimate.seconds)) << i;
      ASSERT_GT(estimate.seconds, 0) << i;
      ASSERT_GT(estimate.hbm_bytes, 0) << i;
      ASSERT_GE(estimate.seconds, estimate.roofline_seconds) << i;
      ASSERT_GE(estimate.roofline_seconds,
                estimate.hbm_bytes / accelerator.hbm_bandwidth_bytes_per_second);
    }
  }
}

// Tiles and waves make steps, but twice the work is never cheaper.
TEST(GemmSeconds, NeverFallWhenADimensionDoubles) {
  RandomOperators random(2);
  const hardware::Accelerator accelerator = TestH100();
  const OperatorParameters<double> parameters = Initial(accelerator);
  for (int i = 0; i < 5000; ++i) {
    const Operator op = random.Gemm();
    const double seconds = EstimateOperator(op, accelerator, parameters).seconds;
    for (int dimension = 0; dimension < 3; ++dimension) {
      Operator larger = op;
      GemmShape& shape = std::get<GemmShape>(larger.shape);
      (dimension == 0 ? shape.m : dimension == 1 ? shape.n : shape.k) *= 2;
      const double larger_seconds = EstimateOperator(larger, accelerator, parameters).seconds;
      ASSERT_GE(larger_seconds, 0.97 * seconds)
          << dimension << " of " << shape.m << " " << shape.n << " " << shape.k;
    }
  }
}

TEST(MemoryBoundSeconds, NeverFallWithMoreRows) {
  RandomOperators random(3);
  const hardware::Accelerator accelerator = TestA100();
  const OperatorParameters<double> parameters = Initial(accelerator);
  for (int i = 0; i < 5000; ++i) {
    Operator op = random.MemoryBound();
    const double seconds = EstimateOperator(op, accelerator, parameters).seconds;
    std::get<MemoryBoundShape>(op.shape).rows += 1;
    ASSERT_GE(EstimateOperator(op, accelerator, parameters).seconds, seconds * (1 - 1e-12));
  }
}

// 8192^3 x 2 flop / 312e12 = 3.52 ms at peak; kernels reach 70 to 95 % of it.
TEST(GemmSeconds, OfALargeSquareFollowTheMatrixRate) {
  const OperatorEstimate estimate = Estimate(Gemm(8192, 8192, 8192), TestA100());
  EXPECT_NEAR(estimate.roofline_seconds, 3.52e-3, 0.01e-3);
  EXPECT_LT(estimate.seconds, 3.52e-3 / 0.7);
  EXPECT_GT(estimate.seconds, 3.52e-3 / 0.95);
  EXPECT_EQ(estimate.binding, Binding::kMatrixRate);
}

// A matrix times a vector reads the matrix once: 8192 x 8192 x 2 B = 134 MB, 40 us at 3.35 TB/s.
TEST(GemmSeconds, OfAMatrixTimesAVectorFollowTheMemory) {
  const OperatorEstimate estimate = Estimate(Gemm(1, 8192, 8192), TestH100());
  EXPECT_NEAR(estimate.roofline_seconds, 40.1e-6, 0.2e-6);
  EXPECT_GE(estimate.seconds, 40e-6);
  EXPECT_LT(estimate.seconds, 65e-6);
  EXPECT_EQ(estimate.binding, Binding::kHbmBandwidth);
}

TEST(GemmSeconds, OfAVocabularyHeadBeyondAnyTableAreFiniteAndExtrapolated) {
  const OperatorEstimate estimate = Estimate(Gemm(1, 262144, 16384), TestH100());
  EXPECT_TRUE(std::isfinite(estimate.seconds));
  // 16384 x 262144 x 2 B / 3.35 TB/s = 2.56 ms.
  EXPECT_GT(estimate.seconds, 2.56e-3);
  EXPECT_LT(estimate.seconds, 5e-3);
  EXPECT_TRUE(estimate.extrapolated);
}

TEST(GemmSeconds, OfWeightOnlyQuantisationReadFewerBytes) {
  Operator op = Gemm(1, 8192, 8192);
  const double full = Estimate(op, TestA100()).hbm_bytes;
  std::get<GemmShape>(op.shape).weight_precision = Precision::kInt4;
  EXPECT_NEAR(Estimate(op, TestA100()).hbm_bytes / full, 0.25, 0.01);
}

// 132 SMs and tiles of 128 x 256: one tile more than a whole wave costs a new, nearly empty wave.
TEST(GemmSeconds, StepWhereAWaveFills) {
  const double full = Estimate(Gemm(128 * 132, 256, 8192), TestH100()).seconds;
  const double spilled = Estimate(Gemm(128 * 133, 256, 8192), TestH100()).seconds;
  EXPECT_GT(spilled, full * 1.05);
}

// The keys and values of 8 kv heads, not of 64 query heads: 32 x 8192 x 2 x 8 x 128 x 2 B.
TEST(DecodeTraffic, CountsKeyValueHeads) {
  const double bytes = Estimate(Decode(32, 8192, 64, 8), TestH100()).hbm_bytes;
  const double kv_bytes = 32.0 * 8192 * 2 * 8 * 128 * 2;
  const double query_and_output_bytes = 2.0 * 32 * 64 * 128 * 2;
  EXPECT_DOUBLE_EQ(bytes, kv_bytes + query_and_output_bytes);
  const double all_heads = Estimate(Decode(32, 8192, 64, 64), TestH100()).hbm_bytes;
  EXPECT_NEAR(all_heads / bytes, 8, 0.02);
}

// Llama-2-7B, fp16: 32 layers x 2 x 32 heads x 128 x 2 B = 524 288 B of cache per token.
TEST(DecodeTraffic, OfOneTokenIsTheCacheOfOneToken) {
  const double one = Estimate(Decode(1, 1001, 32, 32), TestH100()).hbm_bytes -
                     Estimate(Decode(1, 1000, 32, 32), TestH100()).hbm_bytes;
  EXPECT_DOUBLE_EQ(32 * one, 524288);
}

// The absorbed latent is read once for all heads: 4096 x 576 x 2 B.
TEST(DecodeTraffic, OfLatentAttentionIsTheLatentOnce) {
  Operator op = Decode(1, 4096, 128, 1);
  std::get<AttentionShape>(op.shape).latent_size = 576;
  const double bytes = Estimate(op, TestH100()).hbm_bytes;
  EXPECT_DOUBLE_EQ(bytes, 4096.0 * 576 * 2 + 2.0 * 128 * 128 * 2);
}

TEST(PrefillFlops, OfACausalMaskAreHalf) {
  Operator op{AttentionShape{.phase = AttentionPhase::kPrefill,
                             .batch_size = 1,
                             .query_tokens = 4096,
                             .key_tokens = 4096,
                             .head_count = 32,
                             .kv_head_count = 32,
                             .head_size = 128},
              Precision::kBf16};
  const OperatorEstimate causal = Estimate(op, TestA100());
  std::get<AttentionShape>(op.shape).causal = false;
  const OperatorEstimate full = Estimate(op, TestA100());
  EXPECT_DOUBLE_EQ(full.flop_count, 4.0 * 4096 * 4096 * 32 * 128);
  EXPECT_NEAR(causal.flop_count / full.flop_count, 0.5, 0.001);
  EXPECT_LT(causal.seconds, 0.7 * full.seconds);
}

TEST(BackwardFlops, AreTwoAndAHalfTimesTheForward) {
  Operator op{AttentionShape{.phase = AttentionPhase::kPrefill,
                             .batch_size = 4,
                             .query_tokens = 8192,
                             .key_tokens = 8192,
                             .head_count = 16,
                             .kv_head_count = 16,
                             .head_size = 128},
              Precision::kBf16};
  const OperatorEstimate forward = Estimate(op, TestA100());
  std::get<AttentionShape>(op.shape).phase = AttentionPhase::kBackward;
  const OperatorEstimate backward = Estimate(op, TestA100());
  EXPECT_DOUBLE_EQ(backward.flop_count, 2.5 * forward.flop_count);
  EXPECT_GT(backward.seconds, 2.2 * forward.seconds);
}

ExpertFfnShape Mixtral(int64_t token_count) {
  return {.token_count = token_count,
          .hidden_size = 4096,
          .ffn_size = 14336,
          .expert_count = 8,
          .experts_per_token = 2};
}

// Mixtral: a token uses two experts of 3 x 4096 x 14336 weights at any batch; one token reads two
// experts' weights, 512 read all eight.
TEST(ExpertFfn, FlopsFollowTokensAndWeightBytesFollowTouchedExperts) {
  const OperatorEstimate one = Estimate({Mixtral(1), Precision::kBf16}, TestH100());
  const OperatorEstimate many = Estimate({Mixtral(512), Precision::kBf16}, TestH100());
  const double expert_weights = 3.0 * 4096 * 14336;
  EXPECT_DOUBLE_EQ(one.flop_count, 2 * 2 * expert_weights);
  EXPECT_DOUBLE_EQ(many.flop_count, 512 * 2 * 2 * expert_weights);
  EXPECT_NEAR(one.hbm_bytes / (2 * 2 * expert_weights), 1, 0.01);
  EXPECT_NEAR(many.hbm_bytes / (2 * 8 * expert_weights), 1, 0.01);
}

TEST(ExpertFfn, ImbalanceCostsTime) {
  ExpertFfnShape shape = Mixtral(8192);
  shape.expert_parallel_size = 8;
  const double even = Estimate({shape, Precision::kBf16}, TestH100()).seconds;
  shape.imbalance = 2;
  EXPECT_GT(Estimate({shape, Precision::kBf16}, TestH100()).seconds, 1.5 * even);
}

TEST(ValidateOperator, NamesEveryViolation) {
  Operator op = Gemm(0, -3, int64_t{1} << 41, Precision::kFp8);
  const absl::Status status = ValidateOperator(op, TestA100());
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("gemm.m: is 0"));
  EXPECT_THAT(message, HasSubstr("gemm.n: is -3"));
  EXPECT_THAT(message, HasSubstr("gemm.k: is 2199023255552"));
  EXPECT_THAT(message, HasSubstr("precision: is fp8 but test-a100 multiplies in"));
}

// 2^31 in each dimension overflows 64 bits when multiplied as integers.
TEST(ValidateOperator, RefusesProductsBeyondCounting) {
  const int64_t huge = int64_t{1} << 31;
  EXPECT_THAT(std::string(ValidateOperator(Gemm(huge, huge, huge), TestA100()).message()),
              HasSubstr("product"));
  EXPECT_FALSE(ValidateOperator(Decode(huge, huge, 8, 8), TestA100()).ok());
}

TEST(ValidateOperator, RefusesHeadsThatDoNotDivide) {
  EXPECT_THAT(std::string(ValidateOperator(Decode(1, 10, 28, 3), TestA100()).message()),
              HasSubstr("attention.kv_head_count: is 3 but must divide head_count 28"));
}

TEST(ValidateOperator, RefusesImbalanceThatIsNotANumber) {
  ExpertFfnShape shape = Mixtral(8);
  shape.imbalance = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(std::string(ValidateOperator({shape, Precision::kBf16}, TestA100()).message()),
              HasSubstr("expert_ffn.imbalance"));
}

TEST(EstimateOperators, AnswerInOrderOrNameEveryBadOne) {
  const hardware::Accelerator accelerator = TestA100();
  const auto parameters = Initial(accelerator);
  const std::vector<Operator> good = {Gemm(128, 128, 128), Decode(1, 100, 8, 8)};
  const auto estimates = EstimateOperators(good, accelerator, parameters);
  ASSERT_TRUE(estimates.ok());
  ASSERT_EQ(estimates->size(), 2u);
  EXPECT_EQ((*estimates)[1], EstimateOperator(good[1], accelerator, parameters));

  const std::vector<Operator> bad = {Gemm(0, 1, 1), Gemm(1, 1, 1), Gemm(1, 0, 1)};
  const absl::Status status = EstimateOperators(bad, accelerator, parameters).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("operators[0].gemm.m"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("operators[2].gemm.n"));
  EXPECT_EQ(base::ViolationsOf(status).size(), 2u);
}

TEST(BindingName, IsSnakeCase) {
  EXPECT_EQ(BindingName(Binding::kMatrixRate), "matrix_rate");
  EXPECT_EQ(BindingName(Binding::kVectorRate), "vector_rate");
}

}  // namespace
}  // namespace sextant::operator_cost
