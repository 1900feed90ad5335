// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/block_fit.h"

#include <cmath>
#include <limits>
#include <string>

#include "common/base/violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

using parameters::ParameterDescriptor;
using ::testing::HasSubstr;

// seconds = fixed + bytes / rate
struct Line {
  double bytes;
  template <typename T>
  bool operator()(const T* p, T* seconds) const {
    *seconds = p[0] + bytes / p[1];
    return true;
  }
};

double LineSeconds(double bytes, double fixed, double rate) { return fixed + bytes / rate; }

BlockFitProblem LineProblem() {
  BlockFitProblem problem;
  problem.descriptors = {{"fixed_seconds", 1e-6, 0, 1e-3, ""}, {"rate", 1e12, 1e9, 1e13, ""}};
  return problem;
}

void AddLine(BlockFitProblem& problem, double fixed, double rate, int group = -1) {
  for (double bytes = 1e3; bytes < 1e10; bytes *= 2) {
    problem.rows.push_back(
        {DifferentiatedRow<2>(Line{bytes}, 2), LineSeconds(bytes, fixed, rate), 1, group});
  }
}

TEST(FitBlock, RecoversWhatMadeTheRows) {
  BlockFitProblem problem = LineProblem();
  AddLine(problem, 7e-6, 4e11);
  const auto fit = FitBlock(problem);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_NEAR(fit->shared[0].value, 7e-6, 0.02 * 7e-6);
  EXPECT_NEAR(fit->shared[1].value, 4e11, 0.02 * 4e11);
  EXPECT_LT(fit->mape_percent, 1);
  EXPECT_GT(fit->start_mape_percent, 30);
  EXPECT_TRUE(fit->converged);
}

TEST(FitBlock, GivesGroupsTheirOwnValueAndSharesTheRest) {
  BlockFitProblem problem = LineProblem();
  problem.grouped_parameters = {0};
  problem.group_count = 2;
  AddLine(problem, 4e-6, 4e11, 0);
  AddLine(problem, 12e-6, 4e11, 1);
  const auto fit = FitBlock(problem);
  ASSERT_TRUE(fit.ok()) << fit.status();
  ASSERT_EQ(fit->groups.size(), 2u);
  EXPECT_NEAR(fit->groups[0][0].value, 4e-6, 0.02 * 4e-6);
  EXPECT_NEAR(fit->groups[1][0].value, 12e-6, 0.02 * 12e-6);
  EXPECT_NEAR(fit->shared[1].value, 4e11, 0.02 * 4e11);
}

// Ten wrong rows among twenty-four good ones would drag a least squares fit far away.
TEST(FitBlock, IsNotDraggedByOutliers) {
  BlockFitProblem problem = LineProblem();
  AddLine(problem, 7e-6, 4e11);
  for (int i = 0; i < 5; ++i) {
    problem.rows.push_back({DifferentiatedRow<2>(Line{1e9}, 2), 10 * LineSeconds(1e9, 7e-6, 4e11)});
  }
  const auto fit = FitBlock(problem);
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->shared[1].value, 4e11, 0.05 * 4e11);
}

TEST(FitBlock, KeepsToBoundsAndSaysSo) {
  BlockFitProblem problem = LineProblem();
  problem.descriptors[1].lower = 6e11;
  AddLine(problem, 7e-6, 4e11);
  const auto fit = FitBlock(problem);
  ASSERT_TRUE(fit.ok());
  EXPECT_DOUBLE_EQ(fit->shared[1].value, 6e11);
  EXPECT_TRUE(fit->shared[1].at_bound);
}

TEST(FitBlock, HoldsConstantsAtTheirStart) {
  BlockFitProblem problem = LineProblem();
  problem.constant = {true, false};
  AddLine(problem, 7e-6, 4e11);
  const auto fit = FitBlock(problem);
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->shared[0].value, 1e-6, 1e-12);
}

// Without small rows nothing tells the fixed part: it stays at its start, without an error bar.
TEST(FitBlock, LeavesAndFlagsWhatTheRowsDoNotShow) {
  BlockFitProblem problem = LineProblem();
  problem.rows.push_back({DifferentiatedRow<2>(Line{1e12}, 2), LineSeconds(1e12, 7e-6, 4e11)});
  const auto fit = FitBlock(problem);
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit->shared[0].value, 1e-6, 1e-7);
  EXPECT_FALSE(fit->shared[0].standard_error.has_value());
  EXPECT_TRUE(fit->shared[1].standard_error.has_value());
}

TEST(FitBlock, IsDeterministic) {
  BlockFitProblem problem = LineProblem();
  AddLine(problem, 7e-6, 4e11);
  EXPECT_EQ(FitBlock(problem)->shared[0].value, FitBlock(problem)->shared[0].value);
}

TEST(FitBlock, WithoutRowsReturnsTheStart) {
  const auto fit = FitBlock(LineProblem());
  ASSERT_TRUE(fit.ok());
  EXPECT_DOUBLE_EQ(fit->shared[1].value, 1e12);
  EXPECT_FALSE(fit->shared[1].standard_error.has_value());
}

TEST(FitBlock, NamesEveryUnusableRow) {
  BlockFitProblem problem = LineProblem();
  AddLine(problem, 7e-6, 4e11);
  problem.rows[1].measured_seconds = 0;
  problem.rows[2].weight = std::numeric_limits<double>::quiet_NaN();
  problem.rows[3].group = 5;
  const auto fit = FitBlock(problem);
  EXPECT_EQ(base::ViolationsOf(fit.status()).size(), 3u);
  EXPECT_THAT(std::string(fit.status().message()), HasSubstr("rows[1].measured_seconds"));
}

}  // namespace
}  // namespace sextant::calibration
