// SPDX-License-Identifier: Apache-2.0
// Laws that every topology, collective and fault keeps. Seeds are fixed; a failure prints its case.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
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

// Bulk flows, single packets, a recursion over rounds and rounds that are multiplied.
TEST(NetworkLimits, HoldForEveryWayOfSimulating) {
  NetworkCase packets = Case(Switch(8), Pattern::kDirectAllToAll, 8, 8 * 4096);
  NetworkCase followed = Case(Switch(8), Pattern::kDirectAllToAll, 8, 64 << 20);
  NetworkCase recursion = Case(Switch(72), Pattern::kRingAllReduce, 72, int64_t{72} << 20);
  recursion.faults.slow_ranks = {{5, 1.7}};
  for (const NetworkCase& c : {packets, followed, recursion}) {
    EXPECT_EQ(Simulate(c).status, NetworkStatus::kOk);
    EXPECT_GT(Simulate(c).event_count, 50) << Label(c);
    EXPECT_THAT(Simulate(c, Fidelity::kFlow, {.max_events = 50}).reason,
                HasSubstr("more than 50 events"))
        << Label(c);
  }
  const NetworkCase multiplied = Case(Switch(72), Pattern::kRingAllReduce, 72, int64_t{72} << 20);
  for (const NetworkCase& c : {packets, followed, recursion, multiplied}) {
    EXPECT_THAT(Simulate(c, Fidelity::kFlow, {.max_simulated_seconds = 1e-6}).reason,
                HasSubstr("lasts longer than 1e-06 simulated seconds"))
        << Label(c);
  }
}

// Two streams of a ring on rails may share an NVLink: as long as it has enough for both, neither
// slows the other and rounds repeat.
TEST(NetworkLaws, LinksWithRoomForAllDoNotStopTheRecursion) {
  NetworkCase c = Case(Rails(16, 8), Pattern::kRingAllReduce, 128, int64_t{128} << 20);
  for (const double slowdown : {1.0, 1.7}) {
    c.faults.slow_ranks = {{5, slowdown}};
    const NetworkResult multiplied = Simulate(c);
    const NetworkResult followed = Simulate(c, Fidelity::kFlow, {.multiply_rounds = false});
    EXPECT_NEAR(multiplied.total_seconds / followed.total_seconds, 1, 1e-6);
    EXPECT_LT(multiplied.event_count, followed.event_count / 2);
  }
}

// Reported cases of other simulators (INPUTS, kind NET).

// aliyun/SimAI #140: NVSwitches counted as GPUs.
TEST(NetworkInputs, SwitchesAreNoRanks) {
  NetworkCase c = Case(Rails(2, 8), Pattern::kRingAllReduce, 2, 1 << 20);
  EXPECT_EQ(c.topology.EndpointCount(), 16);
  c.jobs[0].groups.clear();
  for (int64_t first = 0; first < 16; first += 2) c.jobs[0].groups.push_back({first, first + 1});
  const NetworkResult result = Simulate(c);
  EXPECT_EQ(result.status, NetworkStatus::kOk);
  EXPECT_GT(result.total_seconds, 0);
  c.jobs[0].groups = {{15, 16}};
  EXPECT_THAT(std::string(SimulateNetworkCase(c, Fidelity::kFlow).status().message()),
              HasSubstr("is 16 but endpoints are 0 to 15"));
}

// aliyun/SimAI #105: bus bandwidth above the link. 1 GB over 1 024 ranks on 400 Gb/s interfaces.
TEST(NetworkInputs, AThousandRanksStayBelowTheirInterfaces) {
  const NetworkCase c = Case(Switch(1024), Pattern::kRingAllReduce, 1024, 1'000'000'000);
  const double flow = Simulate(c).total_seconds;
  EXPECT_LE(2.0 * 1023 / 1024 * 1e9 / flow, 50e9);
  EXPECT_NEAR(Simulate(c, Fidelity::kAnalytic).total_seconds, flow, 1e-6 * flow);
}

// astra-sim #207: another topology and another size change the answer.
TEST(NetworkInputs, TopologyAndSizeMatter) {
  const auto seconds = [](const TopologySpec& topology) {
    return Simulate(Case(topology, Pattern::kDirectAllToAll, topology.EndpointCount(), 64 << 20))
        .total_seconds;
  };
  TopologySpec tree = FatTree();
  const double ring = seconds(Grid(TopologyKind::kRing, {12}));
  EXPECT_GT(ring, 1.1 * seconds(Switch(12)));
  EXPECT_GT(seconds(tree), 1.1 * seconds(Switch(12)));
  EXPECT_NE(seconds(Grid(TopologyKind::kRing, {8})), seconds(Grid(TopologyKind::kRing, {64})));
}

// aliyun/SimAI #142: a tensor-parallel group of 24 on nodes of eight spans three of them; the
// slower link between them is priced.
TEST(NetworkInputs, AGroupOfTwentyFourPaysForTheLinksBetweenItsNodes) {
  const NetworkCase c = Case(Rails(4, 8), Pattern::kAllReduce, 24, 24 << 20);
  NetworkCase inside = Case(Rails(4, 8), Pattern::kAllReduce, 8, 24 << 20);
  const NetworkResult spread = Simulate(c);
  EXPECT_EQ(spread.status, NetworkStatus::kOk) << spread.reason;
  // Each of three nodes sends at least 2 x 2/3 of the buffer over eight interfaces of 50 GB/s.
  EXPECT_GT(spread.total_seconds, 2.0 * 2 / 3 * (24 << 20) / (8 * 50e9));
  EXPECT_GT(spread.total_seconds, 1.2 * Simulate(inside).total_seconds);
  // Half the interfaces' bandwidth is felt.
  NetworkCase derated = c;
  derated.faults.patterns = {{"rail*", 0.5}};
  EXPECT_GT(Simulate(derated).total_seconds, 1.2 * spread.total_seconds);
}

// aliyun/SimAI #270: pipelines of more than two stages. 16 ranks, four stages.
TEST(NetworkInputs, PipelinesOfFourStagesEnd) {
  NetworkCase c = Case(Rails(2, 8), Pattern::kPipelineChain, 4, 1 << 24);
  c.jobs[0].micro_batch_count = 16;
  c.jobs[0].groups.clear();
  for (int64_t r = 0; r < 4; ++r) c.jobs[0].groups.push_back({r, 4 + r, 8 + r, 12 + r});
  EXPECT_EQ(Simulate(c).status, NetworkStatus::kOk);
}

// A random connected or broken graph with switches, random faults and random jobs.
NetworkCase RandomCase(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  const auto link = [&]() -> LinkClass {
    return {1e9 * static_cast<double>(draw(1, 400)), 1e-9 * static_cast<double>(draw(0, 5000))};
  };
  NetworkCase c;
  c.id = absl::StrCat("seed ", seed);
  TopologySpec& t = c.topology;
  t.kind = TopologyKind::kGraph;
  t.endpoint_count = draw(1, 20);
  t.switch_count = draw(0, 8);
  const int64_t nodes = t.endpoint_count + t.switch_count;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t a = 1; a < nodes; ++a) pairs.push_back({draw(0, a - 1), a});  // a tree
  for (int64_t extra = draw(0, 2 * nodes); extra > 0 && nodes > 1; --extra) {
    const int64_t a = draw(0, nodes - 2);
    pairs.push_back({a, draw(a + 1, nodes - 1)});
  }
  if (!pairs.empty() && random() % 8 == 0) pairs.erase(pairs.begin());
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (const auto& [a, b] : pairs) t.graph_links.push_back({a, b, link(), link(), draw(1, 10)});
  if (!pairs.empty() && random() % 2 == 0) {
    c.faults.random = {{random(), "*", 0.1, 0.3, 0.01 * static_cast<double>(draw(1, 100))}};
  }
  if (random() % 4 == 0) c.faults.slow_ranks = {{draw(0, t.endpoint_count - 1), 1.5}};
  if (t.switch_count > 0 && random() % 4 == 0) c.faults.dead_switches = {"switch0"};
  c.routing = static_cast<Routing>(draw(0, 3));
  c.ecmp_seed = random();
  c.reembed_rings = random() % 2 == 0;
  if (random() % 4 == 0) c.transport.window_bytes = draw(1, 1 << 20);
  for (int64_t j = draw(1, 3); j > 0; --j) {
    NetworkJob& job = c.jobs.emplace_back();
    job.name = absl::StrCat("job", j);
    job.pattern = kPatterns[random() % std::size(kPatterns)];
    job.message_bytes = draw(4096, 1 << 24);
    job.start_seconds = 1e-9 * static_cast<double>(draw(0, 100000));
    job.bidirectional = random() % 2 == 0;
    job.chunk_count = draw(1, 4);
    job.micro_batch_count = draw(1, 4);
    job.in_network = random() % 2 == 0;
    std::vector<int64_t>& group = job.groups.emplace_back();
    for (int64_t r = 0; r < t.endpoint_count; ++r) {
      if (random() % 3 != 0) group.push_back(r);
    }
    std::shuffle(group.begin(), group.end(), random);
    if (group.empty()) group.push_back(0);
    job.levels = {std::max<int64_t>(1, static_cast<int64_t>(group.size()))};
  }
  return c;
}

// As many graphs as SEXTANT_FUZZ_ROUNDS says, 400 unless given: each is answered, both fidelities,
// within its busiest link's time, and again with the same bytes.
TEST(NetworkFuzz, RandomGraphsFaultsAndJobsAreAnswered) {
  int64_t rounds = 400;
  if (const char* given = std::getenv("SEXTANT_FUZZ_ROUNDS")) rounds = std::atoll(given);
  int64_t timed = 0;
  for (int64_t seed = 0; seed < rounds; ++seed) {
    const NetworkCase c = RandomCase(static_cast<uint64_t>(seed));
    for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kAnalytic}) {
      const absl::StatusOr<NetworkResult> result = SimulateNetworkCase(c, fidelity);
      ASSERT_TRUE(result.ok()) << c.id << " " << result.status();
      ASSERT_TRUE(std::isfinite(result->total_seconds)) << c.id;
      ASSERT_EQ(result->status == NetworkStatus::kOk, result->reason.empty()) << c.id;
      if (result->status != NetworkStatus::kOk) continue;
      ASSERT_GE(result->total_seconds * (1 + 1e-9) + 1e-12, result->limiting_link_seconds) << c.id;
      if (fidelity == Fidelity::kFlow) {
        ++timed;
        ASSERT_EQ(*SimulateNetworkCase(c, fidelity), *result) << c.id;
      }
    }
  }
  EXPECT_GT(timed, rounds / 3);
}

}  // namespace
}  // namespace sextant::network_sim
