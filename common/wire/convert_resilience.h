// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_CONVERT_RESILIENCE_H_
#define SEXTANT_COMMON_WIRE_CONVERT_RESILIENCE_H_

#include "absl/status/statusor.h"
#include "common/resilience/fault_study.h"
#include "common/resilience/goodput.h"
#include "sextant/types/v1/fault_report.pb.h"
#include "sextant/types/v1/reliability.pb.h"

namespace sextant::wire {

// As convert.h. Rules between values are ValidateGoodputQuestion's.
absl::StatusOr<resilience::ReliabilityProfile> FromProto(
    const types::v1::ReliabilityProfile& proto);

// What a goodput fills of a report; question and throughput are the caller's.
types::v1::PartFault ToProto(const resilience::RankedFault& fault);
types::v1::RandomFaultOutcome ToProto(const resilience::RandomOutcome& outcome);
types::v1::MappingRobustness ToProto(const resilience::MappingOutcome& outcome,
                                     const workload::ParallelPlan& plan);
types::v1::GoodputReport ToProto(const resilience::Goodput& goodput);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_CONVERT_RESILIENCE_H_
