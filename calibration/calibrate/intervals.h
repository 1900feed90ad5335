// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_CALIBRATE_INTERVALS_H_
#define SEXTANT_CALIBRATION_CALIBRATE_INTERVALS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "calibration/evaluate/validate.h"
#include "calibration/measurements/rows.h"
#include "common/parameters/parameter_set.h"

namespace sextant::calibration {

// How far one measured number lay from a prediction, and which spread it says something about.
struct Residual {
  std::string key;          // kind, id and metric of the number; empty where the row has no id
  std::string owner;        // accelerator in the set whose parameters answered
  std::string accelerator;  // where it was measured
  std::string profile;
  std::string block;     // of its spread
  double log_ratio = 0;  // ln(measured / predicted), in units of the widening that applied
  bool extrapolated = false;
};

// The residuals of `report`, which answers `rows` in their order. In the order of the rows; numbers
// without a prediction are left out, and throughputs, which say the same as the total.
std::vector<Residual> ResidualsOf(const Measurements& rows, const ValidationReport& report);

// `set` with a note of which accelerators each block was measured on: `rows` were fitted into it.
parameters::ParameterSet WithMeasuredBlocks(const parameters::ParameterSet& set,
                                            const Measurements& rows);

// The residuals of `held_out` where a set fitted without the row judged it inside its domain, or
// the final set puts it outside too; else those of `fitted`, rows of the final set. Whole steps and
// requests of one framework know too few models to hold some out: always `fitted`. Both lists as of
// ResidualsOf.
std::vector<Residual> Unseen(absl::Span<const Residual> fitted,
                             absl::Span<const Residual> held_out);

// `rows` as a software that nobody measured: no profile.
Measurements WithoutProfiles(Measurements rows);

// `set` with the spreads of every block that has residuals. `own` are residuals under the rows' own
// profiles; `unknown` those of kernels and collectives under shared values, which give the spread
// of software nobody measured. The shortest intervals that hold their share of rows; small groups
// are drawn towards the block's spread over all accelerators and profiles, and that towards its
// initial value.
parameters::ParameterSet WithSpreads(const parameters::ParameterSet& set,
                                     absl::Span<const Residual> own,
                                     absl::Span<const Residual> unknown);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_CALIBRATE_INTERVALS_H_
