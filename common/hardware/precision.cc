// SPDX-License-Identifier: Apache-2.0
#include "common/hardware/precision.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sextant::hardware {
namespace {

constexpr std::array<absl::string_view, kPrecisionCount> kNames = {"fp32", "tf32", "fp16", "bf16",
                                                                   "fp8",  "int8", "fp4",  "int4"};
constexpr std::array<double, kPrecisionCount> kBytes = {4, 4, 2, 2, 1, 1, 0.5, 0.5};

}  // namespace

double BytesPerElement(Precision precision) { return kBytes[static_cast<size_t>(precision)]; }

absl::string_view PrecisionName(Precision precision) {
  return kNames[static_cast<size_t>(precision)];
}

absl::StatusOr<Precision> ParsePrecision(absl::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Precision>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(kNames, ", ")));
}

std::vector<std::string> PrecisionNames() { return {kNames.begin(), kNames.end()}; }

}  // namespace sextant::hardware
