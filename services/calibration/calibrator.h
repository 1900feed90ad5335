// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_CALIBRATOR_H_
#define SEXTANT_SERVICES_CALIBRATION_CALIBRATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/parameters/parameter_set.h"
#include "services/calibration/store/record_store.h"

namespace sextant::calibration_service {

struct CalibrationInput {
  std::vector<MeasurementRecord> rows;
  std::shared_ptr<const parameters::ParameterSet> initial;
  // Told of each step: its name and the share of it that is done. False: stop with CANCELLED.
  std::function<bool(absl::string_view phase, double fraction)> progress;
};

struct CalibrationOutcome {
  std::shared_ptr<const parameters::ParameterSet> set;
  bool publish = false;  // the held-out error did not get worse
  std::optional<double> initial_held_out_mape_percent;
  std::optional<double> held_out_mape_percent;
  int64_t used_row_count = 0;
  int64_t refused_row_count = 0;
  std::string report;
};

// The seam between this service and the room that fits. Called on one thread at a time.
using Calibrator = std::function<absl::StatusOr<CalibrationOutcome>(const CalibrationInput& input)>;

// The calibration of this suite.
Calibrator DefaultCalibrator(const std::string& datasets_directory);

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_CALIBRATOR_H_
