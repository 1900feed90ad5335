// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/drift.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace sextant::calibration_service {
namespace {

std::vector<double> Errors(size_t count, double mean, double scatter, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> error(mean, scatter);
  std::vector<double> errors(count);
  for (double& value : errors) value = error(random);
  return errors;
}

TEST(TestDrift, FiresWhereAllErrorsMoveToOneSide) {
  const DriftTest test = TestDrift(Errors(20, -18, 4, 1), 10);
  EXPECT_TRUE(test.drifted);
  EXPECT_NEAR(test.bias_percent, -18, 3);
}

// The law: what has not moved fires in less than one of a thousand windows.
TEST(TestDrift, SleepsWhileErrorsScatterAroundNothing) {
  int fired = 0;
  for (unsigned seed = 0; seed < 2000; ++seed)
    fired += TestDrift(Errors(20, 0, 15, seed), 10).drifted;
  EXPECT_LE(fired, 2);
}

TEST(TestDrift, OneOutlierIsNoDrift) {
  std::vector<double> errors = Errors(20, 1, 2, 3);
  errors[7] = -95;
  const DriftTest test = TestDrift(errors, 10);
  EXPECT_FALSE(test.drifted);
  EXPECT_GT(test.mape_percent, 5);
  EXPECT_LT(test.trimmed_mape_percent, 3);
  EXPECT_FALSE(TestDrift({-95.0}, 10).drifted);
}

TEST(TestDrift, NineRowsAreTooFewAndTenAreEnough) {
  EXPECT_FALSE(TestDrift(std::vector<double>(9, -20), 10).drifted);  // 2^-9 > 1e-3
  EXPECT_TRUE(TestDrift(std::vector<double>(10, -20), 10).drifted);  // 2^-10 < 1e-3
  EXPECT_FALSE(TestDrift({}, 10).drifted);
}

TEST(TestDrift, ABiasWithinTheThresholdIsLeftAlone) {
  EXPECT_FALSE(TestDrift(std::vector<double>(50, 9.9), 10).drifted);
}

TEST(ChangePoint, IsWhereTheErrorsMoved) {
  std::vector<double> errors = Errors(30, 0, 2, 5);
  const std::vector<double> after = Errors(20, -18, 2, 6);
  errors.insert(errors.end(), after.begin(), after.end());
  EXPECT_EQ(ChangePoint(errors, 10), 30);
  EXPECT_EQ(ChangePoint(after, 10), 0) << "all of it is drifted";
}

}  // namespace
}  // namespace sextant::calibration_service
