// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/calibrator.h"

#include "calibration/calibrate/calibrate.h"
#include "common/base/status_macros.h"
#include "common/catalog/catalog.h"
#include "services/calibration/measurement_files.h"

namespace sextant::calibration_service {
namespace {

absl::StatusOr<CalibrationOutcome> Run(const std::string& datasets_directory,
                                       const CalibrationInput& input) {
  SEXTANT_ASSIGN_OR_RETURN(const auto catalog, catalog::Catalog::Open(datasets_directory));
  SEXTANT_ASSIGN_OR_RETURN(const auto measurements, TypedMeasurements(input.rows, catalog));
  if (input.progress && !input.progress("fitting", 0)) {
    return absl::CancelledError("the job was cancelled");
  }
  SEXTANT_ASSIGN_OR_RETURN(const auto result,
                           sextant::calibration::Calibrate(measurements, *input.initial));
  CalibrationOutcome outcome;
  outcome.set = result.set;
  outcome.publish = result.report.improved;
  outcome.initial_held_out_mape_percent = result.report.initial_mape_percent;
  outcome.held_out_mape_percent = result.report.held_out_mape_percent;
  outcome.used_row_count = result.report.used_row_count;
  outcome.refused_row_count = static_cast<int64_t>(result.report.refused.size());
  outcome.report = sextant::calibration::CalibrationReportText(result.report);
  return outcome;
}

}  // namespace

Calibrator DefaultCalibrator(const std::string& datasets_directory) {
  const std::string directory =
      datasets_directory.empty() ? catalog::DefaultDatasetsDirectory() : datasets_directory;
  return [directory](const CalibrationInput& input) { return Run(directory, input); };
}

}  // namespace sextant::calibration_service
