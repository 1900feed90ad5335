// SPDX-License-Identifier: Apache-2.0
#include "common/base/nearest.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NearestNames, FewestEditsFirst) {
  EXPECT_THAT(NearestNames("lama-2-7b", {"mixtral-8x7b", "llama-2-70b", "llama-2-7b"}, 2),
              ElementsAre("llama-2-7b", "llama-2-70b"));
}

TEST(NearestNames, APartOfAKnownNameIsNearIt) {
  EXPECT_THAT(NearestNames("H100", {"a100", "h100-sxm5-80gb"}, 1), ElementsAre("h100-sxm5-80gb"));
}

TEST(UnknownName, SaysWhatWasAskedAndWhatIsNear) {
  const absl::Status status = UnknownName("accelerator", "h10", {"h100"});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("unknown accelerator \"h10\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean \"h100\""));
}

}  // namespace
}  // namespace sextant::base
