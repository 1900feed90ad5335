// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/drift.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace sextant::calibration_service {
namespace {

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), middle)) / 2;
}

// P(X >= k) for X ~ Binomial(n, 1/2), in logarithms: n may be large.
double UpperTail(int64_t n, int64_t k) {
  double tail = 0;
  for (int64_t i = k; i <= n; ++i) {
    const auto x = static_cast<double>(i);
    const auto size = static_cast<double>(n);
    tail += std::exp(std::lgamma(size + 1) - std::lgamma(x + 1) - std::lgamma(size - x + 1) -
                     size * std::log(2.0));
  }
  return std::min(1.0, tail);
}

}  // namespace

DriftTest TestDrift(absl::Span<const double> errors_percent, double threshold_percent) {
  constexpr double kChance = 1e-3;
  DriftTest test;
  if (errors_percent.empty()) return test;
  std::vector<double> errors(errors_percent.begin(), errors_percent.end());
  double sum = 0;
  double largest = 0;
  for (const double error : errors) {
    sum += std::fabs(error);
    largest = std::max(largest, std::fabs(error));
  }
  const auto count = static_cast<double>(errors.size());
  test.mape_percent = sum / count;
  test.trimmed_mape_percent = errors.size() > 1 ? (sum - largest) / (count - 1) : 0;
  test.bias_percent = Median(errors);
  const double side = test.bias_percent < 0 ? -1 : 1;
  const auto beyond = std::count_if(errors.begin(), errors.end(), [&](double error) {
    return side * error > threshold_percent / 2;
  });
  test.p_value = UpperTail(static_cast<int64_t>(errors.size()), beyond);
  test.drifted = std::fabs(test.bias_percent) > threshold_percent && test.p_value < kChance;
  return test;
}

int64_t ChangePoint(absl::Span<const double> errors_percent, double threshold_percent) {
  const auto n = static_cast<int64_t>(errors_percent.size());
  const double total = std::accumulate(errors_percent.begin(), errors_percent.end(), 0.0);
  double best = 0;
  double best_before = 0;
  int64_t change = 0;
  double before = 0;
  for (int64_t k = 1; k < n; ++k) {
    before += errors_percent[static_cast<size_t>(k - 1)];
    const auto left = static_cast<double>(k);
    const auto right = static_cast<double>(n - k);
    const double shift =
        std::fabs(before / left - (total - before) / right) * std::sqrt(left * right);
    if (shift <= best) continue;
    best = shift;
    best_before = before / left;
    change = k;
  }
  return std::fabs(best_before) > threshold_percent / 2 ? 0 : change;
}

}  // namespace sextant::calibration_service
