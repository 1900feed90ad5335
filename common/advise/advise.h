// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ADVISE_ADVISE_H_
#define SEXTANT_COMMON_ADVISE_ADVISE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/energy/energy.h"
#include "common/orchestrator/prediction.h"
#include "common/parameters/parameter_set.h"
#include "common/workload/job.h"

namespace sextant::advise {

struct AdviceOptions {
  int64_t max_gpu_count = 0;  // 0: the job's gpu_count. At most kMostGpus
  int64_t min_gpu_count = 0;  // 0: one; equal to the most: exactly so many
  int64_t step_count = 0;     // optimizer steps of a training run, batches of inference; 0: unknown
  double time_limit_margin = 0.1;  // over the upper end of the run time's interval, in [0, 10]
  energy::Economics economics;     // unknown: no energy, no cost

  friend bool operator==(const AdviceOptions&, const AdviceOptions&) = default;
};
inline constexpr int64_t kMostGpus = 100000;

// How the search runs; the answer is the same.
struct SearchOptions {
  int thread_count = 0;              // 0: one per core
  std::function<bool()> keep_going;  // asked between pieces of work; false: CANCELLED
};

// The best layout on one GPU count.
struct SpeedUp {
  int64_t gpu_count = 0;
  workload::ParallelPlan plan;
  double total_seconds = 0;  // of one step or batch
  double tokens_per_second = 0;
  double speed_up = 1;    // tokens per second over those of the smallest count
  double efficiency = 1;  // speed_up over the growth in GPUs

  friend bool operator==(const SpeedUp&, const SpeedUp&) = default;
};

struct Advice {
  // Whether some count fits (and meets the limits of a served rate). Otherwise what follows is of
  // the nearest.
  bool feasible = false;
  std::string reason;     // what the nearest misses; empty where feasible
  int64_t gpu_count = 0;  // the fewest; 0: no layout at all has room for a served request
  workload::ParallelPlan plan;  // the best on them
  orchestrator::Prediction prediction;
  // Of `step_count` steps, with the interval of a step; 0 where the count is unknown.
  double run_seconds = 0;
  double run_low_seconds = 0;
  double run_high_seconds = 0;
  // Whole minutes over run_high_seconds and the margin; 0 where the count is unknown.
  int64_t suggested_time_limit_seconds = 0;
  int64_t memory_headroom_bytes = 0;  // what the heaviest rank leaves free; 0 where it does not fit
  // Of all GPUs over the run, or over one step where the count is unknown; absent without power, or
  // without a price of the accelerator.
  std::optional<energy::Estimate> energy_joules;
  std::optional<energy::Estimate> cost_dollars;
  std::vector<SpeedUp> curve;  // of the counts that fit, increasing; empty for served rates

  friend bool operator==(const Advice&, const Advice&) = default;
};

// What to ask for before `job` runs. Its own GPU count and sizes of the plan bound nothing but the
// search (max_gpu_count 0) and what the README says stays. Equal arguments give equal answers.
//
// INVALID_ARGUMENT with every violation for a wrong job or option; for a serving load that is not
// Poisson, too. NOT_FOUND for an unknown framework profile. O(GPU counts x layouts).
absl::StatusOr<Advice> Advise(const workload::Job& job, const AdviceOptions& options,
                              std::shared_ptr<const parameters::ParameterSet> parameters,
                              const SearchOptions& search = {});

// `job` as advised.
workload::Job AdvisedJob(workload::Job job, const Advice& advice);

}  // namespace sextant::advise

#endif  // SEXTANT_COMMON_ADVISE_ADVISE_H_
