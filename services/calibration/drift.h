// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_DRIFT_H_
#define SEXTANT_SERVICES_CALIBRATION_DRIFT_H_

#include <cstdint>

#include "absl/types/span.h"

namespace sextant::calibration_service {

// What a window of signed errors (predicted over measured minus one; percent) says.
struct DriftTest {
  double mape_percent = 0;
  double trimmed_mape_percent = 0;  // without the largest error: one outlier does not move it
  double bias_percent = 0;          // median
  double p_value = 1;
  bool drifted = false;
};

// Have predictions moved away from what is measured? A sign test: the share of errors beyond half
// of `threshold_percent` on the side of the median, against a half (Dixon and Mood 1946). Drift is
// a median beyond the threshold that has less than one chance in a thousand; so fewer than ten
// errors never make one, and an outlier among good errors changes neither. O(n log n).
DriftTest TestDrift(absl::Span<const double> errors_percent, double threshold_percent);

// Where the errors began to differ: the index k for which the means of [0, k) and [k, n) lie
// furthest apart for their scatter. 0 where the part before is drifted too. Errors in order of
// time. O(n).
int64_t ChangePoint(absl::Span<const double> errors_percent, double threshold_percent);

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_DRIFT_H_
