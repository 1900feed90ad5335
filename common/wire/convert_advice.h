// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_CONVERT_ADVICE_H_
#define SEXTANT_COMMON_WIRE_CONVERT_ADVICE_H_

#include "absl/status/statusor.h"
#include "common/advise/advise.h"
#include "sextant/types/v1/advice.pb.h"

namespace sextant::wire {

// As convert.h. Rules between values are advise::Advise's.
types::v1::AdviceOptions ToProto(const advise::AdviceOptions& options);
absl::StatusOr<advise::AdviceOptions> FromProto(const types::v1::AdviceOptions& proto);

types::v1::Advice ToProto(const advise::Advice& advice);
absl::StatusOr<advise::Advice> FromProto(const types::v1::Advice& proto);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_CONVERT_ADVICE_H_
