// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ENERGY_ENERGY_H_
#define SEXTANT_COMMON_ENERGY_ENERGY_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/orchestrator/prediction.h"
#include "common/workload/job.h"

namespace sextant::energy {

// A number that sources give differently: what is taken, and the range that they span.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;

  // All three times a factor of at least 0.
  Estimate Scaled(double factor) const { return {value * factor, low * factor, high * factor}; }

  friend bool operator==(const Estimate&, const Estimate&) = default;
};

// Power that one GPU draws in each activity, as a share of its board limit, and what is drawn
// around it. The shipped values and their sources: datasets/economics.
struct PowerProfile {
  Estimate idle;                // nothing runs: bubbles, host work
  Estimate compute;             // matrix arithmetic, attention
  Estimate memory;              // work that device memory bounds
  Estimate communication;       // exposed collectives and transfers
  Estimate host_watts_per_gpu;  // CPUs, memory, NICs, fans of the node, per GPU
  Estimate facility_overhead = {1, 1, 1};  // power usage effectiveness: facility over equipment

  // False where no profile was given: energy is then unknown, not zero.
  bool IsKnown() const { return compute.value > 0; }

  friend bool operator==(const PowerProfile&, const PowerProfile&) = default;
};

struct Economics {
  PowerProfile power;
  std::map<std::string, Estimate, std::less<>> dollars_per_gpu_hour;  // by accelerator

  friend bool operator==(const Economics&, const Economics&) = default;
};

// Shares in (0, 1.5], in order; facility overhead at least 1; finite prices at or above 0; each
// value inside its range. Field paths "power.idle", "dollars_per_gpu_hour[h100-sxm5-80gb]".
absl::Status ValidateEconomics(const Economics& economics);

// What one step, or one batch of requests, draws over all GPUs of a job: power of each part of the
// prediction's breakdown times its seconds. Low and high take every share at its end.
Estimate EnergyJoules(const workload::Job& job, const orchestrator::Prediction& prediction,
                      const PowerProfile& power);

// What one step or batch costs; absent where the accelerator has no price.
std::optional<Estimate> CostDollars(const workload::Job& job,
                                    const orchestrator::Prediction& prediction,
                                    const Economics& economics);

// Tokens of one step or batch: those that tokens_per_second counts.
double TokenCount(const orchestrator::Prediction& prediction);

}  // namespace sextant::energy

#endif  // SEXTANT_COMMON_ENERGY_ENERGY_H_
