// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_CALL_H_
#define SEXTANT_SERVICES_RUNTIME_CALL_H_

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "services/runtime/admission.h"
#include "services/runtime/grpc_status.h"
#include "services/runtime/request_id.h"

namespace sextant::runtime {

// Longest time that one call may take, whatever its client asked for.
inline constexpr std::chrono::milliseconds kDefaultDeadline{30000};

// What a handler knows of its call. A call without a deadline gets one.
class Call {
 public:
  Call(grpc::ServerContext& context, std::chrono::milliseconds default_deadline)
      : context_(context),
        deadline_(
            std::min(context.deadline(), std::chrono::system_clock::now() + default_deadline)),
        request_id_(RequestIdOf(context)) {
    context_.AddTrailingMetadata(kRequestIdKey, request_id_);
  }

  std::chrono::system_clock::time_point deadline() const { return deadline_; }
  grpc::ServerContext& context() { return context_; }
  const std::string& request_id() const { return request_id_; }

  // OK while an answer is still wanted. Poll between pieces of work.
  absl::Status Check() const {
    if (context_.IsCancelled() && std::chrono::system_clock::now() < deadline_) {
      return absl::CancelledError("the caller went away");
    }
    if (std::chrono::system_clock::now() >= deadline_) {
      return absl::DeadlineExceededError("the deadline passed before the answer was ready");
    }
    return absl::OkStatus();
  }

 private:
  grpc::ServerContext& context_;
  std::chrono::system_clock::time_point deadline_;
  std::string request_id_;
};

// Runs a handler `absl::Status(Call&)`: refuses a call that is one too many (Admission) or whose
// deadline has passed, and turns what
// comes out (an exception of a library included) into the status for the wire.
template <typename Handler>
grpc::Status Answer(grpc::ServerContext* context, std::chrono::milliseconds default_deadline,
                    Handler&& handler) {
  Call call(*context, default_deadline);
  const Admission admission(*context);
  absl::Status status = admission.status();
  if (status.ok()) status = call.Check();
  try {
    if (status.ok()) status = handler(call);
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("the request needs more memory than there is");
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  return ToGrpcStatus(status);
}

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_CALL_H_
