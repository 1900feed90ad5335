// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_GRPC_STATUS_H_
#define SEXTANT_SERVICES_RUNTIME_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace sextant::runtime {

// A status for the wire. The violations it carries travel as google.rpc.BadRequest and the code as
// google.rpc.ErrorInfo (domain "sextant"; reason INVALID_REQUEST, NOT_FOUND, DEADLINE_EXCEEDED,
// UNAVAILABLE, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, CANCELLED, ABORTED, OUT_OF_RANGE,
// ALREADY_EXISTS, PERMISSION_DENIED, UNAUTHENTICATED, UNIMPLEMENTED, DATA_LOSS, UNKNOWN or
// INTERNAL). A trailer is sent as a header, of which peers accept 8 KiB in all: violations beyond
// about half of that are left out, and ErrorInfo.metadata["violations_omitted"] counts them.
grpc::Status ToGrpcStatus(const absl::Status& status);

// "OK", "INVALID_ARGUMENT", ...; "UNKNOWN" for what is no code.
std::string StatusName(grpc::StatusCode code);

// `status` with the advice to try again after `delay`, which travels as google.rpc.RetryInfo.
absl::Status RetryLater(absl::Status status, absl::Duration delay);
// That advice; zero where there is none.
absl::Duration RetryDelay(const absl::Status& status);

// The inverse: base::ViolationsOf gives the violations that were sent. Where some were left out,
// one more violation with an empty field says how many.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_GRPC_STATUS_H_
