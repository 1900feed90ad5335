// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_DEVICE_NAMES_H_
#define SEXTANT_CALIBRATION_INGEST_DEVICE_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sextant::ingest {

// The catalog's id of an accelerator as drivers spell it: "NVIDIA H100 80GB HBM3" is
// h100-sxm5-80gb. Empty where the name does not tell one catalog entry ("A100-PG509-200").
std::string AcceleratorOfDevice(absl::string_view device);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_DEVICE_NAMES_H_
