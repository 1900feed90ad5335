// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/grpc_status.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/violations.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sextant::runtime {
namespace {

constexpr char kDomain[] = "sextant";
constexpr char kOmitted[] = "violations_omitted";
constexpr char kRetryPayload[] = "type.sextant/retry_after";
constexpr size_t kMessageBudgetBytes = 1024;
constexpr size_t kViolationsBudgetBytes = 3 * 1024;  // base64 of a binary trailer adds a third

struct WireCode {
  grpc::StatusCode code;
  const char* reason;
};

WireCode ToWire(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return {grpc::StatusCode::OK, ""};
    case absl::StatusCode::kCancelled:
      return {grpc::StatusCode::CANCELLED, "CANCELLED"};
    case absl::StatusCode::kInvalidArgument:
      return {grpc::StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST"};
    case absl::StatusCode::kDeadlineExceeded:
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"};
    case absl::StatusCode::kNotFound:
      return {grpc::StatusCode::NOT_FOUND, "NOT_FOUND"};
    case absl::StatusCode::kAlreadyExists:
      return {grpc::StatusCode::ALREADY_EXISTS, "ALREADY_EXISTS"};
    case absl::StatusCode::kPermissionDenied:
      return {grpc::StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED"};
    case absl::StatusCode::kResourceExhausted:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"};
    case absl::StatusCode::kFailedPrecondition:
      return {grpc::StatusCode::FAILED_PRECONDITION, "FAILED_PRECONDITION"};
    case absl::StatusCode::kAborted:
      return {grpc::StatusCode::ABORTED, "ABORTED"};
    case absl::StatusCode::kOutOfRange:
      return {grpc::StatusCode::OUT_OF_RANGE, "OUT_OF_RANGE"};
    case absl::StatusCode::kUnimplemented:
      return {grpc::StatusCode::UNIMPLEMENTED, "UNIMPLEMENTED"};
    case absl::StatusCode::kInternal:
      return {grpc::StatusCode::INTERNAL, "INTERNAL"};
    case absl::StatusCode::kUnavailable:
      return {grpc::StatusCode::UNAVAILABLE, "UNAVAILABLE"};
    case absl::StatusCode::kDataLoss:
      return {grpc::StatusCode::DATA_LOSS, "DATA_LOSS"};
    case absl::StatusCode::kUnauthenticated:
      return {grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED"};
    case absl::StatusCode::kUnknown:
    default:
      return {grpc::StatusCode::UNKNOWN, "UNKNOWN"};
  }
}

absl::StatusCode FromWire(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return absl::StatusCode::kOk;
    case grpc::StatusCode::CANCELLED:
      return absl::StatusCode::kCancelled;
    case grpc::StatusCode::INVALID_ARGUMENT:
      return absl::StatusCode::kInvalidArgument;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::StatusCode::kDeadlineExceeded;
    case grpc::StatusCode::NOT_FOUND:
      return absl::StatusCode::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return absl::StatusCode::kAlreadyExists;
    case grpc::StatusCode::PERMISSION_DENIED:
      return absl::StatusCode::kPermissionDenied;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return absl::StatusCode::kResourceExhausted;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return absl::StatusCode::kFailedPrecondition;
    case grpc::StatusCode::ABORTED:
      return absl::StatusCode::kAborted;
    case grpc::StatusCode::OUT_OF_RANGE:
      return absl::StatusCode::kOutOfRange;
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::StatusCode::kUnimplemented;
    case grpc::StatusCode::INTERNAL:
      return absl::StatusCode::kInternal;
    case grpc::StatusCode::UNAVAILABLE:
      return absl::StatusCode::kUnavailable;
    case grpc::StatusCode::DATA_LOSS:
      return absl::StatusCode::kDataLoss;
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::StatusCode::kUnauthenticated;
    case grpc::StatusCode::UNKNOWN:
    default:
      return absl::StatusCode::kUnknown;
  }
}

// At most `budget` bytes of `text`, not ending inside a UTF-8 sequence.
std::string Cut(absl::string_view text, size_t budget) {
  if (text.size() <= budget) return std::string(text);
  size_t end = budget;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

}  // namespace

std::string StatusName(grpc::StatusCode code) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  const int index = code;
  if (index < 0 || index > 16) return "UNKNOWN";
  return kNames[index];
}

absl::Status RetryLater(absl::Status status, absl::Duration delay) {
  status.SetPayload(kRetryPayload, absl::Cord(absl::FormatDuration(delay)));
  return status;
}

absl::Duration RetryDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  absl::Duration delay;
  if (!payload.has_value() || !absl::ParseDuration(std::string(*payload), &delay)) {
    return absl::ZeroDuration();
  }
  return delay;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const WireCode wire = ToWire(status.code());
  const std::string message = Cut(status.message(), kMessageBudgetBytes);
  google::rpc::ErrorInfo info;
  info.set_reason(wire.reason);
  info.set_domain(kDomain);
  google::rpc::BadRequest bad_request;
  size_t used = 0;
  size_t omitted = 0;
  for (const base::Violation& violation : base::ViolationsOf(status)) {
    const std::string field = Cut(violation.field, kMessageBudgetBytes / 2);
    const std::string description = Cut(violation.description, kMessageBudgetBytes);
    const size_t size = field.size() + description.size() + 8;
    if (omitted > 0 || used + size > kViolationsBudgetBytes) {
      ++omitted;
      continue;
    }
    used += size;
    auto* item = bad_request.add_field_violations();
    item->set_field(field);
    item->set_description(description);
  }
  if (omitted > 0) (*info.mutable_metadata())[kOmitted] = absl::StrCat(omitted);
  google::rpc::Status details;
  details.set_code(wire.code);
  // The trailer repeats only what is short: the message itself travels in grpc-message.
  details.set_message(Cut(status.message(), 256));
  details.add_details()->PackFrom(info);
  if (bad_request.field_violations_size() > 0) details.add_details()->PackFrom(bad_request);
  if (const absl::Duration delay = RetryDelay(status); delay > absl::ZeroDuration()) {
    google::rpc::RetryInfo retry;
    absl::Duration rest;
    retry.mutable_retry_delay()->set_seconds(absl::IDivDuration(delay, absl::Seconds(1), &rest));
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
    details.add_details()->PackFrom(retry);
  }
  return grpc::Status(wire.code, message, details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const absl::StatusCode code = FromWire(status.error_code());
  google::rpc::Status details;
  base::Violations violations;
  std::string omitted;
  absl::Duration delay;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    for (const auto& any : details.details()) {
      google::rpc::BadRequest bad_request;
      google::rpc::ErrorInfo info;
      google::rpc::RetryInfo retry;
      if (any.Is<google::rpc::BadRequest>() && any.UnpackTo(&bad_request)) {
        for (const auto& item : bad_request.field_violations()) {
          violations.Add(item.field(), item.description());
        }
      } else if (any.Is<google::rpc::ErrorInfo>() && any.UnpackTo(&info)) {
        const auto found = info.metadata().find(kOmitted);
        if (found != info.metadata().end()) omitted = found->second;
      } else if (any.Is<google::rpc::RetryInfo>() && any.UnpackTo(&retry)) {
        delay = absl::Seconds(retry.retry_delay().seconds()) +
                absl::Nanoseconds(retry.retry_delay().nanos());
      }
    }
  }
  if (violations.empty()) {
    absl::Status plain(code, status.error_message());
    return delay > absl::ZeroDuration() ? RetryLater(std::move(plain), delay) : plain;
  }
  if (!omitted.empty()) {
    violations.Add("", absl::StrCat("and ", omitted, " more violations, not sent"));
  }
  return violations.ToStatus(code);
}

}  // namespace sextant::runtime
