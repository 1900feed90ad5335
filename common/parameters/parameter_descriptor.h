// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_PARAMETERS_PARAMETER_DESCRIPTOR_H_
#define SEXTANT_COMMON_PARAMETERS_PARAMETER_DESCRIPTOR_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sextant::parameters {

// One parameter of a formula: what it means and which values are physical. A formula's room
// declares its descriptors beside its parameter struct, in the order of the struct's members.
struct ParameterDescriptor {
  absl::string_view name;     // within its block: "peak_efficiency", "launch_seconds"
  double initial;             // used where nothing was fitted; a literature or datasheet value
  double lower;               // smallest physical value
  double upper;               // largest physical value
  absl::string_view meaning;  // one sentence, with unit
};

// A descriptor under its full key, "<block>.<name>", for example "gemm.16bit.peak_efficiency".
// A block is an operator family (and precision), a collective family, or a framework part.
struct KeyedDescriptor {
  std::string key;
  ParameterDescriptor descriptor;
};

}  // namespace sextant::parameters

#endif  // SEXTANT_COMMON_PARAMETERS_PARAMETER_DESCRIPTOR_H_
