// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/fault_overlay.h"

#include <algorithm>

#include "common/network_sim/topology/routing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr LinkClass kLink = {50e9, 500e-9};

Topology Rails() {
  TopologySpec spec;
  spec.kind = TopologyKind::kNvSwitchRails;
  spec.server_count = 4;
  spec.gpus_per_server = 8;
  spec.nvlink = {450e9, 300e-9};
  spec.nic = kLink;
  return Topology::Create(spec);
}

Topology LeafSpine() {
  TopologySpec spec;
  spec.kind = TopologyKind::kLeafSpine;
  spec.leaf_count = 4;
  spec.endpoints_per_leaf = 4;
  spec.spine_count = 4;
  spec.nic = spec.uplink = kLink;
  return Topology::Create(spec);
}

// Names of the links whose bandwidth changed, by what remains.
std::vector<std::string> Changed(const Topology& healthy, const Topology& faulty) {
  std::vector<std::string> names;
  for (size_t i = 0; i < healthy.links().size(); i += 2) {
    const double fraction = faulty.links()[i].bandwidth_bytes_per_second /
                            healthy.links()[i].bandwidth_bytes_per_second;
    EXPECT_EQ(faulty.links()[i + 1].bandwidth_bytes_per_second /
                  healthy.links()[i + 1].bandwidth_bytes_per_second,
              fraction);
    if (fraction != 1) {
      names.push_back(absl::StrCat(healthy.LinkName(static_cast<int32_t>(i)), " ", fraction));
    }
  }
  return names;
}

TEST(FaultOverlay, APatternNamesEveryLinkOfARail) {
  const Topology healthy = Rails();
  const Topology faulty = *healthy.WithFaults({.patterns = {{"rail3", 0.5}}});
  EXPECT_THAT(Changed(healthy, faulty), ElementsAre("ep3->rail3 0.5", "ep11->rail3 0.5",
                                                    "ep19->rail3 0.5", "ep27->rail3 0.5"));
  EXPECT_THAT(Changed(healthy, *healthy.WithFaults({.patterns = {{"rail*-ep19", 0.25, 0.5}}})),
              ElementsAre("ep19->rail3 0.125"));
}

TEST(FaultOverlay, FaultsOfOneLinkMultiplyAndTheHealthyTopologyStays) {
  const Topology healthy = Rails();
  const Topology faulty = *healthy.WithFaults(
      {.links = {{3, 39, 0.5}}, .patterns = {{"rail3-ep3", 0.5}}, .slow_ranks = {{3, 2}}});
  EXPECT_THAT(Changed(healthy, faulty), ElementsAre("ep3->nvswitch0 0.5", "ep3->rail3 0.125"));
  EXPECT_FALSE(healthy.has_faults());
  EXPECT_TRUE(Changed(healthy, faulty.Healthy()).empty());
  EXPECT_TRUE(Changed(healthy, *faulty.WithFaults({})).empty());
}

TEST(FaultOverlay, ADeadSwitchTakesItsLinksAlong) {
  const Topology healthy = LeafSpine();
  const Topology faulty = *healthy.WithFaults({.dead_switches = {"spine2"}});
  EXPECT_EQ(faulty.removed_links().size(), 4u);
  EXPECT_EQ(ConnectedEndpoints(faulty).size(), 1u);
  const Topology leafless = *healthy.WithFaults({.dead_switches = {"leaf1"}});
  // Four endpoints lose their only link: each is alone.
  const auto pieces = ConnectedEndpoints(leafless);
  ASSERT_EQ(pieces.size(), 5u);
  EXPECT_EQ(pieces[0].size(), 12u);
  EXPECT_THAT(pieces[1], ElementsAre(4));
}

TEST(FaultOverlay, RandomFaultsDependOnTheSeedOnlyAndMeetTheirProbability) {
  TopologySpec spec;
  spec.kind = TopologyKind::kTorus;
  spec.dimensions = {32, 32};
  spec.links = {kLink, kLink};
  const Topology healthy = Topology::Create(spec);
  const auto faulty = [&](uint64_t seed) {
    return *healthy.WithFaults({.random = {{seed, "*", 0.1, 0.2, 0.5}}});
  };
  EXPECT_EQ(Changed(healthy, faulty(7)), Changed(healthy, faulty(7)));
  EXPECT_NE(Changed(healthy, faulty(7)), Changed(healthy, faulty(8)));
  // 2048 links: 10 % die, 18 % are derated; standard deviations are 14 and 17.
  const size_t dead = faulty(7).removed_links().size();
  EXPECT_NEAR(static_cast<double>(dead), 204.8, 4 * 14);
  EXPECT_NEAR(static_cast<double>(Changed(healthy, faulty(7)).size() - dead), 368.6, 4 * 17);
}

TEST(FaultOverlay, NamesOfNothingAreReportedTogether) {
  const absl::Status status =
      LeafSpine()
          .WithFaults(
              {.links = {{0, 1, 0.5}}, .patterns = {{"rail3", 0.5}}, .dead_switches = {"spine9"}})
          .status();
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("link_faults[0]: names nodes 0 and 1"));
  EXPECT_THAT(message, HasSubstr("link_faults[1].links: is \"rail3\" but no link"));
  EXPECT_THAT(message, HasSubstr("dead_switches[0]: is \"spine9\" but no switch"));
}

TEST(FaultOverlay, AGlobMatchesAnyTextAtItsStars) {
  EXPECT_TRUE(MatchesGlob("ep*", "ep12"));
  EXPECT_TRUE(MatchesGlob("*1*3", "ep123"));
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_FALSE(MatchesGlob("ep1", "ep12"));
  EXPECT_FALSE(MatchesGlob("*1*4", "ep123"));
}

// Every policy's path between every pair, by node.
std::vector<std::vector<int32_t>> AllPaths(const Topology& topology,
                                           const RoutingOptions& options) {
  Router router(topology, options);
  std::vector<std::vector<int32_t>> paths;
  for (int32_t d = 0; d < topology.endpoint_count(); ++d) {
    for (int32_t s = 0; s < topology.endpoint_count(); ++s) {
      if (s == d) continue;
      const auto path = router.Route(s, d);
      paths.push_back(path.ok() ? *path : std::vector<int32_t>{-1});
    }
  }
  return paths;
}

TEST(TouchedPairs, OnlyPairsThatAFaultTouchesChangeTheirPath) {
  TopologySpec dragonfly;
  dragonfly.kind = TopologyKind::kDragonfly;
  dragonfly.group_count = 5;
  dragonfly.routers_per_group = 4;
  dragonfly.endpoints_per_router = 2;
  dragonfly.global_links_per_router = 2;
  dragonfly.nic = dragonfly.local = dragonfly.global = kLink;
  TopologySpec torus;
  torus.kind = TopologyKind::kTorus;
  torus.dimensions = {4, 5};
  torus.links = {kLink, kLink};
  const std::vector<Topology> topologies = {LeafSpine(), Rails(), Topology::Create(dragonfly),
                                            Topology::Create(torus)};
  for (const Topology& healthy : topologies) {
    for (const Routing policy : {Routing::kAutomatic, Routing::kShortest, Routing::kHashed}) {
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        const Topology faulty = *healthy.WithFaults({.random = {{seed, "*", 0.06, 0, 0.5}}});
        const auto before = AllPaths(healthy, {policy, seed});
        const auto after = AllPaths(faulty, {policy, seed});
        const TouchedPairs touched(faulty);
        size_t kept = 0;
        for (size_t i = 0; i < before.size(); ++i) {
          if (touched.Touches(before[i], policy)) continue;
          ++kept;
          ASSERT_EQ(before[i], after[i]) << "pair " << i << " seed " << seed;
        }
        EXPECT_GT(kept, 0u);
      }
    }
  }
}

}  // namespace
}  // namespace sextant::network_sim
