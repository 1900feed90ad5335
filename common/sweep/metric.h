// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_METRIC_H_
#define SEXTANT_COMMON_SWEEP_METRIC_H_

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sextant::sweep {

// What a point of a sweep can be ranked, limited and plotted by.
enum class Metric : int {
  kTotalSeconds,     // one optimizer step, or one batch of requests
  kTokensPerSecond,  // of the whole job
  kTokensPerSecondPerGpu,
  kModelFlopsUtilization,
  kMemoryBytes,  // peak allocated on the heaviest rank
  kGpuCount,
  kTimeToFirstTokenSeconds,   // inference only
  kInterTokenLatencySeconds,  // inference with at least one decode step only
  kEnergyJoulesPerToken,
  kCostDollarsPerMillionTokens,  // where a price is known
};
inline constexpr int kMetricCount = 10;

// "total_seconds", "tokens_per_second", ...: the keys of predictions where there is one.
absl::string_view MetricName(Metric metric);
// INVALID_ARGUMENT lists the known names.
absl::StatusOr<Metric> ParseMetric(absl::string_view name);
std::vector<std::string> MetricNames();
bool LessIsBetter(Metric metric);

// Values of one point; NaN where a metric does not apply or is not known.
struct Metrics {
  std::array<double, kMetricCount> values;

  Metrics() { values.fill(std::numeric_limits<double>::quiet_NaN()); }

  double& operator[](Metric metric) { return values[static_cast<size_t>(metric)]; }
  double operator[](Metric metric) const { return values[static_cast<size_t>(metric)]; }
};

// The value turned so that less is better; infinity where the metric does not apply, so that such a
// point ranks last.
double Cost(const Metrics& metrics, Metric metric);

// A requirement: at most `bound` where less is better, at least `bound` otherwise.
struct Limit {
  Metric metric = Metric::kTotalSeconds;
  double bound = 0;

  friend bool operator==(const Limit&, const Limit&) = default;
};
// How far `metrics` misses the limit, relative to it: 0 where it is met, infinity where the metric
// does not apply.
double Excess(const Metrics& metrics, const Limit& limit);

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_METRIC_H_
