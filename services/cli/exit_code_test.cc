// SPDX-License-Identifier: Apache-2.0
#include "services/cli/exit_code.h"

#include "gtest/gtest.h"

namespace sextant::cli {
namespace {

TEST(ExitCodeOf, FollowsTheDocumentedTable) {
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kOk), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kInvalidArgument), ExitCode::kInvalidInput);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kNotFound), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kUnavailable), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kDeadlineExceeded), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::StatusCode::kInternal), ExitCode::kInternal);
}

TEST(ExitCodeOf, OnlySuccessIsZero) {
  for (int code = 1; code <= 16; ++code) {
    EXPECT_NE(ExitCodeOf(static_cast<absl::StatusCode>(code)), ExitCode::kOk) << code;
  }
}

}  // namespace
}  // namespace sextant::cli
