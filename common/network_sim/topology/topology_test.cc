// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/topology.h"

#include "common/network_sim/topology/routing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::HasSubstr;

constexpr LinkClass kLink = {50e9, 500e-9};

Topology Make(const TopologySpec& spec, const std::vector<LinkFault>& faults = {}) {
  absl::StatusOr<Topology> topology = Topology::Create(spec).WithFaults({.links = faults});
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *std::move(topology);
}

TopologySpec Grid(TopologyKind kind, std::vector<int64_t> dimensions) {
  TopologySpec spec;
  spec.kind = kind;
  spec.links.assign(dimensions.size(), kLink);
  spec.dimensions = std::move(dimensions);
  return spec;
}

TopologySpec Rails() {
  TopologySpec spec;
  spec.kind = TopologyKind::kNvSwitchRails;
  spec.server_count = 2;
  spec.gpus_per_server = 8;
  spec.nvlink = {450e9, 300e-9};
  spec.nic = kLink;
  return spec;
}

TEST(Topology, ADimensionOfTwoHasOneLink) {
  // 2 x 2 x 2: a cube has 12 edges, 24 directions.
  EXPECT_EQ(Make(Grid(TopologyKind::kTorus, {2, 2, 2})).links().size(), 24u);
  // 4 x 4: 32 links on a torus, 24 on a mesh.
  EXPECT_EQ(Make(Grid(TopologyKind::kTorus, {4, 4})).links().size(), 64u);
  EXPECT_EQ(Make(Grid(TopologyKind::kMesh, {4, 4})).links().size(), 48u);
  EXPECT_EQ(Make(Grid(TopologyKind::kRing, {1})).links().size(), 0u);
}

TEST(Topology, SwitchesAreNotEndpoints) {
  const Topology topology = Make(Rails());
  EXPECT_EQ(topology.endpoint_count(), 16);
  EXPECT_EQ(topology.node_count(), 16 + 2 + 8);
  EXPECT_EQ(topology.NodeName(3), "ep3");
  EXPECT_EQ(topology.NodeName(17), "nvswitch1");
  EXPECT_EQ(topology.NodeName(18), "rail0");
  EXPECT_EQ(topology.NodeName(25), "rail7");
  EXPECT_GE(topology.FindLink(9, 17), 0);
  EXPECT_GE(topology.FindLink(9, 19), 0);
  EXPECT_EQ(topology.FindLink(9, 18), -1);
}

TEST(Topology, AFaultScalesBothDirectionsAndZeroRemoves) {
  const Topology derated = Make(Grid(TopologyKind::kRing, {4}), {{2, 1, 0.25}});
  for (const auto& [a, b] : {std::pair{1, 2}, std::pair{2, 1}}) {
    const int32_t link = derated.FindLink(a, b);
    ASSERT_GE(link, 0);
    EXPECT_DOUBLE_EQ(derated.links()[static_cast<size_t>(link)].bandwidth_bytes_per_second, 12.5e9);
  }
  const Topology removed = Make(Grid(TopologyKind::kRing, {4}), {{1, 2, 0}});
  EXPECT_EQ(removed.FindLink(1, 2), -1);
  EXPECT_EQ(removed.FindLink(2, 1), -1);
  EXPECT_TRUE(removed.has_removed_links());
}

TEST(Topology, AFaultThatNamesNoLinkIsReported) {
  const std::vector<LinkFault> faults = {{0, 2, 0.5}, {0, 99, 0.5}, {-1, 0, 0.5}};
  const absl::Status status =
      Topology::Create(Grid(TopologyKind::kRing, {4})).WithFaults({.links = faults}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("link_faults[0]: names nodes 0 and 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("link_faults[1]"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("link_faults[2]"));
}

TEST(Topology, AThreeLevelFatTreeReachesEveryPodThroughCores) {
  TopologySpec spec;
  spec.kind = TopologyKind::kFatTree;
  spec.pod_count = 3;
  spec.leaves_per_pod = 2;
  spec.endpoints_per_leaf = 4;
  spec.spines_per_pod = 2;
  spec.spine_count = 4;
  spec.nic = spec.uplink = spec.core_uplink = kLink;
  const Topology topology = Topology::Create(spec);
  EXPECT_EQ(topology.endpoint_count(), 24);
  EXPECT_EQ(topology.node_count(), 24 + 6 + 6 + 4);
  // 24 endpoints, 6 leaves with 2 spines each, 6 spines with 2 cores each; two directions.
  EXPECT_EQ(topology.links().size(), 2u * (24 + 12 + 12));
  EXPECT_EQ(topology.NodeName(24), "leaf0");
  EXPECT_EQ(topology.NodeName(30), "spine0");
  EXPECT_EQ(topology.NodeName(36), "core0");
  Router router(topology, {});
  EXPECT_EQ(router.Route(0, 1)->size(), 2u);   // one leaf
  EXPECT_EQ(router.Route(0, 4)->size(), 4u);   // one pod
  EXPECT_EQ(router.Route(0, 23)->size(), 6u);  // leaf, spine, core, spine, leaf
}

TEST(Topology, ADragonflyCrossesOneGlobalLink) {
  TopologySpec spec;
  spec.kind = TopologyKind::kDragonfly;
  spec.group_count = 9;  // 4 routers of 2 global links: the largest
  spec.routers_per_group = 4;
  spec.endpoints_per_router = 2;
  spec.global_links_per_router = 2;
  spec.nic = spec.local = kLink;
  spec.global = {25e9, 2e-6};
  const Topology topology = Topology::Create(spec);
  EXPECT_EQ(topology.endpoint_count(), 72);
  // Per group 8 endpoints and 6 local links; 36 pairs of groups.
  EXPECT_EQ(topology.links().size(), 2u * (72 + 9 * 6 + 36));
  Router router(topology, {});
  for (int32_t d = 0; d < 72; ++d) {
    for (int32_t s = 0; s < 72; ++s) {
      if (s == d) continue;
      int global = 0;
      const auto path = router.Route(s, d);
      for (const int32_t link : *path) {
        global += topology.links()[static_cast<size_t>(link)].latency_seconds > 1e-6;
      }
      EXPECT_EQ(global, s / 8 == d / 8 ? 0 : 1);
      EXPECT_LE(path->size(), 5u);  // endpoint, local, global, local, endpoint
    }
  }
}

TEST(Topology, AGraphHasItsLinksAndDirections) {
  TopologySpec spec;
  spec.kind = TopologyKind::kGraph;
  spec.endpoint_count = 2;
  spec.switch_count = 1;
  spec.graph_links = {{0, 2, {50e9, 1e-6}, {25e9, 3e-6}}, {2, 1, kLink, kLink}};
  const Topology topology = Topology::Create(spec);
  EXPECT_EQ(topology.NodeName(2), "switch0");
  const DirectedLink& up = topology.links()[static_cast<size_t>(topology.FindLink(0, 2))];
  const DirectedLink& down = topology.links()[static_cast<size_t>(topology.FindLink(2, 0))];
  EXPECT_EQ(up.bandwidth_bytes_per_second, 50e9);
  EXPECT_EQ(down.bandwidth_bytes_per_second, 25e9);
  EXPECT_EQ(down.latency_seconds, 3e-6);
}

}  // namespace
}  // namespace sextant::network_sim
