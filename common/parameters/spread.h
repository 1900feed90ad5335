// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_PARAMETERS_SPREAD_H_
#define SEXTANT_COMMON_PARAMETERS_SPREAD_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/parameters/parameter_descriptor.h"
#include "common/parameters/parameter_set.h"

namespace sextant::parameters {

// How far do measurements lie from a prediction? Ends of the shortest interval that holds 90 % of
// ln(measured / predicted): for kernels and collectives of rows held out of the fit, for whole steps
// and requests of fitted rows, widened for their number. low_log <= 0 <= high_log. The two sides
// differ: what a model forgets makes measurements longer.
struct Spread {
  double low_log = 0;
  double high_log = 0;

  friend bool operator==(const Spread&, const Spread&) = default;
};

// A 90 % interval, in the unit of the prediction.
struct Interval {
  double low = 0;
  double high = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

// Outside the domain of a fit (sizes beyond its rows, an accelerator that nobody measured) both
// sides are longer by this factor: a convention, not a fitted number. Rows of a group are scored in units of it, so that groups which
// always lie outside (fitted on a sibling's rows alone) keep their coverage.
inline constexpr double kExtrapolatedWidening = 1.5;
inline double Widening(bool extrapolated) { return extrapolated ? kExtrapolatedWidening : 1; }

// The interval around `prediction` >= 0; it holds the prediction.
Interval IntervalAround(double prediction, const Spread& spread, bool extrapolated);

// Keys of a spread: "interval.<block>.low_log" and "interval.<block>.high_log".
std::string LowKey(absl::string_view block);
std::string HighKey(absl::string_view block);

// The spread of `block` for (source, profile): the profile's, else the accelerator's shared one
// (that of a software nobody measured), else `prior`. O(log set).
Spread FindSpread(const ParameterSet& set, const ParameterSource& source, absl::string_view profile,
                  absl::string_view block, const Spread& prior);

// Appends both descriptors of a block's spread, `prior` as initial values.
void AppendSpreadDescriptors(absl::string_view block, const Spread& prior,
                             std::vector<KeyedDescriptor>& descriptors);

}  // namespace sextant::parameters

#endif  // SEXTANT_COMMON_PARAMETERS_SPREAD_H_
