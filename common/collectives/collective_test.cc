// SPDX-License-Identifier: Apache-2.0
#include "common/collectives/collective.h"

#include <cmath>
#include <limits>

#include "common/base/violations.h"
#include "common/collectives/collective_formula.h"
#include "common/collectives/faults.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::collectives {
namespace {

using ::testing::HasSubstr;

constexpr CollectiveKind kAllKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll,  CollectiveKind::kBroadcast, CollectiveKind::kSendReceive};

// Eight GPUs per node at 50 GB/s per direction inside, 8 x 50 GB/s between nodes.
hardware::Cluster TestCluster() {
  hardware::Cluster cluster;
  cluster.name = "test";
  cluster.accelerator.name = "test-gpu";
  cluster.accelerator.architecture = "ampere";
  cluster.accelerator.pcie_bandwidth_bytes_per_second = 25e9;
  cluster.gpus_per_node = 8;
  cluster.node_bandwidth_bytes_per_second = 50e9;
  cluster.network_bandwidth_bytes_per_second = 400e9;
  return cluster;
}

// Links at their full rate and no latency: what remains is the bandwidth term.
CollectiveParameters<double> Ideal() {
  CollectiveParameters<double> p;
  for (auto& carrier : p.fabric) {
    for (FabricParameters<double>& family : carrier) {
      family = {.efficiency = 1, .fast_base_seconds = 1e-3, .fast_efficiency = 1};
    }
  }
  p.in_network = {.efficiency = 1};
  p.network = {.efficiency = 1, .send_efficiency = 1, .burst_bytes = 4e6, .sustained_share = 1};
  return p;
}

CollectiveParameters<double> Initial(const hardware::Cluster& cluster) {
  return ResolveCollectiveParameters(parameters::ParameterSet(), cluster, "");
}

double Seconds(const Collective& c, const hardware::Cluster& cluster,
               const CollectiveParameters<double>& p) {
  EXPECT_TRUE(ValidateCollective(c, cluster).ok()) << ValidateCollective(c, cluster);
  return EstimateCollective(c, cluster, p).seconds;
}

TEST(CollectiveSeconds, EightRanksReduceAHundredMegabytesInThreeAndAHalfMilliseconds) {
  // 2 x 7/8 x 100 MB / 50 GB/s = 3.5 ms, the textbook's ring on a switch.
  EXPECT_NEAR(Seconds({CollectiveKind::kAllReduce, 100e6, 8, 8, 1}, TestCluster(), Ideal()), 3.5e-3,
              1e-12);
}

TEST(CollectiveSeconds, EveryKindMovesItsTextbookBytes) {
  // 80 MB over 8 ranks at 50 GB/s: 7/8 x 80 MB = 70 MB in 1.4 ms; all 80 MB in 1.6 ms.
  const std::pair<CollectiveKind, double> expected[] = {
      {CollectiveKind::kAllReduce, 2.8e-3},     {CollectiveKind::kAllGather, 1.4e-3},
      {CollectiveKind::kReduceScatter, 1.4e-3}, {CollectiveKind::kAllToAll, 1.4e-3},
      {CollectiveKind::kBroadcast, 1.6e-3},     {CollectiveKind::kSendReceive, 1.6e-3}};
  for (const auto& [kind, seconds] : expected) {
    EXPECT_NEAR(Seconds({kind, 80e6, 8, 8, 1}, TestCluster(), Ideal()), seconds, 1e-12)
        << CollectiveKindName(kind);
  }
}

TEST(CollectiveSeconds, AGroupOfTwentyFourPaysForThreeNodes) {
  // tp 24 on 8-GPU nodes: the boundary of each of 3 nodes carries 2 x 2/3 x 240 MB = 320 MB at
  // 400 GB/s, 0.8 ms; inside, 2 x 7/8 x 240 MB at 50 GB/s is longer: 8.4 ms.
  hardware::Cluster cluster = TestCluster();
  const Collective c{CollectiveKind::kAllReduce, 240e6, 24, 8, 1};
  EXPECT_NEAR(Seconds(c, cluster, Ideal()), 8.4e-3, 1e-9);
  EXPECT_FALSE(EstimateCollective(c, cluster, Ideal()).network_bound);
  // A tenth of the network, 40 GB/s: 320 MB take 8 ms, still less; a twentieth: 16 ms.
  cluster.network_bandwidth_bytes_per_second = 20e9;
  EXPECT_NEAR(Seconds(c, cluster, Ideal()), 16e-3, 1e-9);
  EXPECT_TRUE(EstimateCollective(c, cluster, Ideal()).network_bound);
}

TEST(CollectiveSeconds, EightGroupsShareTheirNode) {
  // One data parallel rank per node and 8 such groups: each has an eighth of 400 GB/s. 1 GB over
  // 4 nodes: 2 x 3/4 x 1 GB / 50 GB/s = 30 ms. A lone group has no more interfaces than its rank.
  const hardware::Cluster cluster = TestCluster();
  EXPECT_NEAR(Seconds({CollectiveKind::kAllReduce, 1e9, 4, 1, 8}, cluster, Ideal()), 30e-3, 1e-9);
  EXPECT_NEAR(Seconds({CollectiveKind::kAllReduce, 1e9, 4, 1, 1}, cluster, Ideal()), 30e-3, 1e-9);
}

TEST(CollectiveSeconds, OversubscriptionDividesTheNetwork) {
  hardware::Cluster cluster = TestCluster();
  const Collective c{CollectiveKind::kAllGather, 1e9, 16, 1, 8};
  const double full = Seconds(c, cluster, Ideal());
  cluster.oversubscription = 2;
  EXPECT_NEAR(Seconds(c, cluster, Ideal()), 2 * full, 1e-9);
}

TEST(CollectiveSeconds, BusBandwidthOfAThousandRanksStaysBelowTheirInterfaces) {
  // 1 GB over 1024 ranks with 400 Gb/s interfaces. Inside, GPUs move 450 GB/s.
  hardware::Cluster cluster = TestCluster();
  cluster.node_bandwidth_bytes_per_second = 450e9;
  for (const char* architecture : {"ampere", "hopper"}) {
    cluster.accelerator.architecture = architecture;
    const double seconds =
        Seconds({CollectiveKind::kAllReduce, 1e9, 1024, 8, 1}, cluster, Initial(cluster));
    // Every rank's share of the node's boundary: 2 x 1023/1024 x 1 GB / 8 over its 50 GB/s.
    EXPECT_LE(2 * 1023.0 / 1024 * 1e9 / 8 / seconds, 50e9) << architecture;
  }
}

TEST(CollectiveSeconds, NeverBelowTheLinkInsideANode) {
  const hardware::Cluster cluster = TestCluster();
  const CollectiveParameters<double> p = Initial(cluster);
  for (const CollectiveKind kind : kAllKinds) {
    for (const double bytes : {1.0, 1e4, 1e6, 1e8, 1e10}) {
      for (const int64_t ranks : {2, 3, 4, 8}) {
        const Collective c{kind, bytes, ranks, ranks, 1};
        EXPECT_GE(Seconds(c, cluster, p),
                  WireBytes(kind, bytes, static_cast<double>(ranks)) / 50e9);
      }
    }
  }
}

TEST(CollectiveSeconds, MoreBytesNeverTakeLess) {
  hardware::Cluster cluster = TestCluster();
  for (const char* architecture : {"ampere", "hopper"}) {
    cluster.accelerator.architecture = architecture;
    const CollectiveParameters<double> p = Initial(cluster);
    for (const CollectiveKind kind : kAllKinds) {
      for (const int64_t size : {2, 8, 16, 64}) {
        double last = 0;
        for (double bytes = 0; bytes < 1e11; bytes = bytes * 1.3 + 1) {
          const double seconds =
              Seconds({kind, bytes, size, std::min<int64_t>(size, 8), 1}, cluster, p);
          ASSERT_GE(seconds, last) << CollectiveKindName(kind) << " " << size << " " << bytes;
          last = seconds;
        }
      }
    }
  }
}

TEST(CollectiveSeconds, MoreBandwidthNeverTakesLonger) {
  const CollectiveParameters<double> p = Initial(TestCluster());
  for (const CollectiveKind kind : kAllKinds) {
    for (const double bytes : {1e3, 1e6, 1e9}) {
      for (const int64_t size : {8, 32}) {
        const Collective c{kind, bytes, size, 8, 1};
        hardware::Cluster cluster = TestCluster();
        const double before = Seconds(c, cluster, p);
        cluster.node_bandwidth_bytes_per_second *= 2;
        const double faster_node = Seconds(c, cluster, p);
        cluster.network_bandwidth_bytes_per_second *= 2;
        EXPECT_LE(faster_node, before);
        EXPECT_LE(Seconds(c, cluster, p), faster_node);
      }
    }
  }
}

TEST(CollectiveSeconds, OneRankTakesNoTimeAndNoBytesOnlyLatency) {
  const hardware::Cluster cluster = TestCluster();
  const CollectiveParameters<double> p = Initial(cluster);
  for (const CollectiveKind kind : kAllKinds) {
    EXPECT_EQ(Seconds({kind, 1e9, 1, 1, 1}, cluster, p), 0);
    const CollectiveEstimate nothing = EstimateCollective({kind, 0, 16, 8, 1}, cluster, p);
    EXPECT_GT(nothing.seconds, 0);
    EXPECT_DOUBLE_EQ(nothing.seconds, nothing.latency_seconds);
  }
}

TEST(CollectiveSeconds, SwitchesThatReduceSaveTraffic) {
  // 8 ranks: 9/8 of the bytes per link instead of 14/8.
  hardware::Cluster cluster = TestCluster();
  cluster.accelerator.architecture = "hopper";
  EXPECT_NEAR(Seconds({CollectiveKind::kAllReduce, 80e6, 8, 8, 1}, cluster, Ideal()), 1.8e-3,
              1e-12);
  cluster.node_fabric = hardware::NodeFabric::kPcie;
  EXPECT_NEAR(Seconds({CollectiveKind::kAllReduce, 80e6, 8, 8, 1}, cluster, Ideal()), 2.8e-3,
              1e-12);
}

TEST(CollectiveSeconds, ABridgeCarriesAPairAndPcieTheRest) {
  hardware::Cluster cluster = TestCluster();
  cluster.node_fabric = hardware::NodeFabric::kNvLinkPairs;
  // 2 ranks: 100 MB / 50 GB/s; 4 ranks: 2 x 3/4 x 100 MB at PCIe's 25 GB/s.
  EXPECT_NEAR(Seconds({CollectiveKind::kAllReduce, 100e6, 2, 2, 1}, cluster, Ideal()), 2e-3, 1e-12);
  EXPECT_NEAR(Seconds({CollectiveKind::kAllReduce, 100e6, 4, 4, 1}, cluster, Ideal()), 6e-3, 1e-12);
}

// A server without NVSwitch has one interface for its GPUs. A lone sender has all of it, 10 GB/s,
// until buffers of 4 MB are full, and a fifth of it from then on.
TEST(CollectiveSeconds, ALoneSenderOfASharedInterfaceIsHeldBackBeyondItsBurst) {
  hardware::Cluster cluster = TestCluster();
  cluster.node_fabric = hardware::NodeFabric::kPcie;
  cluster.network_bandwidth_bytes_per_second = 10e9;
  CollectiveParameters<double> p = Ideal();
  p.network.sustained_share = 0.2;
  const auto send = [&](double bytes) {
    return Seconds({CollectiveKind::kSendReceive, bytes, 2, 1, 1}, cluster, p);
  };
  EXPECT_NEAR(send(1e6), 1e6 / 10e9, 1e-6);
  EXPECT_NEAR(send(4e6), 3 * 4e6 / 10e9, 1e-9);  // halfway between once and five times
  EXPECT_NEAR(send(100e6), 100e6 / 2e9, 1e-6);
  for (double bytes = 1e3; bytes < 1e9; bytes *= 1.1) EXPECT_LT(send(bytes), send(bytes * 1.1));
  // With an interface per GPU a lone sender has its own, and all of the time.
  cluster.node_fabric = hardware::NodeFabric::kNvSwitch;
  EXPECT_NEAR(send(100e6), 100e6 / (10e9 / 8), 1e-6);
}

// Chunks cost 2 sqrt(5 trips x t) until that reaches 20 trips, however long the message.
TEST(CollectiveSeconds, ChunksBetweenNodesAddABoundedTime) {
  hardware::Cluster cluster = TestCluster();
  cluster.network_latency_seconds = 10e-6;
  CollectiveParameters<double> p = Ideal();
  const auto across = [&](double bytes) {
    return Seconds({CollectiveKind::kAllReduce, bytes, 2, 1, 1}, cluster, p);
  };
  const double small = across(1e5);
  const double large = across(1e9);
  p.network.chunk_trips = 5;
  p.network.most_chunk_trips = 20;
  EXPECT_NEAR(across(1e5) - small, 2 * std::sqrt(5 * 10e-6 * 1e5 / 50e9), 1e-9);
  EXPECT_NEAR(across(1e9) - large, 20 * 10e-6, 1e-9);
}

TEST(EstimateCollective, ParametersOfNobodyAreExtrapolated) {
  hardware::Cluster cluster = TestCluster();
  const Collective inside{CollectiveKind::kAllReduce, 1e6, 8, 8, 1};
  EXPECT_TRUE(EstimateCollective(inside, cluster, Initial(cluster)).extrapolated);
  EXPECT_FALSE(EstimateCollective(inside, cluster, Ideal()).extrapolated);
  cluster.network_stated = false;
  EXPECT_FALSE(EstimateCollective(inside, cluster, Ideal()).extrapolated);
  EXPECT_TRUE(EstimateCollective({CollectiveKind::kAllReduce, 1e6, 16, 8, 1}, cluster, Ideal())
                  .extrapolated);
}

TEST(ValidateCollective, EveryViolationIsReportedAtOnce) {
  hardware::Cluster cluster = TestCluster();
  cluster.network_bandwidth_bytes_per_second = 0;
  const std::string message(
      ValidateCollective({CollectiveKind::kAllReduce, std::nan(""), 0, 9, 0}, cluster).message());
  for (const char* part : {"bytes: is nan", "group_size: is 0", "ranks_per_node: is 9 but cluster",
                           "groups_per_node: is 0"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  const std::string spanning(
      ValidateCollective({CollectiveKind::kAllReduce, 1, 16, 8, 1}, cluster).message());
  EXPECT_THAT(spanning, HasSubstr("group_size: spans nodes (16 ranks, 8 per node)"));
  EXPECT_FALSE(ValidateCollective({CollectiveKind::kAllReduce, 1, 4, 8, 1}, cluster).ok());
  EXPECT_FALSE(
      ValidateCollective(
          {CollectiveKind::kAllReduce, std::numeric_limits<double>::infinity(), 8, 8, 1}, cluster)
          .ok());
}

TEST(EstimateCollectives, ViolationsCarryTheirIndexAndAnswersTheirOrder) {
  const hardware::Cluster cluster = TestCluster();
  const CollectiveParameters<double> p = Initial(cluster);
  const std::vector<Collective> valid = {{CollectiveKind::kAllReduce, 1e6, 8, 8, 1},
                                         {CollectiveKind::kAllToAll, 1e9, 16, 8, 1}};
  const auto estimates = EstimateCollectives(valid, cluster, p);
  ASSERT_TRUE(estimates.ok());
  for (size_t i = 0; i < valid.size(); ++i) {
    EXPECT_EQ((*estimates)[i], EstimateCollective(valid[i], cluster, p));
  }
  std::vector<Collective> invalid = valid;
  invalid.push_back({CollectiveKind::kAllReduce, -1, 8, 8, 1});
  EXPECT_THAT(std::string(EstimateCollectives(invalid, cluster, p).status().message()),
              HasSubstr("collectives[2].bytes: is -1"));
}

TEST(ApplyFaults, ScalesTheNamedScopeAndNothingElse) {
  const hardware::Cluster healthy = TestCluster();
  const hardware::Cluster network = ApplyFaults(healthy, {{"network", 0.5}, {"network", 0.5}});
  EXPECT_DOUBLE_EQ(network.network_bandwidth_bytes_per_second, 100e9);
  EXPECT_DOUBLE_EQ(network.node_bandwidth_bytes_per_second, 50e9);
  const hardware::Cluster node = ApplyFaults(healthy, {{"node", 0.25}});
  EXPECT_DOUBLE_EQ(node.node_bandwidth_bytes_per_second, 12.5e9);
  EXPECT_DOUBLE_EQ(node.network_bandwidth_bytes_per_second, 400e9);
  EXPECT_EQ(ApplyFaults(healthy, {}), healthy);
}

TEST(CollectiveKind, NamesRoundTripAndUnknownOnesListTheKnown) {
  for (const CollectiveKind kind : kAllKinds) {
    EXPECT_EQ(*ParseCollectiveKind(CollectiveKindName(kind)), kind);
  }
  EXPECT_THAT(std::string(ParseCollectiveKind("gossip").status().message()),
              HasSubstr("is \"gossip\" but must be one of all_reduce, all_gather"));
}

}  // namespace
}  // namespace sextant::collectives
