// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/routing.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr LinkClass kLink = {50e9, 500e-9};

// Nodes of the path from source to destination, both included.
std::vector<int32_t> Nodes(const Topology& topology, int32_t source, int32_t destination,
                           uint64_t seed = 1) {
  Router router(topology, {Routing::kAutomatic, seed});
  const absl::StatusOr<std::vector<int32_t>> path = router.Route(source, destination);
  EXPECT_TRUE(path.ok()) << path.status();
  std::vector<int32_t> nodes = {source};
  for (const int32_t link : *path) {
    EXPECT_EQ(topology.links()[static_cast<size_t>(link)].from, nodes.back());
    nodes.push_back(topology.links()[static_cast<size_t>(link)].to);
  }
  return nodes;
}

Topology Grid(TopologyKind kind, std::vector<int64_t> dimensions,
              const std::vector<LinkFault>& faults = {}) {
  TopologySpec spec;
  spec.kind = kind;
  spec.links.assign(dimensions.size(), kLink);
  spec.dimensions = std::move(dimensions);
  return *Topology::Create(spec).WithFaults({.links = faults});
}

Topology LeafSpine(int64_t leaves, int64_t per_leaf, int64_t spines) {
  TopologySpec spec;
  spec.kind = TopologyKind::kLeafSpine;
  spec.leaf_count = leaves;
  spec.endpoints_per_leaf = per_leaf;
  spec.spine_count = spines;
  spec.nic = spec.uplink = kLink;
  return Topology::Create(spec);
}

TEST(Router, GridsGoDimensionByDimensionTheShorterWay) {
  const Topology torus = Grid(TopologyKind::kTorus, {4, 4});
  EXPECT_THAT(Nodes(torus, 0, 15), ElementsAre(0, 3, 15));        // both dimensions backwards
  EXPECT_THAT(Nodes(torus, 0, 10), ElementsAre(0, 1, 2, 6, 10));  // half way: positive direction
  const Topology mesh = Grid(TopologyKind::kMesh, {4, 4});
  EXPECT_THAT(Nodes(mesh, 0, 15), ElementsAre(0, 1, 2, 3, 7, 11, 15));
  EXPECT_THAT(Nodes(mesh, 15, 0), ElementsAre(15, 14, 13, 12, 8, 4, 0));
}

TEST(Router, APairDetoursOnlyWhereItsPathIsCut) {
  const Topology ring = Grid(TopologyKind::kRing, {6}, {{1, 2, 0}});
  EXPECT_THAT(Nodes(ring, 0, 2), ElementsAre(0, 5, 4, 3, 2));
  EXPECT_THAT(Nodes(ring, 2, 4), ElementsAre(2, 3, 4));
  // Of equally short detours the lowest neighbour is taken.
  const Topology torus = Grid(TopologyKind::kTorus, {4, 4}, {{0, 1, 0}});
  EXPECT_THAT(Nodes(torus, 0, 1), ElementsAre(0, 3, 2, 1));
}

TEST(Router, ACutNetworkIsUnreachableNotEndless) {
  const Topology line = Grid(TopologyKind::kLine, {4}, {{1, 2, 0}});
  Router router(line, {});
  const absl::Status status = router.Route(0, 3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no surviving path from ep0 to ep3"));
  EXPECT_TRUE(router.Route(0, 1).ok());
}

TEST(Router, HashedPathsAreFixedAndUseEverySpine) {
  const Topology topology = LeafSpine(4, 8, 4);
  std::set<int32_t> spines;
  for (int32_t destination = 8; destination < 32; ++destination) {
    const std::vector<int32_t> nodes = Nodes(topology, 0, destination);
    ASSERT_EQ(nodes.size(), 5u);  // endpoint, leaf, spine, leaf, endpoint
    EXPECT_EQ(nodes, Nodes(topology, 0, destination));
    spines.insert(nodes[2]);
  }
  EXPECT_EQ(spines.size(), 4u);
  EXPECT_THAT(Nodes(topology, 0, 7), ElementsAre(0, 32, 7));
}

TEST(Router, TrafficInsideAServerStaysOnNvSwitch) {
  TopologySpec spec;
  spec.kind = TopologyKind::kNvSwitchRails;
  spec.server_count = 4;
  spec.gpus_per_server = 2;
  spec.nvlink = spec.nic = kLink;
  const Topology topology = Topology::Create(spec);
  EXPECT_THAT(Nodes(topology, 0, 1), ElementsAre(0, 8, 1));
  EXPECT_THAT(Nodes(topology, 0, 2), ElementsAre(0, 12, 2));  // same position: its rail
  // Another position: to the rail of one of them, over NVSwitch at one end.
  EXPECT_EQ(Nodes(topology, 0, 3).size(), 5u);
  // A GPU that lost its rail uses its neighbour's.
  const std::vector<LinkFault> faults = {{0, 12, 0}};
  EXPECT_THAT(Nodes(*topology.WithFaults({.links = faults}), 0, 2),
              ElementsAre(0, 8, 1, 13, 3, 9, 2));
}

}  // namespace
}  // namespace sextant::network_sim
