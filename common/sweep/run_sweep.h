// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_RUN_SWEEP_H_
#define SEXTANT_COMMON_SWEEP_RUN_SWEEP_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/energy/energy.h"
#include "common/orchestrator/prediction.h"
#include "common/parameters/parameter_set.h"
#include "common/sweep/summary.h"
#include "common/workload/job.h"

namespace sextant::sweep {

// One combination of everything outside the plan: cluster, GPU count, batch, precision, hardware,
// faults. The plan of `job` holds for what the plan space does not vary.
struct Scenario {
  workload::Job job;
  // What makes it different, as overrides of the base job's file ("gpu_count", "512").
  std::vector<std::pair<std::string, std::string>> settings;
};

// Most scenarios of a sweep, and most rows of one list of its answer.
inline constexpr size_t kMaxScenarios = 100'000;
inline constexpr int64_t kMaxRows = 100'000;

struct SweepSpec {
  std::vector<Scenario> scenarios;
  PlanSpace plan;
  bool require_fit = true;    // false: time is predicted for what does not fit, too
  std::vector<Limit> limits;  // every accepted point meets all of them
  SummaryOptions summary;
  energy::Economics economics;
};

// Every rule that the spec breaks; field paths are those of the sweep file.
absl::Status ValidateSweep(const SweepSpec& spec);

// A part of a sweep: the cells whose number leaves `index` when divided by `count`.
struct Shard {
  int64_t index = 0;
  int64_t count = 1;

  friend bool operator==(const Shard&, const Shard&) = default;
};

struct Progress {
  int64_t done_count = 0;       // candidates of this shard looked at
  int64_t candidate_count = 0;  // of this shard, in all
  int64_t predicted_count = 0;
  // The best point so far, where it is better than the one reported before; null otherwise.
  const Point* improved = nullptr;
};

struct RunOptions {
  Shard shard;
  int thread_count = 0;  // 0: one per core
  // Called from one thread at a time, in the order of the space; false stops the sweep, which then
  // answers with what is done.
  std::function<bool(const Progress&)> on_progress;
};

// A point with its whole prediction.
struct Row {
  Point point;
  orchestrator::Prediction prediction;
};

struct SweepResult {
  Summary summary;
  bool complete = true;               // false: stopped by on_progress
  int64_t whole_candidate_count = 0;  // of all shards
  std::vector<std::string> excluded;  // sizes that were never listed, and why
  std::string parameter_set;
};

// Evaluates every point of the shard under one parameter set: memory first, time of what fits, each
// exactly as orchestrator::Predict answers the same job. Equal specs give equal results for every
// thread count, and the summaries of all shards merged equal the whole one's.
// INVALID_ARGUMENT with every violation of the spec; NOT_FOUND for a framework profile that no
// scenario may use. O(points / threads) time, O(cells + kept points) memory.
absl::StatusOr<SweepResult> RunSweep(const SweepSpec& spec,
                                     std::shared_ptr<const parameters::ParameterSet> parameters,
                                     const RunOptions& options = {});

// The job of a point, and its whole prediction (with interval, breakdown and warnings): what
// `predict` says of it.
workload::Job JobOf(const SweepSpec& spec, const Point& point);
absl::StatusOr<std::vector<Row>> PredictPoints(
    const SweepSpec& spec, const std::vector<Point>& points,
    std::shared_ptr<const parameters::ParameterSet> parameters);

// The settings that make the base job's file this point's job, for --set of `predict`.
std::vector<std::string> OverridesOf(const SweepSpec& spec, const Point& point);

Metrics MetricsOf(const workload::Job& job, const orchestrator::Prediction& prediction,
                  const energy::Economics& economics);

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_RUN_SWEEP_H_
