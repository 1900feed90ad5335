// SPDX-License-Identifier: Apache-2.0
#include "common/hardware/what_if.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::hardware {
namespace {

using testing::HasSubstr;

Cluster Node() {
  Cluster c;
  c.accelerator.name = "a100-sxm4-80gb";
  c.accelerator.architecture = "ampere";
  c.accelerator.sm_count = 108;
  c.accelerator.matrix_flop_per_second.fill(312e12);
  c.accelerator.vector_flop_per_second = 19.5e12;
  c.accelerator.l2_bytes = 40 << 20;
  c.accelerator.l2_bandwidth_bytes_per_second = 5e12;
  c.accelerator.hbm_bytes = int64_t{80} << 30;
  c.accelerator.hbm_bandwidth_bytes_per_second = 2e12;
  c.node_bandwidth_bytes_per_second = 300e9;
  c.network_bandwidth_bytes_per_second = 200e9;
  return c;
}

Technologies Tables() {
  Technologies t;
  t.logic_rate = {{"n7", 2}, {"n5", 3}};
  t.logic_of_architecture = {{"ampere", "n7"}};
  t.memory = {{"hbm4", {2e12, int64_t{36} << 30}}};
  t.stacks_of_accelerator = {{"a100-sxm4-80gb", 5}};
  t.node_fabric_bytes_per_second = {{"nvlink5", 900e9}};
  t.network_bytes_per_second = {{"ndr", 50e9}};
  return t;
}

TEST(WhatIf, OfNothingChangesNothing) {
  Cluster c = Node();
  ASSERT_TRUE(Apply({}, Tables(), c).ok());
  EXPECT_EQ(c, Node());
  ASSERT_TRUE(Apply({.scale = {{"hbm_bandwidth", 1}}}, Tables(), c).ok());
  EXPECT_EQ(c, Node());
}

// Every property can be halved and doubled back.
TEST(WhatIf, ScalesEveryPropertyItNames) {
  for (const std::string& name : ScalableProperties()) {
    Cluster c = Node();
    c.node_latency_seconds = c.network_latency_seconds = 1e-6;
    const Cluster before = c;
    ASSERT_TRUE(Apply({.scale = {{name, 0.5}}}, Tables(), c).ok()) << name;
    EXPECT_NE(c, before) << name;
    ASSERT_TRUE(Apply({.scale = {{name, 2}}}, Tables(), c).ok()) << name;
    c.accelerator.name = before.accelerator.name;
    c.accelerator.parameter_donor = before.accelerator.parameter_donor;
    EXPECT_EQ(c, before) << name;
  }
}

TEST(WhatIf, GenerationsReplaceAndFactorsComeOnTop) {
  Cluster c = Node();
  ASSERT_TRUE(Apply({.logic = "n5",
                     .memory = "hbm4",
                     .node_fabric = "nvlink5",
                     .network = "ndr",
                     .scale = {{"hbm_bandwidth", 2}}},
                    Tables(), c)
                  .ok());
  EXPECT_DOUBLE_EQ(c.accelerator.MatrixRate(Precision::kBf16), 1.5 * 312e12);
  EXPECT_EQ(c.accelerator.sm_count, 162);
  EXPECT_DOUBLE_EQ(c.accelerator.hbm_bandwidth_bytes_per_second, 2 * 5 * 2e12);
  EXPECT_EQ(c.accelerator.hbm_bytes, int64_t{180} << 30);
  EXPECT_EQ(c.node_bandwidth_bytes_per_second, 900e9);
  EXPECT_EQ(c.network_bandwidth_bytes_per_second, 8 * 50e9);
}

// A network card more does not make another accelerator; another memory does.
TEST(WhatIf, ChangedAcceleratorsBorrowTheParametersOfTheOriginal) {
  Cluster c = Node();
  ASSERT_TRUE(Apply({.network = "ndr"}, Tables(), c).ok());
  EXPECT_EQ(c.accelerator.name, "a100-sxm4-80gb");
  ASSERT_TRUE(Apply({.scale = {{"hbm_bandwidth", 2}}}, Tables(), c).ok());
  EXPECT_EQ(c.accelerator.name, "a100-sxm4-80gb-what-if");
  EXPECT_EQ(c.accelerator.parameter_donor, "a100-sxm4-80gb");
}

TEST(WhatIf, ReportsEveryViolationWithAWayOut) {
  Cluster c = Node();
  const std::string text(Apply({.logic = "n6",
                                .memory = "hbm5",
                                .scale = {{"hbm_bandwith", 2}, {"sm_count", 0}, {"l2_capacity", -1}}},
                               Tables(), c)
                             .message());
  EXPECT_THAT(text, HasSubstr("logic"));
  EXPECT_THAT(text, HasSubstr("hbm4"));
  EXPECT_THAT(text, HasSubstr("did you mean \"hbm_bandwidth\""));
  EXPECT_THAT(text, HasSubstr("scale[sm_count]: is 0"));
  EXPECT_THAT(text, HasSubstr("scale[l2_capacity]"));
  c.accelerator.architecture = "unknown";
  c.accelerator.name = "mine";
  const std::string other(Apply({.logic = "n5", .memory = "hbm4"}, Tables(), c).message());
  EXPECT_THAT(other, HasSubstr("scale matrix_rate instead"));
  EXPECT_THAT(other, HasSubstr("scale hbm_bandwidth instead"));
}

TEST(Technologies, TablesAreChecked) {
  EXPECT_TRUE(ValidateTechnologies(Tables()).ok());
  Technologies broken = Tables();
  broken.logic_rate["n5"] = -1;
  broken.logic_of_architecture["hopper"] = "n4";
  broken.memory["hbm4"].capacity_bytes = 0;
  broken.stacks_of_accelerator["x"] = 0;
  const std::string text(ValidateTechnologies(broken).message());
  for (const char* field : {"logic_rate[n5]", "logic_of_architecture[hopper]", "memory[hbm4]",
                            "stacks_of_accelerator[x]"}) {
    EXPECT_THAT(text, HasSubstr(field));
  }
}

}  // namespace
}  // namespace sextant::hardware
