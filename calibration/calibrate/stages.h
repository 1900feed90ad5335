// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_CALIBRATE_STAGES_H_
#define SEXTANT_CALIBRATION_CALIBRATE_STAGES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibration/calibrate/calibrate.h"
#include "calibration/measurements/rows.h"
#include "common/parameters/parameter_set.h"

namespace sextant::calibration {

// Runs the stages of `options` over rows that were screened, each on the set of the one before.
// Accelerators with a donor are fitted as their donor: efficiencies are shares of each row's own
// rates, and one set of numbers per chip is what the rows support. `notes` may be null.
absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> FitStages(
    const Measurements& rows, const parameters::ParameterSet& initial,
    parameters::Provenance provenance, const CalibrationOptions& options,
    std::vector<std::string>* notes);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_CALIBRATE_STAGES_H_
