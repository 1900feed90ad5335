// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/calibrator.h"

#include "absl/status/status.h"

namespace sextant::calibration_service {

Calibrator DefaultCalibrator(const std::string&) {
  return [](const CalibrationInput&) -> absl::StatusOr<CalibrationOutcome> {
    return absl::UnimplementedError("this server was built without calibration");
  };
}

}  // namespace sextant::calibration_service
