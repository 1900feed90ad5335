// SPDX-License-Identifier: Apache-2.0
#include "common/hardware/cluster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::hardware {
namespace {

using ::testing::HasSubstr;

TEST(Cluster, EveryViolationIsNamedWithItsPath) {
  Cluster cluster;
  cluster.gpus_per_node = 0;
  cluster.oversubscription = 0.5;
  const std::string message(ValidateCluster(cluster).message());
  EXPECT_THAT(message, HasSubstr("gpus_per_node: is 0"));
  EXPECT_THAT(message, HasSubstr("oversubscription: is 0.5"));
  EXPECT_THAT(message, HasSubstr("accelerator.hbm_bytes"));
}

TEST(NodeFabric, NamesRoundTrip) {
  for (const char* name : {"nvswitch", "nvlink_pairs", "pcie"}) {
    ASSERT_TRUE(ParseNodeFabric(name).ok());
    EXPECT_EQ(NodeFabricName(*ParseNodeFabric(name)), name);
  }
  EXPECT_FALSE(ParseNodeFabric("ethernet").ok());
}

}  // namespace
}  // namespace sextant::hardware
