// SPDX-License-Identifier: Apache-2.0
#include "common/operator_cost/expert_ffn_formula.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace sextant::operator_cost {
namespace {

// Mean load of the busiest of `ranks` over the mean load, from 400 seeded drawings.
double DrawnImbalance(int expert_count, int ranks, double exponent, double upper) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int kDrawings = 400;
  double sum = 0;
  for (int drawing = 0; drawing < kDrawings; ++drawing) {
    std::vector<double> loads(static_cast<size_t>(ranks), 0.0);
    double total = 0;
    for (int i = 0; i < expert_count; ++i) {
      // Inverse of the cumulative distribution of x^-exponent on [1, upper].
      const double low = 1;
      const double high = std::pow(upper, 1 - exponent);
      const double x = std::pow(low + (high - low) * uniform(random), 1 / (1 - exponent));
      loads[static_cast<size_t>(i * ranks / expert_count)] += x;
      total += x;
    }
    sum += *std::max_element(loads.begin(), loads.end()) * ranks / total;
  }
  return sum / kDrawings;
}

TEST(PowerLawImbalance, IsThatOfDrawnLoads) {
  for (const double exponent : {1.01, 1.2}) {
    for (const int64_t tokens : {256, 8192}) {
      for (const int ranks : {2, 4, 16}) {
        const double drawn =
            DrawnImbalance(128, ranks, exponent, 0.8 * static_cast<double>(tokens));
        EXPECT_NEAR(PowerLawImbalance(tokens, 128, 8, ranks, exponent), drawn, 0.15 * drawn)
            << exponent << " " << tokens << " " << ranks;
      }
    }
  }
}

TEST(PowerLawImbalance, IsOneOnOneRankAndNeverAboveTheirNumber) {
  EXPECT_EQ(PowerLawImbalance(4096, 64, 8, 1, 1.2), 1);
  for (int64_t tokens = 1; tokens < 1'000'000; tokens *= 3) {
    for (int64_t ranks = 2; ranks <= 64; ranks *= 2) {
      for (const double exponent : {0.5, 1.0, 1.2, 2.0, 3.0}) {
        const double imbalance = PowerLawImbalance(tokens, 64, 8, ranks, exponent);
        EXPECT_GE(imbalance, 1);
        EXPECT_LE(imbalance, static_cast<double>(ranks));
      }
    }
  }
}

}  // namespace
}  // namespace sextant::operator_cost
