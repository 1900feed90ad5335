// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_CONVERT_ECONOMICS_H_
#define SEXTANT_COMMON_WIRE_CONVERT_ECONOMICS_H_

#include "absl/status/statusor.h"
#include "common/energy/energy.h"
#include "sextant/types/v1/economics.pb.h"

namespace sextant::wire {

// As convert.h. Rules between values are ValidateEconomics'.
types::v1::Economics ToProto(const energy::Economics& economics);
absl::StatusOr<energy::Economics> FromProto(const types::v1::Economics& proto);

types::v1::Estimate ToProto(const energy::Estimate& estimate);
absl::StatusOr<energy::Estimate> FromProto(const types::v1::Estimate& proto);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_CONVERT_ECONOMICS_H_
