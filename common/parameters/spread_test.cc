// SPDX-License-Identifier: Apache-2.0
#include "common/parameters/spread.h"

#include <cmath>

#include "gtest/gtest.h"

namespace sextant::parameters {
namespace {

TEST(Interval, HoldsThePredictionAndIsLongerOnItsLongerSide) {
  const Interval interval = IntervalAround(2.0, {std::log(0.8), std::log(1.5)}, false);
  EXPECT_NEAR(interval.low, 1.6, 1e-12);   // 0.8 x 2
  EXPECT_NEAR(interval.high, 3.0, 1e-12);  // 1.5 x 2
}

TEST(Interval, IsHalfAsLongAgainInLogarithmsOutsideTheDomain) {
  const Interval interval = IntervalAround(1.0, {-0.2, 0.4}, true);
  EXPECT_NEAR(std::log(interval.low), -0.3, 1e-12);
  EXPECT_NEAR(std::log(interval.high), 0.6, 1e-12);
}

TEST(Spread, IsTheProfilesElseTheSharedOneElseThePrior) {
  AcceleratorParameters chip;
  chip.shared[LowKey("gemm.16bit")] = {-0.3, std::nullopt};
  chip.shared[HighKey("gemm.16bit")] = {0.4, std::nullopt};
  chip.profiles["cublas"][LowKey("gemm.16bit")] = {-0.1, std::nullopt};
  chip.profiles["cublas"][HighKey("gemm.16bit")] = {0.2, std::nullopt};
  const ParameterSet set({.name = "test"}, {{"a100", chip}});
  const ParameterSource a100 = {"a100", false};
  const Spread prior = {-1, 1};
  EXPECT_EQ(FindSpread(set, a100, "cublas", "gemm.16bit", prior), (Spread{-0.1, 0.2}));
  EXPECT_EQ(FindSpread(set, a100, "triton", "gemm.16bit", prior), (Spread{-0.3, 0.4}));
  EXPECT_EQ(FindSpread(set, a100, "cublas", "gemm.fp8", prior), prior);
  EXPECT_EQ(FindSpread(set, {"h100", true}, "cublas", "gemm.16bit", prior), prior);
}

TEST(Measured, IsWhatTookPartInTheFitOfTheBlock) {
  AcceleratorParameters chip;
  chip.measured = {{"gemm.16bit", "a100-pcie", 12}};
  const ParameterSet set({.name = "test"}, {{"a100", chip}});
  EXPECT_TRUE(IsMeasured(set, {"a100", true}, "gemm.16bit", "a100-pcie"));
  EXPECT_FALSE(IsMeasured(set, {"a100", true}, "attention.decode.16bit", "a100-pcie"));
  EXPECT_FALSE(IsMeasured(set, {"a100", true}, "gemm.16bit", "a800"));
  EXPECT_FALSE(IsMeasured(set, {"h100", true}, "gemm.16bit", "a100-pcie"));
}

}  // namespace
}  // namespace sextant::parameters
