// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/simulate.h"

#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::HasSubstr;

constexpr double kBandwidth = 50e9;
constexpr double kLatency = 500e-9;

NetworkCase Case(TopologyKind kind, std::vector<int64_t> dimensions, Pattern pattern,
                 int64_t bytes) {
  NetworkCase c;
  c.id = "case";
  c.topology.kind = kind;
  c.topology.links.assign(dimensions.size(), {kBandwidth, kLatency});
  c.topology.dimensions = dimensions;
  if (kind == TopologyKind::kSwitch || kind == TopologyKind::kFullyConnected) {
    c.topology.endpoint_count = dimensions[0];
    c.topology.dimensions.clear();
  }
  NetworkJob& job = c.jobs.emplace_back();
  job.name = "main";
  job.pattern = pattern;
  job.message_bytes = bytes;
  job.groups.emplace_back(static_cast<size_t>(c.topology.EndpointCount()));
  std::iota(job.groups[0].begin(), job.groups[0].end(), 0);
  return c;
}

NetworkResult Simulate(const NetworkCase& c, Fidelity fidelity = Fidelity::kFlow) {
  const absl::StatusOr<NetworkResult> result = SimulateNetworkCase(c, fidelity);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

// A random set of flows on a torus: contended, multi-hop, of uneven sizes.
NetworkCase RandomFlows(std::mt19937& random) {
  NetworkCase c = Case(TopologyKind::kTorus, {4, 4}, Pattern::kFlows, 0);
  c.jobs[0].groups.clear();
  for (int i = 0; i < 24; ++i) {
    const int64_t source = static_cast<int64_t>(random() % 16);
    const int64_t destination =
        static_cast<int64_t>((source + 1 + static_cast<int64_t>(random() % 15)) % 16);
    c.jobs[0].flows.push_back({source, destination, 1 + static_cast<int64_t>(random() % 4000000)});
  }
  return c;
}

TEST(Simulate, ALoneMessageCrossesASwitchAtLineRate) {
  // 1 MiB is 256 packets of 4096 + 64 bytes: 1 064 960 wire bytes at 50 GB/s = 21.2992 us; one
  // more packet time on the second link, 83.2 ns; two propagation delays, 1 us.
  NetworkCase c = Case(TopologyKind::kSwitch, {2}, Pattern::kFlows, 0);
  c.jobs[0].groups.clear();
  c.jobs[0].flows = {{0, 1, 1 << 20}};
  EXPECT_NEAR(Simulate(c).total_seconds, 22.3824e-6, 1e-11);
  EXPECT_NEAR(Simulate(c, Fidelity::kAnalytic).total_seconds, 22.3824e-6, 1e-11);
}

TEST(Simulate, AMessageBelowOnePacketCostsItsOwnBytes) {
  NetworkCase c = Case(TopologyKind::kSwitch, {2}, Pattern::kFlows, 0);
  c.jobs[0].groups.clear();
  c.jobs[0].flows = {{0, 1, 36}};  // 100 wire bytes on each of two links: 2 x 2 ns, and 1 us
  EXPECT_NEAR(Simulate(c).total_seconds, 1.004e-6, 1e-12);
}

TEST(Simulate, RingAndDirectAllReduceMoveTheSameBytesInTheSameTime) {
  // 8 ranks, 100 MB, 50 GB/s: 2 x 7/8 x 100 MB / 50 GB/s = 3.5 ms and 1.56 % of headers; direct
  // takes 2 rounds instead of 14, so it saves latency and nothing else.
  const double ring =
      Simulate(Case(TopologyKind::kSwitch, {8}, Pattern::kRingAllReduce, 100'000'000))
          .total_seconds;
  const double direct =
      Simulate(Case(TopologyKind::kSwitch, {8}, Pattern::kDirectAllReduce, 100'000'000))
          .total_seconds;
  EXPECT_NEAR(ring, 3.5e-3 * 4160 / 4096 + 14 * (2 * kLatency + 83.2e-9), 1e-7);
  EXPECT_NEAR(direct, 3.5e-3 * 4160 / 4096 + 2 * (2 * kLatency + 83.2e-9), 1e-7);
}

TEST(Simulate, FidelitiesAgreeWhereBothApply) {
  for (const Pattern pattern :
       {Pattern::kRingAllReduce, Pattern::kDirectAllReduce, Pattern::kPairwiseAllToAll,
        Pattern::kRecursiveDoublingAllReduce, Pattern::kHalvingDoublingAllReduce,
        Pattern::kPipelineChain, Pattern::kRingAllGather}) {
    for (const int64_t bytes : {int64_t{4096}, int64_t{1} << 24}) {
      NetworkCase c = Case(TopologyKind::kFullyConnected, {8}, pattern, bytes);
      c.jobs[0].micro_batch_count = 4;
      const NetworkResult analytic = Simulate(c, Fidelity::kAnalytic);
      ASSERT_EQ(analytic.status, NetworkStatus::kOk) << PatternName(pattern) << analytic.reason;
      EXPECT_NEAR(Simulate(c).total_seconds / analytic.total_seconds, 1, 1e-4)
          << PatternName(pattern) << " " << bytes;
    }
  }
}

TEST(Simulate, AnalyticSaysWhereItDoesNotApply) {
  NetworkCase c = Case(TopologyKind::kRing, {8}, Pattern::kRingAllReduce, 1 << 20);
  c.jobs.push_back(c.jobs[0]);
  c.jobs[1].name = "other";
  const NetworkResult shared = Simulate(c, Fidelity::kAnalytic);
  EXPECT_EQ(shared.status, NetworkStatus::kUnsupported);
  EXPECT_THAT(shared.reason, HasSubstr("job other shares links"));
  EXPECT_EQ(shared.total_seconds, 0);
  c.jobs.pop_back();
  c.faults.links = {{0, 1, 0.5}};
  EXPECT_THAT(Simulate(c, Fidelity::kAnalytic).reason, HasSubstr("do not take equally long"));
}

TEST(Simulate, ACutNetworkIsUnreachable) {
  NetworkCase c = Case(TopologyKind::kLine, {4}, Pattern::kRingAllReduce, 1 << 20);
  c.faults.links = {{1, 2, 0}};
  for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kAnalytic}) {
    const NetworkResult result = Simulate(c, fidelity);
    EXPECT_EQ(result.status, NetworkStatus::kUnreachable);
    EXPECT_THAT(result.reason, HasSubstr("no surviving path"));
  }
}

TEST(Simulate, NoCaseIsFasterThanItsBusiestLink) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const NetworkResult result = Simulate(RandomFlows(random));
    EXPECT_GE(result.total_seconds, result.limiting_link_seconds);
    EXPECT_FALSE(result.limiting_link.empty());
  }
}

TEST(Simulate, ADeratedLinkNeverHelps) {
  std::mt19937 random(8);
  for (const Pattern pattern :
       {Pattern::kRingAllReduce, Pattern::kDirectAllToAll, Pattern::kPairwiseAllToAll}) {
    NetworkCase c = Case(TopologyKind::kTorus, {4, 4}, pattern, 1 << 22);
    const double healthy = Simulate(c).total_seconds;
    for (const double fraction : {0.75, 0.5, 0.25}) {
      c.faults.links = {{5, 6, fraction}};
      EXPECT_GE(Simulate(c).total_seconds, healthy * (1 - 1e-9)) << PatternName(pattern);
    }
  }
}

TEST(Simulate, TwiceTheBandwidthHalvesTheBandwidthTerm) {
  std::mt19937 random(9);
  for (int round = 0; round < 10; ++round) {
    NetworkCase c = RandomFlows(random);
    for (LinkClass& link : c.topology.links) link.latency_seconds = 0;
    const double before = Simulate(c).total_seconds;
    for (LinkClass& link : c.topology.links) link.bandwidth_bytes_per_second *= 2;
    // Equal but for the picosecond to which each event is rounded.
    EXPECT_NEAR(Simulate(c).total_seconds, before / 2, 1e-10);
  }
}

TEST(Simulate, JobsThatShareLinksSlowEachOther) {
  NetworkCase c = Case(TopologyKind::kRing, {8}, Pattern::kRingAllGather, 1 << 24);
  const double alone = Simulate(c).total_seconds;
  c.jobs.push_back(c.jobs[0]);
  const NetworkResult both = Simulate(c);
  // Every link is shared by two equal streams: bandwidth terms double.
  EXPECT_NEAR(both.total_seconds, 2 * alone, 0.05 * alone);
  EXPECT_EQ(both.jobs.size(), 2u);
  EXPECT_DOUBLE_EQ(both.jobs[0].total_seconds, both.jobs[1].total_seconds);
}

TEST(Simulate, AJobStartsAtItsTime) {
  NetworkCase c = Case(TopologyKind::kRing, {4}, Pattern::kRingAllGather, 1 << 20);
  const double alone = Simulate(c).total_seconds;
  c.jobs[0].start_seconds = 1e-3;
  for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kAnalytic}) {
    const NetworkResult result = Simulate(c, fidelity);
    EXPECT_NEAR(result.total_seconds, 1e-3 + alone, 1e-11);
    EXPECT_NEAR(result.jobs[0].total_seconds, alone, 1e-11);
  }
}

TEST(Simulate, ASmallWindowHoldsAStreamBack) {
  NetworkCase c = Case(TopologyKind::kSwitch, {2}, Pattern::kFlows, 0);
  c.jobs[0].groups.clear();
  c.jobs[0].flows = {{0, 1, 1 << 24}};
  const double automatic = Simulate(c).total_seconds;
  // One packet in flight per round trip of 2 us and two packet times: 4096 bytes each 2.1664 us.
  c.transport.window_bytes = 4096;
  const double held = Simulate(c).total_seconds;
  EXPECT_GT(held, automatic * 10);
  EXPECT_NEAR(held, 4096 * 2.1664e-6, 0.01 * held);
}

TEST(Simulate, ADegenerateCaseTakesNoTime) {
  const NetworkCase c = Case(TopologyKind::kSwitch, {1}, Pattern::kRingAllReduce, 1 << 20);
  for (const Fidelity fidelity : {Fidelity::kFlow, Fidelity::kAnalytic}) {
    EXPECT_EQ(Simulate(c, fidelity).total_seconds, 0);
    EXPECT_EQ(Simulate(c, fidelity).status, NetworkStatus::kOk);
  }
}

TEST(Simulate, EqualCasesGiveEqualResults) {
  std::mt19937 random(10);
  const NetworkCase c = RandomFlows(random);
  EXPECT_EQ(Simulate(c), Simulate(c));
}

TEST(Simulate, WhatIsTooLongOrTooLargeIsSaid) {
  NetworkCase slow = Case(TopologyKind::kSwitch, {2}, Pattern::kFlows, 0);
  slow.topology.links[0].bandwidth_bytes_per_second = 1e3;
  slow.jobs[0].groups.clear();
  slow.jobs[0].flows = {{0, 1, int64_t{1} << 50}};
  EXPECT_EQ(Simulate(slow).status, NetworkStatus::kUnsupported);
  EXPECT_THAT(Simulate(slow).reason, HasSubstr("lasts longer than"));
  const NetworkCase large =
      Case(TopologyKind::kSwitch, {8192}, Pattern::kRingAllReduce, int64_t{1} << 30);
  // Its rounds are alike and need not be followed one by one; where they must, that is too many.
  EXPECT_EQ(Simulate(large).status, NetworkStatus::kOk);
  EXPECT_THAT(SimulateNetworkCase(large, Fidelity::kFlow, {.multiply_rounds = false})->reason,
              HasSubstr("messages"));
}

TEST(Simulate, AnInvalidCaseIsAnError) {
  EXPECT_EQ(SimulateNetworkCase(NetworkCase{}, Fidelity::kFlow).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sextant::network_sim
