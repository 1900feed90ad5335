// SPDX-License-Identifier: Apache-2.0
#include "common/base/violations.h"

#include <limits>

#include "gtest/gtest.h"

namespace sextant::base {
namespace {

TEST(Violations, NoViolationIsOk) { EXPECT_TRUE(Violations().ToStatus().ok()); }

TEST(Violations, AllViolationsReachTheMessageAndComeBack) {
  Violations violations;
  violations.Add("plan.tensor_parallel_size", "is 3 but must divide 32");
  violations.Add("gpu_count", "is 0 but must be at least 1");
  const absl::Status status = violations.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "plan.tensor_parallel_size: is 3 but must divide 32\n"
            "gpu_count: is 0 but must be at least 1");
  EXPECT_EQ(ViolationsOf(status), violations.items());
}

TEST(Violations, ForeignStatusCarriesNone) {
  EXPECT_TRUE(ViolationsOf(absl::NotFoundError("x")).empty());
}

TEST(Violations, StatusesMerge) {
  Violations inner;
  inner.Add("model.layer_count", "is missing");
  Violations outer;
  outer.AddStatus("model", inner.ToStatus());
  outer.AddStatus("cluster", absl::NotFoundError("unknown"));
  ASSERT_EQ(outer.items().size(), 2u);
  EXPECT_EQ(outer.items()[0].field, "model.layer_count");
  EXPECT_EQ(outer.items()[1].field, "cluster");
}

TEST(Violations, NotANumberIsNotAtLeastAnything) {
  Violations violations;
  EXPECT_FALSE(violations.RequireAtLeast("x", std::numeric_limits<double>::quiet_NaN(), 0.0));
  EXPECT_TRUE(violations.RequireAtLeast("y", 2, 2));
  EXPECT_EQ(violations.items().size(), 1u);
}

}  // namespace
}  // namespace sextant::base
