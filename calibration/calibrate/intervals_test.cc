// SPDX-License-Identifier: Apache-2.0
#include "calibration/calibrate/intervals.h"

#include <cmath>
#include <memory>
#include <vector>

#include "common/operator_cost/operator_parameters.h"
#include "common/parameters/spread.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

constexpr char kAccelerator[] = "h100-sxm5-80gb";
const std::string& Block() {
  static const std::string block(operator_cost::BlockName(static_cast<operator_cost::Block>(0)));
  return block;
}

// `count` residuals spread evenly from `low` to `high`.
std::vector<Residual> Even(const std::string& profile, int count, double low, double high) {
  std::vector<Residual> residuals;
  for (int i = 0; i < count; ++i) {
    residuals.push_back({.owner = kAccelerator,
                         .accelerator = kAccelerator,
                         .profile = profile,
                         .block = Block(),
                         .log_ratio = low + (high - low) * i / (count - 1)});
  }
  return residuals;
}

parameters::Spread Found(const parameters::ParameterSet& set, const std::string& profile) {
  return parameters::FindSpread(set, {kAccelerator, false}, profile, Block(),
                                operator_cost::kUnmeasuredKernel);
}

TEST(Intervals, HoldTheirShareOfManyRows) {
  const std::vector<Residual> own = Even("cublas", 4000, -0.1, 0.3);
  const parameters::Spread spread = Found(WithSpreads({}, own, {}), "cublas");
  int held = 0;
  for (const Residual& r : own) {
    held += spread.low_log <= r.log_ratio && r.log_ratio <= spread.high_log;
  }
  EXPECT_GE(held, 0.90 * static_cast<double>(own.size()));
  EXPECT_LE(held, 0.95 * static_cast<double>(own.size()));
}

TEST(Intervals, AFewSlowRunsDoNotStretchThem) {
  std::vector<Residual> own = Even("cublas", 1000, -0.1, 0.1);
  const parameters::Spread before = Found(WithSpreads({}, own, {}), "cublas");
  for (int i = 0; i < 30; ++i) own[i * 30].log_ratio = 3;  // 3 % of the rows, 20 times slower
  const parameters::Spread after = Found(WithSpreads({}, own, {}), "cublas");
  EXPECT_LT(after.high_log, before.high_log + 0.05);
}

TEST(Intervals, SmallGroupsAreDrawnTowardsTheirBlock) {
  std::vector<Residual> own = Even("cublas", 1000, -0.4, 0.4);
  const std::vector<Residual> few = Even("triton", 3, -0.001, 0.001);
  own.insert(own.end(), few.begin(), few.end());
  const parameters::ParameterSet set = WithSpreads({}, own, {});
  EXPECT_GT(Found(set, "triton").high_log, 0.1);
  EXPECT_LT(Found(set, "triton").high_log, Found(set, "cublas").high_log);
}

TEST(Intervals, SoftwareThatNobodyMeasuredGetsTheSharedSpread) {
  const std::vector<Residual> own = Even("cublas", 500, -0.05, 0.05);
  const std::vector<Residual> unknown = Even("", 500, -0.4, 0.4);
  const parameters::ParameterSet set = WithSpreads({}, own, unknown);
  EXPECT_GT(Found(set, "never-heard-of").high_log, Found(set, "cublas").high_log);
  // And what has no residuals at all keeps its initial one.
  EXPECT_EQ(Found({}, "cublas"), operator_cost::kUnmeasuredKernel);
}

TEST(Intervals, HeldOutResidualsStandForFittedOnesInsideTheDomain) {
  const auto residual = [](const char* key, double log_ratio, bool extrapolated) {
    return Residual{
        .key = key, .block = Block(), .log_ratio = log_ratio, .extrapolated = extrapolated};
  };
  const std::vector<Residual> fitted = {residual("a", 0.1, false), residual("b", 0.1, false),
                                        residual("", 0.1, false)};
  const std::vector<Residual> held_out = {residual("a", 0.2, false), residual("b", 0.2, true)};
  const std::vector<Residual> unseen = Unseen(fitted, held_out);
  ASSERT_EQ(unseen.size(), 3u);
  EXPECT_EQ(unseen[0].log_ratio, 0.2);
  EXPECT_EQ(unseen[1].log_ratio, 0.1);
  EXPECT_EQ(unseen[2].log_ratio, 0.1);
}

}  // namespace
}  // namespace sextant::calibration
