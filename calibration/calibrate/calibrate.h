// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_CALIBRATE_CALIBRATE_H_
#define SEXTANT_CALIBRATION_CALIBRATE_CALIBRATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibration/measurements/rows.h"
#include "common/parameters/parameter_set.h"

namespace sextant::calibration {

struct CalibrationOptions {
  std::string name = "calibrated";  // of the new set
  int fold_count = 5;               // held-out folds; below 2: no judging
  // Sets of stages to run; a stage without rows is passed over.
  bool fit_operators = true;
  bool fit_collectives = true;
  bool fit_framework = true;
};

// A row that was offered for fitting (role fit, good quality) but not used.
struct RefusedRow {
  std::string id;
  std::string reason;
};

// Errors of one (stage, accelerator, family) before and after.
struct CalibrationGroup {
  std::string stage;  // "operators", "collectives", "framework"
  std::string accelerator;
  std::string family;
  int64_t row_count = 0;
  double initial_mape_percent = 0;              // under the initial set
  double train_mape_percent = 0;                // under the new set
  std::optional<double> held_out_mape_percent;  // each fold under a set fitted without it
};

struct CalibrationReport {
  std::string name;
  std::string initial_version;
  std::string version;
  int64_t offered_row_count = 0;  // role fit and good quality
  int64_t used_row_count = 0;
  std::vector<RefusedRow> refused;
  std::vector<CalibrationGroup> groups;
  // Row-weighted means over all groups that have a held-out error.
  std::optional<double> initial_mape_percent;
  std::optional<double> held_out_mape_percent;
  bool improved = false;           // held-out error is not worse than the initial set's
  std::vector<std::string> notes;  // what the fit left alone and why
};

struct CalibrationResult {
  std::shared_ptr<const parameters::ParameterSet> set;
  CalibrationReport report;
};

// Fits a new set from `initial` in stages: operators, collectives, then what frameworks add, each
// on top of the stage before, so that end-to-end rows do not repair wrong kernels. Only rows with
// role fit and good quality; rows that are not positive, duplicate another's settings in their
// source, or beat physics are refused with a reason. Judged on whole groups held out: kernels by
// shape, collectives by (suite, profile, GPUs, kind), jobs by model.
// Values that had no rows are kept from `initial`. Deterministic; the time of day is nowhere.
// INVALID_ARGUMENT where no row is usable.
absl::StatusOr<CalibrationResult> Calibrate(const Measurements& measurements,
                                            const parameters::ParameterSet& initial,
                                            const CalibrationOptions& options = {});

// The report for people, and as one JSON document.
std::string CalibrationReportText(const CalibrationReport& report);
std::string CalibrationReportJson(const CalibrationReport& report);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_CALIBRATE_CALIBRATE_H_
