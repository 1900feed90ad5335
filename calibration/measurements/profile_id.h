// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_MEASUREMENTS_PROFILE_ID_H_
#define SEXTANT_CALIBRATION_MEASUREMENTS_PROFILE_ID_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sextant::calibration {

// Profile id of a software or framework as a source writes it: lower case, what stands in
// parentheses dropped, blanks to '-'. "TRTLLM 1.3.0rc20" -> "trtllm-1.3.0rc20",
// "FlashInfer / vLLM (Frontier)" -> "flashinfer-/-vllm". Empty stays empty.
std::string ProfileId(absl::string_view software);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_MEASUREMENTS_PROFILE_ID_H_
