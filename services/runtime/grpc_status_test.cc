// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/grpc_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace sextant::runtime {
namespace {

TEST(GrpcStatus, EveryCodeSurvivesTheRoundTripWithItsMessage) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    EXPECT_EQ(static_cast<int>(ToGrpcStatus(status).error_code()), code);
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
}

TEST(GrpcStatus, TheTimeToWaitTravelsAsRetryInfo) {
  const absl::Status status =
      RetryLater(absl::ResourceExhaustedError("busy"), absl::Milliseconds(1250));
  const grpc::Status sent = ToGrpcStatus(status);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(sent.error_details()));
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(1).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 250000000);
  EXPECT_EQ(FromGrpcStatus(sent), status);
  EXPECT_EQ(RetryDelay(FromGrpcStatus(sent)), absl::Milliseconds(1250));
  EXPECT_EQ(RetryDelay(absl::ResourceExhaustedError("large")), absl::ZeroDuration());
}

TEST(GrpcStatus, ViolationsSurviveTheRoundTrip) {
  base::Violations violations;
  violations.Add("plan.tensor_parallel_size", "is 3 but must divide 32; use 1, 2 or 4");
  violations.Add("gpu_count", "is 0 but must be at least 1");
  const absl::Status back = FromGrpcStatus(ToGrpcStatus(violations.ToStatus()));
  EXPECT_EQ(back.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::ViolationsOf(back), violations.items());
  EXPECT_EQ(back.message(), violations.ToStatus().message());
}

TEST(GrpcStatus, DetailsAreAGoogleRpcStatusWithErrorInfo) {
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(ToGrpcStatus(absl::NotFoundError("x")).error_details()));
  EXPECT_EQ(details.code(), 5);
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.domain(), "sextant");
  EXPECT_EQ(info.reason(), "NOT_FOUND");
}

TEST(GrpcStatus, ManyViolationsFitIntoATrailerAndTheRestIsCounted) {
  base::Violations violations;
  for (int i = 0; i < 10000; ++i) {
    violations.Add(absl::StrCat("operators[", i, "].gemm.m"), "is 0 but must be at least 1");
  }
  const grpc::Status wire = ToGrpcStatus(violations.ToStatus());
  // 8 KiB is what a gRPC peer accepts by default; binary trailers grow by a third in base64.
  EXPECT_LT(wire.error_message().size() + wire.error_details().size() * 4 / 3, 7u * 1024);
  const auto items = base::ViolationsOf(FromGrpcStatus(wire));
  ASSERT_GE(items.size(), 10u);
  EXPECT_EQ(items[0], violations.items()[0]);
  EXPECT_EQ(items.back().description,
            absl::StrCat("and ", 10000 - (items.size() - 1), " more violations, not sent"));
}

TEST(GrpcStatus, ForeignDetailsAreIgnored) {
  const grpc::Status wire(grpc::StatusCode::UNAVAILABLE, "down", "not a protobuf \xff\xff");
  EXPECT_EQ(FromGrpcStatus(wire), absl::UnavailableError("down"));
}

}  // namespace
}  // namespace sextant::runtime
