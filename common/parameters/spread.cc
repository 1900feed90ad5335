// SPDX-License-Identifier: Apache-2.0
#include "common/parameters/spread.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace sextant::parameters {
namespace {

constexpr double kWidestLog = 5;  // a factor of 148

}  // namespace

Interval IntervalAround(double prediction, const Spread& spread, bool extrapolated) {
  const double widening = Widening(extrapolated);
  return {prediction * std::exp(widening * spread.low_log),
          prediction * std::exp(widening * spread.high_log)};
}

std::string LowKey(absl::string_view block) { return absl::StrCat("interval.", block, ".low_log"); }
std::string HighKey(absl::string_view block) {
  return absl::StrCat("interval.", block, ".high_log");
}

Spread FindSpread(const ParameterSet& set, const ParameterSource& source, absl::string_view profile,
                  absl::string_view block, const Spread& prior) {
  return {set.Find(source.accelerator, profile, LowKey(block)).value_or(prior.low_log),
          set.Find(source.accelerator, profile, HighKey(block)).value_or(prior.high_log)};
}

void AppendSpreadDescriptors(absl::string_view block, const Spread& prior,
                             std::vector<KeyedDescriptor>& descriptors) {
  descriptors.push_back({LowKey(block),
                         {"low_log", prior.low_log, -kWidestLog, 0,
                          "Low end of 90 % of ln(measured / predicted) of rows not fitted"}});
  descriptors.push_back({HighKey(block),
                         {"high_log", prior.high_log, 0, kWidestLog,
                          "High end of 90 % of ln(measured / predicted) of rows not fitted"}});
}

}  // namespace sextant::parameters
