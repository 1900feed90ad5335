// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_CONVERT_SWEEP_H_
#define SEXTANT_COMMON_WIRE_CONVERT_SWEEP_H_

#include "absl/status/statusor.h"
#include "common/sweep/report.h"
#include "sextant/types/v1/sweep.pb.h"

namespace sextant::wire {

// Answers of sweeps to messages and back, as convert.h does: FromProto(ToProto(x)) equals x, bit for
// bit, and FromProto reports everything that has no domain value. Of a plan only what sweeps choose
// travels.
types::v1::SweepReport ToProto(const sweep::SweepReport& report);
absl::StatusOr<sweep::SweepReport> FromProto(const types::v1::SweepReport& proto);

types::v1::SweepSpec ToProto(const sweep::SweepSpec& spec);
absl::StatusOr<sweep::SweepSpec> FromProto(const types::v1::SweepSpec& proto);

types::v1::SweepRow ToProto(const sweep::ReportRow& row);
absl::StatusOr<sweep::ReportRow> FromProto(const types::v1::SweepRow& proto);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_CONVERT_SWEEP_H_
