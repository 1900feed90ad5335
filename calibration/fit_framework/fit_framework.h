// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_FIT_FRAMEWORK_FIT_FRAMEWORK_H_
#define SEXTANT_CALIBRATION_FIT_FRAMEWORK_FIT_FRAMEWORK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibration/measurements/rows.h"
#include "common/parameters/parameter_set.h"
#include "common/workload/job.h"

namespace sextant::calibration {

// One measured training step. The profile is job.framework.
struct FrameworkTrainingRow {
  std::string id;
  workload::Job job;
  double measured_seconds = 0;                    // 0: memory alone was measured
  std::optional<double> measured_memory_bytes;    // peak allocated
  std::optional<double> measured_reserved_bytes;  // peak held by the caching allocator
};

// One measured latency of a static batch. The profile is job.framework.
struct FrameworkInferenceRow {
  std::string id;
  workload::Job job;
  InferenceMetric metric = InferenceMetric::kEndToEnd;  // kThroughput is not fitted
  double measured_seconds = 0;
};

// The rows of `measurements` that may be fitted: role fit, counted, usable. Left out: tensor
// parallel groups that span nodes (dominated by a fabric under contention), throughputs, and whole
// latencies of rows that state first and further tokens apart.
std::vector<FrameworkTrainingRow> FrameworkTrainingRows(const Measurements& measurements);
std::vector<FrameworkInferenceRow> FrameworkInferenceRows(const Measurements& measurements);

struct FrameworkFit {
  std::string profile;
  std::string block;  // "training", "inference", "memory"
  int row_count = 0;
  double start_mape_percent = 0;
  double mape_percent = 0;
  double scatter = 0;
};
struct FrameworkFitResult {
  // Values of the orchestrator's keys alone: to be merged over the accelerator's other values.
  parameters::AcceleratorParameters parameters;
  std::vector<FrameworkFit> fits;
  std::vector<std::string> notes;  // rows left out, with the reason
};

// Fits framework parameters of one accelerator on whole steps and requests: times of kernels and
// collectives come from `set` and stay fixed, so that end-to-end rows cannot repair operators.
// Values go to the profile that was measured; only the scatter is shared by all profiles. Profiles
// with fewer than 6 rows are not fitted. Known facts about profiles (attention that was not yet
// fused) are written in any case. The formulas are those that serve. Rows of other accelerators are
// ignored. Deterministic.
absl::StatusOr<FrameworkFitResult> FitFramework(absl::Span<const FrameworkTrainingRow> training,
                                                absl::Span<const FrameworkInferenceRow> inference,
                                                absl::string_view accelerator,
                                                const parameters::ParameterSet& set);

// `set` with the values of `fitted` put over those of `accelerator`.
parameters::ParameterSet WithFramework(const parameters::ParameterSet& set,
                                       absl::string_view accelerator,
                                       const parameters::AcceleratorParameters& fitted,
                                       parameters::Provenance provenance);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_FIT_FRAMEWORK_FIT_FRAMEWORK_H_
