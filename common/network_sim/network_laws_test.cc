// SPDX-License-Identifier: Apache-2.0
// Laws that every topology, collective and fault keeps. Seeds are fixed; a failure prints its case.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "common/network_sim/collective_choice.h"
#include "common/network_sim/simulate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr LinkClass kLink = {50e9, 500e-9};
constexpr LinkClass kNvLink = {450e9, 300e-9};

TopologySpec Switch(int64_t endpoints) {
  return {.kind = TopologyKind::kSwitch, .links = {kLink}, .endpoint_count = endpoints};
}
TopologySpec Grid(TopologyKind kind, std::vector<int64_t> dimensions) {
  std::vector<LinkClass> links(dimensions.size(), kLink);
  return {.kind = kind, .dimensions = std::move(dimensions), .links = std::move(links)};
}
TopologySpec Rails(int64_t servers, int64_t gpus) {
  return {.kind = TopologyKind::kNvSwitchRails,
          .server_count = servers,
          .gpus_per_server = gpus,
          .nvlink = kNvLink,
          .nic = kLink};
}
TopologySpec FatTree() {
  return {.kind = TopologyKind::kFatTree,
          .endpoints_per_leaf = 2,
          .spine_count = 4,
          .pod_count = 3,
          .leaves_per_pod = 2,
          .spines_per_pod = 2,
          .nic = kLink,
          .uplink = kLink,
          .core_uplink = {25e9, 1e-6}};
}
TopologySpec Dragonfly() {
  return {.kind = TopologyKind::kDragonfly,
          .group_count = 3,
          .routers_per_group = 2,
          .endpoints_per_router = 2,
          .global_links_per_router = 1,
          .nic = kLink,
          .local = kLink,
          .global = {25e9, 1e-6}};
}
TopologySpec LeafSpine() {
  return {.kind = TopologyKind::kLeafSpine,
          .leaf_count = 3,
          .endpoints_per_leaf = 4,
          .spine_count = 2,
          .nic = kLink,
          .uplink = kLink};
}
std::vector<TopologySpec> AllTopologies() {
  return {Switch(12),
          Grid(TopologyKind::kRing, {12}),
          Grid(TopologyKind::kLine, {12}),
          Grid(TopologyKind::kTorus, {3, 4}),
          Grid(TopologyKind::kTorus, {2, 3, 2}),
          Grid(TopologyKind::kMesh, {3, 4}),
          {.kind = TopologyKind::kFullyConnected, .links = {kLink}, .endpoint_count = 12},
          LeafSpine(),
          Rails(3, 4),
          FatTree(),
          Dragonfly()};
}

constexpr Pattern kPatterns[] = {Pattern::kRingAllReduce,
                                 Pattern::kRingReduceScatter,
                                 Pattern::kRingAllGather,
                                 Pattern::kDirectReduceScatter,
                                 Pattern::kDirectAllGather,
                                 Pattern::kDirectAllToAll,
                                 Pattern::kDirectAllReduce,
                                 Pattern::kPairwiseAllToAll,
                                 Pattern::kRecursiveDoublingAllReduce,
                                 Pattern::kHalvingDoublingAllReduce,
                                 Pattern::kTreeAllReduce,
                                 Pattern::kHierarchicalAllReduce,
                                 Pattern::kPipelineChain,
                                 Pattern::kDoubleBinaryTreeAllReduce,
                                 Pattern::kTreeBroadcast,
                                 Pattern::kInNetworkAllReduce,
                                 Pattern::kAllReduce,
                                 Pattern::kReduceScatter,
                                 Pattern::kAllGather,
                                 Pattern::kAllToAll};

NetworkCase Case(const TopologySpec& topology, Pattern pattern, int64_t ranks, int64_t bytes) {
  NetworkCase c;
  c.id = "case";
  c.topology = topology;
  NetworkJob& job = c.jobs.emplace_back();
  job.name = "main";
  job.pattern = pattern;
  job.message_bytes = bytes;
  job.groups.emplace_back(static_cast<size_t>(ranks));
  std::iota(job.groups[0].begin(), job.groups[0].end(), 0);
  job.levels = {2, ranks / 2};
  job.micro_batch_count = 3;
  return c;
}

NetworkResult Simulate(const NetworkCase& c, Fidelity fidelity = Fidelity::kFlow,
                       const SimulationOptions& options = {}) {
  const absl::StatusOr<NetworkResult> result = SimulateNetworkCase(c, fidelity, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : NetworkResult();
}

std::string Label(const NetworkCase& c) {
  return absl::StrCat(TopologyKindName(c.topology.kind), " ", PatternName(c.jobs[0].pattern),
                      " of ", c.jobs[0].groups.empty() ? 0 : c.jobs[0].groups[0].size(), " ranks, ",
                      c.jobs[0].message_bytes, " bytes");
}

TEST(NetworkLaws, EveryCollectiveEndsOnEveryTopologyAlsoInOddGroups) {
  for (const TopologySpec& topology : AllTopologies()) {
    for (const Pattern pattern : kPatterns) {
      for (const int64_t ranks : {2, 6, 12}) {
        const NetworkCase c = Case(topology, pattern, ranks, 1 << 20);
        const NetworkResult result = Simulate(c);
        EXPECT_EQ(result.status, NetworkStatus::kOk) << Label(c) << result.reason;
        EXPECT_GT(result.total_seconds, 0) << Label(c);
        EXPECT_GE(result.total_seconds, result.limiting_link_seconds) << Label(c);
      }
    }
  }
}

TEST(NetworkLaws, AnalyticEqualsFlowWithinOnePercentWhereItApplies) {
  int compared = 0;
  for (const TopologySpec& topology : AllTopologies()) {
    for (const Pattern pattern : kPatterns) {
      for (const int64_t ranks : {4, 8, 12}) {
        for (const int64_t bytes : {int64_t{1} << 16, int64_t{1} << 24}) {
          const NetworkCase c = Case(topology, pattern, ranks, bytes);
          const NetworkResult analytic = Simulate(c, Fidelity::kAnalytic);
          if (analytic.status != NetworkStatus::kOk) {
            EXPECT_FALSE(analytic.reason.empty()) << Label(c);
            continue;
          }
          if (LeavesAlgorithmOpen(pattern)) continue;  // fidelities may choose differently
          ++compared;
          EXPECT_NEAR(Simulate(c).total_seconds / analytic.total_seconds, 1, 0.01) << Label(c);
        }
      }
    }
  }
  EXPECT_GE(compared, 200);
}

TEST(NetworkLaws, MultipliedRoundsEqualFollowingThemAll) {
  int compared = 0;
  for (TopologySpec topology : AllTopologies()) {
    for (const Pattern pattern : {Pattern::kRingAllReduce, Pattern::kHierarchicalAllReduce,
                                  Pattern::kPairwiseAllToAll, Pattern::kHalvingDoublingAllReduce}) {
      for (const bool derated : {false, true}) {
        // 4 groups of 3 and 72 GPUs make enough messages for rounds to be worth finding.
        if (topology.kind == TopologyKind::kRing) topology.dimensions = {72};
        if (topology.kind == TopologyKind::kSwitch) topology.endpoint_count = 72;
        if (topology.kind == TopologyKind::kNvSwitchRails) topology.server_count = 18;
        if (topology.EndpointCount() < 72) continue;
        NetworkCase c = Case(topology, pattern, 72, int64_t{72} << 20);
        c.jobs[0].levels = {4, 18};
        if (derated) c.faults.slow_ranks = {{5, 1.7}};
        const SimulationOptions all{.compare_with_healthy = false, .multiply_rounds = false};
        const SimulationOptions few{.compare_with_healthy = false};
        const NetworkResult followed = Simulate(c, Fidelity::kFlow, all);
        const NetworkResult multiplied = Simulate(c, Fidelity::kFlow, few);
        EXPECT_NEAR(multiplied.total_seconds / followed.total_seconds, 1, 1e-6) << Label(c);
        EXPECT_EQ(multiplied.limiting_link, followed.limiting_link) << Label(c);
        compared += multiplied.event_count < followed.event_count;
      }
    }
  }
  EXPECT_GE(compared, 6);
}

TEST(NetworkLaws, NoFaultHelpsAndMoreBandwidthNeverHurts) {
  std::mt19937 random(11);
  for (const TopologySpec& topology : AllTopologies()) {
    for (const Pattern pattern :
         {Pattern::kRingAllReduce, Pattern::kDirectAllToAll, Pattern::kDoubleBinaryTreeAllReduce}) {
      NetworkCase c = Case(topology, pattern, 12, 3 << 20);
      const double healthy = Simulate(c).total_seconds;
      c.faults.random = {{random(), "*", 0, 0.2, 0.5}};
      const NetworkResult derated = Simulate(c);
      // Fair shares are not monotone in general: a link that is slower for one flow may free
      // another. Bounded here by a hundredth.
      EXPECT_GE(derated.total_seconds, healthy * 0.99) << Label(c);
      EXPECT_DOUBLE_EQ(derated.healthy_seconds, healthy) << Label(c);
      EXPECT_DOUBLE_EQ(derated.slowdown, derated.total_seconds / healthy);
    }
  }
}

TEST(NetworkLaws, RenumberedRanksOfASwitchTakeAsLong) {
  std::mt19937 random(12);
  for (const Pattern pattern : kPatterns) {
    NetworkCase c = Case(Switch(12), pattern, 8, 1 << 22);
    c.jobs[0].levels = {2, 4};
    const double before = Simulate(c).total_seconds;
    std::shuffle(c.jobs[0].groups[0].begin(), c.jobs[0].groups[0].end(), random);
    EXPECT_NEAR(Simulate(c).total_seconds, before, 1e-9 * before) << Label(c);
  }
}

TEST(NetworkLaws, BusBandwidthStaysBelowTheLinkUnlessSwitchesReduce) {
  for (const TopologySpec& topology : AllTopologies()) {
    const int64_t n = topology.EndpointCount();
    NetworkCase c = Case(topology, Pattern::kAllReduce, n, int64_t{1} << 26);
    // Every endpoint sends at least 2 (n-1)/n of the buffer through its own links.
    const NetworkResult result = Simulate(c);
    const double bus = 2 * static_cast<double>(n - 1) / static_cast<double>(n) *
                       static_cast<double>(c.jobs[0].message_bytes) / result.total_seconds;
    double most = 0;  // of all links of an endpoint together
    switch (topology.kind) {
      case TopologyKind::kFullyConnected:
        most = static_cast<double>(n - 1) * 50e9;
        break;
      case TopologyKind::kNvSwitchRails:
        most = 500e9;
        break;
      case TopologyKind::kTorus:
      case TopologyKind::kMesh:
        most = static_cast<double>(2 * topology.dimensions.size()) * 50e9;
        break;
      case TopologyKind::kRing:
      case TopologyKind::kLine:
        most = 100e9;
        break;
      default:
        most = 50e9;
        break;
    }
    EXPECT_LE(bus, most) << TopologyKindName(topology.kind);
  }
  // A switch that reduces halves what an endpoint sends.
  NetworkCase c = Case(Switch(12), Pattern::kAllReduce, 12, int64_t{1} << 26);
  const NetworkResult ring = Simulate(c);
  c.jobs[0].in_network = true;
  const NetworkResult reduced = Simulate(c);
  EXPECT_EQ(reduced.jobs[0].algorithm, "in_network_all_reduce");
  EXPECT_LT(reduced.total_seconds, 0.65 * ring.total_seconds);
}

TEST(NetworkLaws, TheChoiceIsNoSlowerThanAnyAlgorithm) {
  for (const TopologySpec& topology : AllTopologies()) {
    for (const Pattern pattern : {Pattern::kAllReduce, Pattern::kAllToAll, Pattern::kAllGather}) {
      for (const int64_t bytes : {int64_t{1} << 14, int64_t{1} << 24}) {
        const NetworkCase c = Case(topology, pattern, 12, bytes);
        const double chosen = Simulate(c).total_seconds;
        for (const NetworkJob& job : CandidateJobs(c.jobs[0], topology)) {
          NetworkCase fixed = c;
          fixed.jobs[0] = job;
          // Closed forms, by which candidates are compared, are good to a percent.
          EXPECT_LE(chosen, Simulate(fixed).total_seconds * 1.01)
              << Label(c) << " " << PatternName(job.pattern);
        }
      }
    }
  }
}

TEST(NetworkLaws, ChunksOverlapTheDimensionsOfAHierarchy) {
  // 4 x 4 torus: without chunks one dimension rests while the other works.
  NetworkCase c = Case(Grid(TopologyKind::kTorus, {4, 4}), Pattern::kHierarchicalAllReduce, 16,
                       int64_t{1} << 28);
  c.jobs[0].levels = {4, 4};
  const double whole = Simulate(c).total_seconds;
  c.jobs[0].chunk_count = 16;
  const NetworkResult chunked = Simulate(c);
  EXPECT_LT(chunked.total_seconds, 0.95 * whole);
  // No faster than the first dimension's own work: 2 x 3/4 of the buffer.
  EXPECT_GT(chunked.total_seconds, 2 * 0.75 * static_cast<double>(int64_t{1} << 28) / 50e9);
}

TEST(NetworkLaws, AdaptiveRoutingSpreadsWhatHashesCollide) {
  // Four flows between two leaves of four spines: hashes collide, a choice by load does not.
  TopologySpec topology = LeafSpine();
  topology.spine_count = 4;
  NetworkCase c = Case(topology, Pattern::kFlows, 0, 0);
  c.jobs[0].groups.clear();
  for (int64_t i = 0; i < 4; ++i) c.jobs[0].flows.push_back({i, 4 + i, 1 << 26});
  double hashed = 0;
  for (c.ecmp_seed = 1; c.ecmp_seed <= 8; ++c.ecmp_seed) {
    hashed = std::max(hashed, Simulate(c).total_seconds);
  }
  c.routing = Routing::kAdaptive;
  const double adaptive = Simulate(c).total_seconds;
  EXPECT_GT(hashed, 1.9 * adaptive);
  EXPECT_NEAR(adaptive, (1 << 26) * (4160.0 / 4096) / 50e9, 4e-6);
}

TEST(NetworkFaults, ARingGoesRoundADeadLink) {
  // Around a 4 x 4 torus, row by row and back: 16 ranks, each next to the next.
  NetworkCase c = Case(Grid(TopologyKind::kTorus, {4, 4}), Pattern::kRingAllReduce, 0, 1 << 26);
  c.jobs[0].groups = {{0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12}};
  c.jobs[0].bidirectional = true;
  c.faults.links = {{1, 2, 0}};
  const NetworkResult detour = Simulate(c);
  c.reembed_rings = true;
  const NetworkResult embedded = Simulate(c);
  EXPECT_EQ(embedded.reembedded_count, 1);
  EXPECT_LT(embedded.total_seconds, 0.75 * detour.total_seconds);
  EXPECT_NEAR(embedded.slowdown, 1, 0.02);
}

TEST(NetworkFaults, RanksThatAreCutOffAreNamed) {
  NetworkCase c = Case(LeafSpine(), Pattern::kRingAllReduce, 12, 1 << 20);
  c.faults.dead_switches = {"leaf2"};
  const NetworkResult result = Simulate(c);
  EXPECT_EQ(result.status, NetworkStatus::kUnreachable);
  EXPECT_THAT(result.unreachable_ranks, ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(result.reason, HasSubstr("cut off: ranks 8, 9, 10, 11"));
  // Those who do not need the dead leaf go on.
  c.jobs[0].groups[0].resize(8);
  EXPECT_EQ(Simulate(c).status, NetworkStatus::kOk);
  c.faults.dead_switches = {"spine1"};
  const NetworkResult rerouted = Simulate(c);
  EXPECT_EQ(rerouted.status, NetworkStatus::kOk);
  EXPECT_GE(rerouted.slowdown, 1);
}

// INPUTS: one link at 50 % bandwidth, one at loss 0.01, one rank 1.3x slower: each answer is longer
// by what its slowest member is.
TEST(NetworkFaults, ASlowMemberSetsThePace) {
  NetworkCase c = Case(Switch(8), Pattern::kRingAllReduce, 8, int64_t{1} << 28);
  c.faults.links = {{3, 8, 0.5}};
  EXPECT_NEAR(Simulate(c).slowdown, 2, 0.01);
  EXPECT_THAT(Simulate(c).limiting_link, ::testing::AnyOf("ep3->switch", "switch->ep3"));
  c.faults.links = {{3, 8, 1, 0.01}};
  EXPECT_NEAR(Simulate(c).slowdown, 1 / 0.99, 0.002);
  c.faults = {.slow_ranks = {{5, 1.3}}};
  EXPECT_NEAR(Simulate(c).slowdown, 1.3, 0.005);
}

TEST(NetworkMapping, TheBusyDimensionGoesWhereLinksAreFast) {
  NetworkCase c;
  c.id = "layout";
  c.topology = Rails(4, 8);
  NetworkJob tensor{.name = "tensor", .pattern = Pattern::kRingAllReduce, .message_bytes = 1 << 28};
  NetworkJob data{.name = "data", .pattern = Pattern::kRingAllReduce, .message_bytes = 1 << 22};
  c.parallel = {{data, 4}, {tensor, 8}};
  const NetworkResult given = Simulate(c);
  EXPECT_THAT(given.mapping, ElementsAre("data", "tensor"));
  EXPECT_EQ(given.mapping_gain, 1);
  c.optimise_mapping = true;
  const NetworkResult best = Simulate(c);
  EXPECT_THAT(best.mapping, ElementsAre("tensor", "data"));
  EXPECT_NEAR(best.mapping_gain, given.total_seconds / best.total_seconds, 1e-12);
  EXPECT_GT(best.mapping_gain, 3);
}

TEST(NetworkLimits, ACheckStopsASimulationWithItsStatus) {
  NetworkCase c = Case(Grid(TopologyKind::kTorus, {8, 8}), Pattern::kDirectAllToAll, 64, 64 << 20);
  int asked = 0;
  const SimulationOptions options{.check = [&](const Progress& progress) {
    EXPECT_LE(progress.arrived_count, progress.message_count);
    return ++asked < 2 ? absl::OkStatus() : absl::CancelledError("enough");
  }};
  EXPECT_EQ(SimulateNetworkCase(c, Fidelity::kFlow, options).status(),
            absl::CancelledError("enough"));
  const NetworkResult limited = Simulate(c, Fidelity::kFlow, {.max_events = 100});
  EXPECT_THAT(limited.reason, HasSubstr("more than 100 events"));
  const NetworkResult early = Simulate(c, Fidelity::kFlow, {.max_simulated_seconds = 1e-6});
  EXPECT_THAT(early.reason, HasSubstr("lasts longer than"));
}

}  // namespace
}  // namespace sextant::network_sim
