// SPDX-License-Identifier: Apache-2.0
#include "common/collectives/collective_parameters.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::collectives {
namespace {

hardware::Cluster ClusterOf(const char* accelerator, const char* donor = "") {
  hardware::Cluster cluster;
  cluster.accelerator.name = accelerator;
  cluster.accelerator.parameter_donor = donor;
  return cluster;
}

parameters::ParameterSet TestSet() {
  parameters::AcceleratorParameters fitted;
  fitted.shared["collective.nvlink.all_reduce.efficiency"] = {0.5, {}};
  fitted.shared["collective.network.efficiency"] = {0.6, {}};
  fitted.profiles["engine"]["collective.nvlink.all_reduce.efficiency"] = {0.7, {}};
  return parameters::ParameterSet({.name = "test"}, {{"fitted", fitted}});
}

double Efficiency(const CollectiveParameters<double>& p) {
  return p.Fabric(Carrier::kNvLink, Family::kAllReduce).efficiency;
}

TEST(CollectiveDescriptors, InitialValuesAreInsideTheirBoundsAndKeysAreUnique) {
  std::set<std::string> keys;
  for (const parameters::KeyedDescriptor& keyed : CollectiveDescriptors()) {
    EXPECT_TRUE(keys.insert(keyed.key).second) << keyed.key;
    EXPECT_GE(keyed.descriptor.initial, keyed.descriptor.lower) << keyed.key;
    EXPECT_LE(keyed.descriptor.initial, keyed.descriptor.upper) << keyed.key;
  }
  EXPECT_EQ(keys.size(), kCarrierCount * kFamilyCount * FabricParameters<double>::kCount +
                             InNetworkParameters<double>::kCount +
                             NetworkParameters<double>::kCount);
}

TEST(ResolveCollectiveParameters, AProfileOverridesWhatItNames) {
  const parameters::ParameterSet set = TestSet();
  EXPECT_DOUBLE_EQ(Efficiency(ResolveCollectiveParameters(set, ClusterOf("fitted"), "")), 0.5);
  EXPECT_DOUBLE_EQ(Efficiency(ResolveCollectiveParameters(set, ClusterOf("fitted"), "other")), 0.5);
  const auto engine = ResolveCollectiveParameters(set, ClusterOf("fitted"), "engine");
  EXPECT_DOUBLE_EQ(Efficiency(engine), 0.7);
  EXPECT_DOUBLE_EQ(engine.network.efficiency, 0.6);
  EXPECT_FALSE(engine.transferred);
}

TEST(ResolveCollectiveParameters, WhatWasNotFittedComesFromTheDonorOrTheDescriptors) {
  const parameters::ParameterSet set = TestSet();
  const auto donated = ResolveCollectiveParameters(set, ClusterOf("new", "fitted"), "");
  EXPECT_DOUBLE_EQ(Efficiency(donated), 0.5);
  EXPECT_TRUE(donated.transferred);
  const auto initial = ResolveCollectiveParameters(set, ClusterOf("new"), "");
  EXPECT_DOUBLE_EQ(Efficiency(initial),
                   FabricDescriptors(Carrier::kNvLink, Family::kAllReduce)[0].initial);
  EXPECT_TRUE(initial.transferred);
}

}  // namespace
}  // namespace sextant::collectives
