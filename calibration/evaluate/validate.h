// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_EVALUATE_VALIDATE_H_
#define SEXTANT_CALIBRATION_EVALUATE_VALIDATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibration/measurements/rows.h"
#include "common/orchestrator/ports.h"
#include "common/parameters/parameter_set.h"

namespace sextant::calibration {

enum class RowStatus : int { kOk, kRefused, kSkipped };
absl::string_view RowStatusName(RowStatus status);  // "ok", "refused", "skipped"

// One measured number against its prediction. Absent: not measured, or no prediction was made.
struct ValidationRow {
  std::string id;
  std::string kind;    // "training", "inference", "operator", "collective"
  std::string metric;  // "step_time", "ttft", "itl", "e2e", "throughput", "latency"
  std::string suite;
  std::string family;
  std::string source;
  std::string accelerator;
  RowStatus status = RowStatus::kOk;
  std::string reason;
  std::string quality;
  bool counted = true;  // in the means of its group
  std::optional<double> measured_seconds;
  std::optional<double> predicted_seconds;
  std::optional<double> error_percent;  // signed: predicted over measured minus one
  std::optional<double> interval_low_seconds;
  std::optional<double> interval_high_seconds;
  double interval_widening = 1;  // parameters::Widening that the interval was made with
  bool extrapolated = false;
  std::vector<std::string> warnings;
  // Training only.
  std::optional<int64_t> measured_memory_bytes;
  std::optional<int64_t> predicted_memory_bytes;
  std::optional<bool> measured_fits;
  std::optional<bool> predicted_fits;
};

// Errors of one suite x accelerator x kind x (family or metric), over the rows that count.
// count + suspect + refused + skipped is the number of rows; suspect holds all that do not count.
// Absent where no row counts.
struct ValidationGroup {
  std::string suite;
  std::string accelerator;
  std::string kind;
  std::string family;  // operators and collectives
  std::string metric;
  int64_t count = 0;
  int64_t refused = 0;
  int64_t skipped = 0;
  int64_t suspect = 0;
  std::optional<double> mape_percent;
  std::optional<double> median_ape_percent;
  std::optional<double> p90_ape_percent;
  std::optional<double> bias_percent;
  std::optional<double> interval_coverage_percent;
  std::optional<double> interval_width_percent;  // median of width over prediction
};

struct ValidationReport {
  std::string parameter_set;  // version
  std::vector<ValidationRow> rows;
  std::vector<ValidationGroup> groups;  // sorted by suite, accelerator, kind, family, metric
};

// Predicts every row and compares. Each port is asked in batches: kernels per accelerator and
// profile, collectives per cluster and profile, and once per job. A row that cannot be predicted
// is refused with the reason; only a port that fails as a whole (UNAVAILABLE) ends the call.
// Rows whose profile the parameter set does not know get the shared values, flagged extrapolated.
absl::StatusOr<ValidationReport> Validate(const Measurements& measurements,
                                          orchestrator::OperatorCostPort& operator_cost,
                                          orchestrator::NetworkTimePort& network_time);

// In process, under `parameters`.
absl::StatusOr<ValidationReport> Validate(
    const Measurements& measurements, std::shared_ptr<const parameters::ParameterSet> parameters);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_EVALUATE_VALIDATE_H_
