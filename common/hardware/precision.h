// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_HARDWARE_PRECISION_H_
#define SEXTANT_COMMON_HARDWARE_PRECISION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sextant::hardware {

// Number formats of operands. kTf32 is fp32 storage multiplied on tensor cores.
enum class Precision : int { kFp32, kTf32, kFp16, kBf16, kFp8, kInt8, kFp4, kInt4 };
inline constexpr int kPrecisionCount = 8;

// Bytes of one stored element, without quantisation scales: 4, 4, 2, 2, 1, 1, 0.5, 0.5.
double BytesPerElement(Precision precision);

// "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4".
absl::string_view PrecisionName(Precision precision);
// Inverse of PrecisionName; INVALID_ARGUMENT lists the known names.
absl::StatusOr<Precision> ParsePrecision(absl::string_view name);
std::vector<std::string> PrecisionNames();

}  // namespace sextant::hardware

#endif  // SEXTANT_COMMON_HARDWARE_PRECISION_H_
