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

bool Transferred(const CollectiveParameters<double>& p, Family family) {
  return p.fabric_transferred[static_cast<size_t>(Carrier::kNvLink)][static_cast<size_t>(family)];
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
                             NetworkParameters<double>::kCount +
                             2 * (kCarrierCount * kFamilyCount + 1));  // spreads, both ways
}

TEST(ResolveCollectiveParameters, AProfileOverridesWhatItNames) {
  const parameters::ParameterSet set = TestSet();
  EXPECT_DOUBLE_EQ(Efficiency(ResolveCollectiveParameters(set, ClusterOf("fitted"), "")), 0.5);
  EXPECT_DOUBLE_EQ(Efficiency(ResolveCollectiveParameters(set, ClusterOf("fitted"), "other")), 0.5);
  const auto engine = ResolveCollectiveParameters(set, ClusterOf("fitted"), "engine");
  EXPECT_DOUBLE_EQ(Efficiency(engine), 0.7);
  EXPECT_DOUBLE_EQ(engine.network.efficiency, 0.6);
  EXPECT_FALSE(engine.network_transferred);
  EXPECT_FALSE(Transferred(engine, Family::kAllReduce));
  EXPECT_TRUE(Transferred(engine, Family::kGather));  // no row of it was fitted
}

TEST(ResolveCollectiveParameters, WhatWasNotFittedComesFromTheDonorOrTheDescriptors) {
  const parameters::ParameterSet set = TestSet();
  const auto donated = ResolveCollectiveParameters(set, ClusterOf("new", "fitted"), "");
  EXPECT_DOUBLE_EQ(Efficiency(donated), 0.5);
  EXPECT_TRUE(Transferred(donated, Family::kAllReduce));
  // A block of its own does not hide the donor's others.
  parameters::AcceleratorParameters own;
  own.shared["collective.network.efficiency"] = {0.4, {}};
  auto both = set.accelerators();
  both["new"] = own;
  const auto mixed = ResolveCollectiveParameters(parameters::ParameterSet({}, both),
                                                 ClusterOf("new", "fitted"), "");
  EXPECT_DOUBLE_EQ(Efficiency(mixed), 0.5);
  EXPECT_DOUBLE_EQ(mixed.network.efficiency, 0.4);
  EXPECT_FALSE(mixed.network_transferred);
  const auto initial = ResolveCollectiveParameters(set, ClusterOf("new"), "");
  EXPECT_DOUBLE_EQ(Efficiency(initial),
                   FabricDescriptors(Carrier::kNvLink, Family::kAllReduce)[0].initial);
  EXPECT_TRUE(Transferred(initial, Family::kAllReduce));
}

}  // namespace
}  // namespace sextant::collectives
