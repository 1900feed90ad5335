// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/nearest.h"

namespace sextant::sweep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<absl::string_view, kMetricCount> kNames = {"total_seconds",
                                                                "tokens_per_second",
                                                                "tokens_per_second_per_gpu",
                                                                "model_flops_utilization",
                                                                "memory_bytes",
                                                                "gpu_count",
                                                                "time_to_first_token_seconds",
                                                                "inter_token_latency_seconds",
                                                                "energy_joules_per_token",
                                                                "cost_dollars_per_million_tokens"};

}  // namespace

absl::string_view MetricName(Metric metric) { return kNames[static_cast<size_t>(metric)]; }

std::vector<std::string> MetricNames() { return {kNames.begin(), kNames.end()}; }

absl::StatusOr<Metric> ParseMetric(absl::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Metric>(found - kNames.begin());
  return base::UnknownName("metric", name, MetricNames());
}

bool LessIsBetter(Metric metric) {
  return metric != Metric::kTokensPerSecond && metric != Metric::kTokensPerSecondPerGpu &&
         metric != Metric::kModelFlopsUtilization;
}

double Cost(const Metrics& metrics, Metric metric) {
  const double value = metrics[metric];
  if (std::isnan(value)) return kInfinity;
  return LessIsBetter(metric) ? value : -value;
}

double Excess(const Metrics& metrics, const Limit& limit) {
  const double value = metrics[limit.metric];
  if (std::isnan(value)) return kInfinity;
  const bool met = LessIsBetter(limit.metric) ? value <= limit.bound : value >= limit.bound;
  if (met) return 0;
  const double distance = std::abs(value - limit.bound) / std::abs(limit.bound);
  // A bound of zero has no scale; missing it is still a miss.
  return std::isfinite(distance) ? std::max(distance, std::numeric_limits<double>::min())
                                 : kInfinity;
}

}  // namespace sextant::sweep
