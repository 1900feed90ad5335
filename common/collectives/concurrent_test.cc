// SPDX-License-Identifier: Apache-2.0
#include "common/collectives/concurrent.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::collectives {
namespace {

using ::testing::HasSubstr;

hardware::Cluster TestCluster() {
  hardware::Cluster cluster;
  cluster.name = "test";
  cluster.accelerator.name = "chip";
  cluster.accelerator.architecture = "ampere";
  cluster.gpus_per_node = 8;
  cluster.node_fabric = hardware::NodeFabric::kNvSwitch;
  cluster.node_bandwidth_bytes_per_second = 300e9;
  cluster.node_latency_seconds = 1e-6;
  cluster.network_bandwidth_bytes_per_second = 200e9;
  cluster.network_latency_seconds = 2e-6;
  return cluster;
}

CollectiveParameters<double> Parameters() {
  return ResolveCollectiveParameters(parameters::ParameterSet(), TestCluster(), "");
}

// Data parallel groups: GPU g of every node.
PlacedCollective Rails(int64_t nodes) {
  PlacedCollective placed{.name = "data", .kind = CollectiveKind::kAllReduce, .bytes = 1 << 28};
  for (int64_t g = 0; g < 8; ++g) {
    std::vector<int64_t>& group = placed.groups.emplace_back();
    for (int64_t n = 0; n < nodes; ++n) group.push_back(8 * n + g);
  }
  return placed;
}
PlacedCollective Nodes(int64_t nodes) {
  PlacedCollective placed{.name = "tensor", .kind = CollectiveKind::kAllReduce, .bytes = 1 << 26};
  for (int64_t n = 0; n < nodes; ++n) {
    std::vector<int64_t>& group = placed.groups.emplace_back(8);
    std::iota(group.begin(), group.end(), 8 * n);
  }
  return placed;
}

ConcurrentCollectives Question(const std::vector<PlacedCollective>& placed,
                               const network_sim::Faults& faults = {}) {
  return {.cluster = TestCluster(), .gpu_count = 32, .collectives = placed, .faults = faults};
}

ConcurrentTimes Time(const std::vector<PlacedCollective>& placed,
                     const network_sim::Faults& faults = {}) {
  const auto times = TimeConcurrent(Question(placed, faults), Parameters());
  EXPECT_TRUE(times.ok()) << times.status();
  return *times;
}

TEST(StridedGroups, NeighboursAndRails) {
  EXPECT_EQ(StridedGroups(32, 4, 8), Rails(4).groups);
  EXPECT_EQ(StridedGroups(32, 8, 1), Nodes(4).groups);
}

TEST(TimeConcurrent, AloneAndHealthyIsTheClosedForm) {
  const ConcurrentTimes times = Time({Rails(4)});
  const Collective c{.kind = CollectiveKind::kAllReduce,
                     .bytes = 1 << 28,
                     .group_size = 4,
                     .ranks_per_node = 1,
                     .groups_per_node = 8};
  EXPECT_DOUBLE_EQ(times.collectives[0].seconds,
                   EstimateCollective(c, TestCluster(), Parameters()).seconds);
  EXPECT_DOUBLE_EQ(times.collectives[0].seconds, times.collectives[0].alone_seconds);
}

TEST(TimeConcurrent, NodesAndRailsDoNotMeetButEqualsShare) {
  const ConcurrentTimes apart = Time({Rails(4), Nodes(4)});
  for (const auto& times : apart.collectives) {
    EXPECT_NEAR(times.seconds, times.alone_seconds, 1e-9 * times.seconds);
  }
  const ConcurrentTimes shared = Time({Rails(4), Rails(4)});
  EXPECT_GT(shared.collectives[0].seconds, 1.8 * shared.collectives[0].alone_seconds);
  EXPECT_LE(shared.collectives[0].seconds, 2.001 * shared.collectives[0].alone_seconds);
}

TEST(TimeConcurrent, ADeratedRailIsFeltAndACutRankIsNamed) {
  const ConcurrentTimes slow = Time({Rails(4)}, {.patterns = {{"rail3", 0.5}}});
  EXPECT_GT(slow.collectives[0].seconds, 1.8 * slow.collectives[0].alone_seconds);
  EXPECT_THAT(slow.limiting_link, HasSubstr("rail3"));
  const absl::Status cut =
      TimeConcurrent(Question({Rails(4)}, {.patterns = {{"ep9", 0}}}), Parameters()).status();
  EXPECT_EQ(cut.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cut.message()), HasSubstr("cut off: ranks 9"));
}

TEST(TimeConcurrent, EveryKindIsTimedAndWrongRanksAreReported) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllToAll, CollectiveKind::kBroadcast, CollectiveKind::kSendReceive}) {
    PlacedCollective placed{.name = "all", .kind = kind, .bytes = 1 << 24};
    std::vector<int64_t>& group =
        placed.groups.emplace_back(kind == CollectiveKind::kSendReceive ? std::vector<int64_t>{0, 8}
                                                                        : std::vector<int64_t>(32));
    if (group.size() > 2) std::iota(group.begin(), group.end(), 0);
    EXPECT_GT(Time({placed}).collectives[0].seconds, 0) << CollectiveKindName(kind);
  }
  PlacedCollective wrong = Rails(4);
  wrong.groups[2][1] = 32;
  EXPECT_THAT(std::string(TimeConcurrent(Question({wrong}), Parameters()).status().message()),
              HasSubstr("collectives[0].groups[2]: must have 4 ranks between 0 and 31"));
}

}  // namespace
}  // namespace sextant::collectives
