// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_CONVERT_CONCURRENT_H_
#define SEXTANT_COMMON_WIRE_CONVERT_CONCURRENT_H_

#include "absl/status/statusor.h"
#include "common/collectives/concurrent.h"
#include "sextant/types/v1/concurrent.pb.h"

namespace sextant::wire {

// As convert.h. Group sizes and strides become groups; of faults, patterns and dead switches have a
// message. Rules between values are TimeConcurrent's.
types::v1::ConcurrentCollectives ToProto(const collectives::ConcurrentCollectives& question);
absl::StatusOr<collectives::ConcurrentCollectives> FromProto(
    const types::v1::ConcurrentCollectives& proto);

types::v1::ConcurrentTimes ToProto(const collectives::ConcurrentTimes& times);
absl::StatusOr<collectives::ConcurrentTimes> FromProto(const types::v1::ConcurrentTimes& proto);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_CONVERT_CONCURRENT_H_
