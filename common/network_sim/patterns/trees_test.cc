// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/patterns/trees.h"

#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::ElementsAre;

TEST(Trees, InnerNodesOfOneTreeAreLeavesOfTheOther) {
  for (size_t n = 2; n <= 70; ++n) {
    const InOrderTree tree = MakeInOrderTree(n);
    ASSERT_EQ(tree.positions.size(), n);
    EXPECT_EQ(std::set<int32_t>(tree.positions.begin(), tree.positions.end()).size(), n);
    std::set<int32_t> inner;
    std::vector<int> children(n, 0);
    for (size_t i = 0; i < n; ++i) {
      if (tree.parents[i] < 0) {
        EXPECT_EQ(i, 0u);
        continue;
      }
      EXPECT_LT(static_cast<size_t>(tree.parents[i]), i);  // parents come first
      inner.insert(tree.positions[static_cast<size_t>(tree.parents[i])]);
      EXPECT_LE(++children[static_cast<size_t>(tree.parents[i])], 2);
    }
    // In the second tree every position moves on by one: of an even number of ranks none is inner
    // in both, of an odd number at most the last one is.
    size_t both = 0;
    for (const int32_t p : inner) both += inner.count((p + 1) % static_cast<int32_t>(n));
    EXPECT_LE(both, n % 2 == 0 ? 0u : 1u) << n;
  }
}

TEST(Trees, AReductionTreeJoinsAllRanksThroughSwitches) {
  TopologySpec spec;
  spec.kind = TopologyKind::kLeafSpine;
  spec.leaf_count = 4;
  spec.endpoints_per_leaf = 8;
  spec.spine_count = 2;
  spec.nic = spec.uplink = {50e9, 500e-9};
  const Topology topology = Topology::Create(spec);
  std::vector<int64_t> ranks(32);
  std::iota(ranks.begin(), ranks.end(), 0);
  const ReductionTree tree = *MakeReductionTree(topology, ranks);
  // A spine, four leaves, 32 endpoints.
  EXPECT_EQ(tree.nodes.size(), 37u);
  EXPECT_EQ(topology.NodeName(static_cast<int32_t>(tree.nodes[0])), "spine0");
  // Ranks of one leaf need no spine.
  const ReductionTree leaf = *MakeReductionTree(topology, {8, 9, 15});
  EXPECT_THAT(leaf.nodes, ElementsAre(33, 8, 9, 15));
  EXPECT_THAT(leaf.parents, ElementsAre(-1, 0, 0, 0));
}

TEST(Trees, StepsOfHalvingMoveTheBufferButForOneBlock) {
  for (const int64_t n : {2, 8, 12, 64}) {
    int64_t bytes = 0;
    for (const ExchangeStep& step : ExchangeSteps(Pattern::kHalvingDoublingAllReduce, n, 1 << 20)) {
      bytes += step.bytes;
    }
    const int64_t two = PowerOfTwoBelow(static_cast<size_t>(n));
    EXPECT_EQ(bytes, 2 * ((1 << 20) - (1 << 20) / two));
  }
}

}  // namespace
}  // namespace sextant::network_sim
