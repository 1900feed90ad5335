// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_CONVERT_TECHNOLOGY_H_
#define SEXTANT_COMMON_WIRE_CONVERT_TECHNOLOGY_H_

#include "common/hardware/what_if.h"
#include "sextant/types/v1/technology.pb.h"

namespace sextant::wire {

// Rules are ValidateTechnologies' and Apply's.
hardware::Technologies FromProto(const types::v1::Technologies& proto);
hardware::WhatIf FromProto(const types::v1::WhatIf& proto);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_CONVERT_TECHNOLOGY_H_
