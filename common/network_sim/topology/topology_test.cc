// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/topology.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::HasSubstr;

constexpr LinkClass kLink = {50e9, 500e-9};

Topology Make(const TopologySpec& spec, const std::vector<LinkFault>& faults = {}) {
  absl::StatusOr<Topology> topology = Topology::Create(spec, faults);
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
  const absl::Status status = Topology::Create(Grid(TopologyKind::kRing, {4}), faults).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("link_faults[0]: names nodes 0 and 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("link_faults[1]"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("link_faults[2]"));
}

}  // namespace
}  // namespace sextant::network_sim
