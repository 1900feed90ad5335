// SPDX-License-Identifier: Apache-2.0
#include "common/energy/energy.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::energy {
namespace {

constexpr double kSecondsPerHour = 3600;

enum class Activity { kIdle, kCompute, kMemory, kCommunication };

Activity ActivityOf(absl::string_view part) {
  if (part == "matrix_multiply" || part == "attention" || part == "recompute") {
    return Activity::kCompute;
  }
  if (part == "memory_bound" || part == "optimizer") return Activity::kMemory;
  if (absl::EndsWith(part, "_exposed") || absl::EndsWith(part, "_send")) {
    return Activity::kCommunication;
  }
  return Activity::kIdle;
}

const Estimate& ShareOf(const PowerProfile& power, Activity activity) {
  switch (activity) {
    case Activity::kCompute:
      return power.compute;
    case Activity::kMemory:
      return power.memory;
    case Activity::kCommunication:
      return power.communication;
    case Activity::kIdle:
      break;
  }
  return power.idle;
}

void RequireEstimate(base::Violations& violations, absl::string_view field, const Estimate& e,
                     double minimum, double maximum) {
  for (const double x : {e.low, e.value, e.high}) {
    if (std::isfinite(x) && x >= minimum && x <= maximum) continue;
    violations.Add(field,
                   absl::StrCat("is ", x, " but must be between ", minimum, " and ", maximum));
    return;
  }
  if (!(e.low <= e.value && e.value <= e.high)) {
    violations.Add(field, absl::StrCat("is ", e.value, " but must lie between low ", e.low,
                                       " and high ", e.high));
  }
}

}  // namespace

absl::Status ValidateEconomics(const Economics& economics) {
  base::Violations violations;
  const PowerProfile& p = economics.power;
  constexpr double kMaxShare = 1.5;  // short excursions above the limit are measured
  RequireEstimate(violations, "power.idle", p.idle, 0, kMaxShare);
  RequireEstimate(violations, "power.compute", p.compute, 0, kMaxShare);
  RequireEstimate(violations, "power.memory", p.memory, 0, kMaxShare);
  RequireEstimate(violations, "power.communication", p.communication, 0, kMaxShare);
  RequireEstimate(violations, "power.host_watts_per_gpu", p.host_watts_per_gpu, 0, 1e5);
  RequireEstimate(violations, "power.facility_overhead", p.facility_overhead, 1, 10);
  for (const auto& [accelerator, price] : economics.dollars_per_gpu_hour) {
    RequireEstimate(violations, absl::StrCat("dollars_per_gpu_hour[", accelerator, "]"), price, 0,
                    1e6);
  }
  return violations.ToStatus();
}

Estimate EnergyJoules(const workload::Job& job, const orchestrator::Prediction& prediction,
                      const PowerProfile& power) {
  const double limit = job.cluster.accelerator.power_watts;
  const double gpus = static_cast<double>(job.gpu_count);
  const auto joules = [&](double Estimate::*end) {
    double sum = power.host_watts_per_gpu.*end * prediction.total_seconds;
    for (const orchestrator::TimePart& part : prediction.breakdown) {
      sum += ShareOf(power, ActivityOf(part.name)).*end * limit * part.seconds;
    }
    return sum * gpus * (power.facility_overhead.*end);
  };
  return {.value = joules(&Estimate::value),
          .low = joules(&Estimate::low),
          .high = joules(&Estimate::high)};
}

std::optional<Estimate> CostDollars(const workload::Job& job,
                                    const orchestrator::Prediction& prediction,
                                    const Economics& economics) {
  const auto price = economics.dollars_per_gpu_hour.find(job.cluster.accelerator.name);
  if (price == economics.dollars_per_gpu_hour.end()) return std::nullopt;
  const double gpu_hours =
      prediction.total_seconds * static_cast<double>(job.gpu_count) / kSecondsPerHour;
  return Estimate{.value = price->second.value * gpu_hours,
                  .low = price->second.low * gpu_hours,
                  .high = price->second.high * gpu_hours};
}

double TokenCount(const orchestrator::Prediction& prediction) {
  return prediction.tokens_per_second * prediction.total_seconds;
}

}  // namespace sextant::energy
