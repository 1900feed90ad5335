// SPDX-License-Identifier: Apache-2.0
#include "common/resilience/goodput.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/split_mix.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"

namespace sextant::resilience {
namespace {

constexpr double kSecondsPerHour = 3600;

double MeanBetweenInterruptions(const GoodputQuestion& q) {
  const double per_gpu_hour = q.profile.interruptions_per_million_gpu_hours / 1e6;
  return kSecondsPerHour / (per_gpu_hour * static_cast<double>(q.gpu_count));
}

// Root of (1 - T/M) e^((T+C)/M) = 1 in (0, M): the left side falls from e^(C/M) to 0.
double BestInterval(double mean, double checkpoint) {
  double low = 0;
  double high = 1;
  const double c = checkpoint / mean;
  for (int i = 0; i < 200; ++i) {
    const double x = (low + high) / 2;
    // In logarithms: e^(x+c) overflows for checkpoints much longer than M.
    (std::log1p(-x) + x + c > 0 ? low : high) = x;
  }
  return mean * low;
}

// Daly 2006, equation 37.
double DalyInterval(double mean, double checkpoint) {
  if (checkpoint >= 2 * mean) return mean;
  const double root = std::sqrt(checkpoint / (2 * mean));
  return std::sqrt(2 * checkpoint * mean) * (1 + root / 3 + root * root / 9) - checkpoint;
}

// Erlang's loss formula by its recursion in the number of servers.
double ErlangLoss(double load, int64_t server_count) {
  double loss = 1;
  for (int64_t k = 1; k <= server_count; ++k) {
    loss = load * loss / (static_cast<double>(k) + load * loss);
  }
  return loss;
}

Goodput Intervals(const GoodputQuestion& q) {
  Goodput g;
  const double mean = MeanBetweenInterruptions(q);
  const double checkpoint = q.profile.checkpoint_seconds;
  g.mean_seconds_between_interruptions = mean;
  g.best_checkpoint_interval_seconds = BestInterval(mean, checkpoint);
  g.young_interval_seconds = std::sqrt(2 * checkpoint * mean);
  g.daly_interval_seconds = DalyInterval(mean, checkpoint);
  g.checkpoint_interval_seconds = q.checkpoint_interval_seconds > 0
                                      ? q.checkpoint_interval_seconds
                                      : g.best_checkpoint_interval_seconds;
  return g;
}

void ApplyStragglers(const ReliabilityProfile& profile, Goodput& g) {
  g.straggler_share = g.useful_share * profile.straggler_share;
  g.useful_share -= g.straggler_share;
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // In (0, 1).
  double Uniform() {
    state_ += 0x9E3779B97F4A7C15u;  // its own step
    return (static_cast<double>(base::SplitMix64(state_) >> 11) + 0.5) * 0x1.0p-53;
  }
  double Exponential(double mean) { return -mean * std::log(Uniform()); }

 private:
  uint64_t state_;
};

}  // namespace

absl::Status ValidateGoodputQuestion(const GoodputQuestion& q) {
  base::Violations violations;
  const ReliabilityProfile& p = q.profile;
  const auto require = [&](absl::string_view field, double value, double low, double high) {
    if (value >= low && value <= high) return;
    violations.Add(field, absl::StrCat("is ", value, " but must be between ", low, " and ", high));
  };
  constexpr double kYear = 365.25 * 86400;
  require("gpu_count", static_cast<double>(q.gpu_count), 1, 1e9);
  require("spare_node_count", static_cast<double>(q.spare_node_count), 0, 1e6);
  require("checkpoint_interval_seconds", q.checkpoint_interval_seconds, 0, 100 * kYear);
  require("interruptions_per_million_gpu_hours", p.interruptions_per_million_gpu_hours, 1e-6, 1e9);
  require("node_loss_share", p.node_loss_share, 0, 1);
  require("detection_seconds", p.detection_seconds, 0, kYear);
  require("restart_seconds", p.restart_seconds, 0, kYear);
  require("repair_seconds", p.repair_seconds, 0, kYear);
  // A free checkpoint would be taken all the time.
  require("checkpoint_seconds", p.checkpoint_seconds, 1e-6, kYear);
  require("checkpoint_bytes_per_second_per_gpu", p.checkpoint_bytes_per_second_per_gpu, 0, 1e12);
  require("straggler_share", p.straggler_share, 0, 0.999999);
  return violations.ToStatus();
}

absl::StatusOr<Goodput> ExpectedGoodput(const GoodputQuestion& q) {
  SEXTANT_RETURN_IF_ERROR(ValidateGoodputQuestion(q));
  Goodput g = Intervals(q);
  const double mean = g.mean_seconds_between_interruptions;
  const double work = g.checkpoint_interval_seconds / mean;
  const double checkpoint = q.profile.checkpoint_seconds / mean;
  const double recovery = (q.profile.detection_seconds + q.profile.restart_seconds) / mean;
  const double load = q.profile.node_loss_share * q.profile.repair_seconds / mean;
  g.waiting_share = ErlangLoss(load, q.spare_node_count + 1);
  // Per interval, in units of M, while nodes are there. Of the whole e^R (e^(T+C) - 1): each of
  // the e^(T+C) - 1 interruptions costs recoveries of e^R - 1 in all, repeated ones included.
  const double attempts = std::expm1(work + checkpoint);
  const double whole = std::exp(recovery) * attempts;
  const double present = 1 - g.waiting_share;
  if (!std::isfinite(whole)) {
    g.recovery_share = present;  // no interval ever ends
    return g;
  }
  g.useful_share = present * work / whole;
  g.checkpoint_share = present * checkpoint / whole;
  g.recovery_share = present * std::expm1(recovery) * attempts / whole;
  g.rework_share = std::max(0.0, present - g.useful_share - g.checkpoint_share - g.recovery_share);
  ApplyStragglers(q.profile, g);
  return g;
}

absl::StatusOr<Goodput> SimulateGoodput(const GoodputQuestion& q, int64_t interruption_count,
                                        uint64_t seed) {
  SEXTANT_RETURN_IF_ERROR(ValidateGoodputQuestion(q));
  Goodput g = Intervals(q);
  Random random(seed);
  const double mean = g.mean_seconds_between_interruptions;
  const double interval = g.checkpoint_interval_seconds;
  const double cycle = interval + q.profile.checkpoint_seconds;
  const double recovery = q.profile.detection_seconds + q.profile.restart_seconds;
  std::priority_queue<double, std::vector<double>, std::greater<>> repairs;  // ends
  double now = 0;
  double recovering_until = 0;
  for (int64_t i = 0; i < interruption_count; ++i) {
    const double next = now + random.Exponential(mean);
    const double recovered = std::min(next, recovering_until) - now;
    g.recovery_share += std::max(0.0, recovered);
    const double run = next - std::max(now, recovering_until);
    if (run > 0) {
      const double cycles = std::floor(run / cycle);
      g.useful_share += cycles * interval;
      g.checkpoint_share += cycles * q.profile.checkpoint_seconds;
      g.rework_share += run - cycles * cycle;
    }
    now = next;
    if (random.Uniform() < q.profile.node_loss_share) {
      repairs.push(now + random.Exponential(q.profile.repair_seconds));
    }
    while (!repairs.empty() && repairs.top() <= now) repairs.pop();
    if (static_cast<int64_t>(repairs.size()) > q.spare_node_count) {
      g.waiting_share += repairs.top() - now;
      now = repairs.top();
      repairs.pop();
    }
    recovering_until = now + recovery;
  }
  for (double* share : {&g.useful_share, &g.checkpoint_share, &g.rework_share, &g.recovery_share,
                        &g.waiting_share}) {
    *share /= now;
  }
  ApplyStragglers(q.profile, g);
  return g;
}

}  // namespace sextant::resilience
