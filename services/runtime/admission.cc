// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/admission.h"

#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/runtime/grpc_status.h"

namespace sextant::runtime {
namespace {

std::atomic<int> max_calls{192};
std::atomic<int> calls{0};

// Several times what a prediction takes.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

}  // namespace

void SetMaxCallsInProgress(int count) { max_calls = count; }

Admission::Admission(const grpc::ServerContext& context) {
  if (absl::StartsWith(context.peer(), "inproc")) return;
  counted_ = true;
  admitted_ = ++calls <= max_calls;
}

Admission::~Admission() {
  if (counted_) --calls;
}

absl::Status Admission::status() const {
  if (admitted_) return absl::OkStatus();
  return RetryLater(absl::ResourceExhaustedError(
                        absl::StrCat("works on ", max_calls.load(),
                                     " calls already; try again later, or ask another instance")),
                    kRetryAfter);
}

}  // namespace sextant::runtime
