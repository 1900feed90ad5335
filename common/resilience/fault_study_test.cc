// SPDX-License-Identifier: Apache-2.0
#include "common/resilience/fault_study.h"

#include <algorithm>

#include "common/base/violations.h"
#include "common/collectives/concurrent.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/test_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::resilience {
namespace {

using network_sim::Faults;
using network_sim::Routing;
using testing::ElementsAre;
using testing::HasSubstr;
using workload::Job;

std::shared_ptr<const parameters::ParameterSet> Uncalibrated() {
  return std::make_shared<const parameters::ParameterSet>();
}

// 16 GPUs on two nodes: tensor groups inside nodes, data parallel ranks in a node, stages apart.
Job TwoNodes() {
  Job job = orchestrator::LlamaTraining();
  job.gpu_count = 16;
  job.plan.tensor_parallel_size = 4;
  job.plan.data_parallel_size = 2;
  job.plan.pipeline_parallel_size = 2;
  job.plan.zero_stage = 1;
  return job;
}

// Data parallel groups over four nodes, one stage.
Job FourNodes() {
  Job job = orchestrator::LlamaTraining();
  job.gpu_count = 32;
  job.plan.tensor_parallel_size = 8;
  job.plan.data_parallel_size = 4;
  job.plan.zero_stage = 1;
  return job;
}

Interconnect Own(const Job& job) {
  return {.topology = collectives::TopologyOf(job.cluster, job.gpu_count / 8)};
}

StepOnNetwork StepOf(const Job& job, const Interconnect& interconnect) {
  return *StepOnNetwork::Create(job, interconnect, Uncalibrated());
}

Faults Link(int64_t a, int64_t b, double fraction) {
  return {.links = {{.a = a, .b = b, .bandwidth_fraction = fraction}}};
}

double Predicted(const Job& job) {
  orchestrator::LocalOperatorCost operator_cost(Uncalibrated());
  orchestrator::LocalNetworkTime network_time(Uncalibrated());
  return orchestrator::Predict(job, operator_cost, network_time)->total_seconds;
}

TEST(StepOnNetwork, IsThePredictionOnTheClustersOwnInterconnect) {
  for (const Job& job : {TwoNodes(), FourNodes(), orchestrator::Megatron175()}) {
    EXPECT_NEAR(StepOf(job, Own(job)).healthy_seconds() / Predicted(job), 1, 1e-12);
  }
}

// Node 0 is endpoint 0..7, so ep3 - nvswitch0 carries its tensor groups and, with stages on nodes
// of their own, the data parallel pair; ep3 - rail3 carries the pipeline alone.
TEST(StepOnNetwork, ALinkTouchesOnlyWhatCrossesIt) {
  const Job job = TwoNodes();
  const StepOnNetwork step = StepOf(job, Own(job));
  const int64_t nvswitch0 = 16;
  const int64_t rail3 = 16 + 2 + 3;
  const FaultyStep inside = *step.Step(Link(3, nvswitch0, 0.5));
  EXPECT_THAT(inside.crossed, ElementsAre("data", "tensor"));
  EXPECT_GT(inside.slowdown, 1);
  const FaultyStep outside = *step.Step(Link(3, rail3, 0.5));
  EXPECT_THAT(outside.crossed, ElementsAre("pipeline"));
  EXPECT_GT(outside.slowdown, 1);

  Job one_node = job;  // nothing crosses a network interface
  one_node.gpu_count = 8;
  one_node.plan.pipeline_parallel_size = 1;
  const StepOnNetwork local = StepOf(one_node, Own(job));
  const FaultyStep idle = *local.Step(Link(3, rail3, 0.25));
  EXPECT_TRUE(idle.crossed.empty());
  EXPECT_EQ(idle.slowdown, 1);
}

TEST(StepOnNetwork, LessOfALinkIsNeverFasterAndARingWaitsForItsSlowestLink) {
  const Job job = FourNodes();
  const StepOnNetwork step = StepOf(job, Own(job));
  double before = 1;
  for (const double fraction : {0.75, 0.5, 0.25}) {
    const double slowdown = step.Step(Link(5, 32 + 4 + 5, fraction))->slowdown;
    EXPECT_GT(slowdown, before);
    before = slowdown;
  }
  // All links of rail 5 as slow as one of them: the ring over the nodes is no slower.
  const Faults rail{.patterns = {{.links = "rail5", .bandwidth_fraction = 0.25}}};
  EXPECT_NEAR(step.Step(rail)->slowdown, before, 1e-3);
}

TEST(StepOnNetwork, SaysWhoIsCutOff) {
  Job job = FourNodes();
  const Interconnect star{
      .topology = {.kind = network_sim::TopologyKind::kSwitch,
                   .links = {{.bandwidth_bytes_per_second = 25e9, .latency_seconds = 1e-6}},
                   .endpoint_count = 32}};
  const FaultyStep step = *StepOf(job, star).Step(Link(7, 32, 0));
  EXPECT_NE(step.unreachable, "");
  EXPECT_EQ(step.seconds, 0);
}

TEST(StepOnNetwork, RefusesWhatItCannotStudy) {
  const auto refusal = [](const Job& job, const Interconnect& interconnect) {
    return std::string(StepOnNetwork::Create(job, interconnect, Uncalibrated()).status().message());
  };
  EXPECT_THAT(refusal(orchestrator::LlamaServing(), Own(FourNodes())), HasSubstr("training"));
  EXPECT_THAT(refusal(FourNodes(), Own(TwoNodes())), HasSubstr("16 endpoints"));
  Interconnect broken = Own(FourNodes());
  broken.topology.nic.bandwidth_bytes_per_second = -1;
  EXPECT_THAT(refusal(FourNodes(), broken), HasSubstr("topology.nic"));
  EXPECT_FALSE(StepOf(FourNodes(), Own(FourNodes())).Step(Link(0, 1, 0.5)).ok());
}

// One link of a part stands for all: weighted by their counts, parts sum up as all links do.
TEST(SingleFaults, PartsStandForEveryLinkAndSwitch) {
  const Job job = TwoNodes();
  const std::vector<int64_t> sizes = {4, 2, 2};
  for (const network_sim::TopologySpec& topology : {Own(job).topology, TorusOf(job, sizes)}) {
    const StepOnNetwork step = StepOf(job, {topology});
    const size_t links = step.topology().links().size() / 2;
    double all = 0;
    for (size_t i = 0; i < links; ++i) {
      const network_sim::DirectedLink& l = step.topology().links()[2 * i];
      all += step.Step(Link(l.from, l.to, 0.5))->slowdown;
    }
    double by_part = 0;
    int64_t link_count = 0;
    int64_t switch_count = 0;
    const std::vector<RankedFault> ranked = *RankSingleFaults(step, {0.5});
    for (const RankedFault& fault : ranked) {
      if (fault.part.is_switch) {
        switch_count += fault.part.count;
        continue;
      }
      link_count += fault.part.count;
      by_part += static_cast<double>(fault.part.count) * fault.step.slowdown;
    }
    EXPECT_EQ(link_count, static_cast<int64_t>(links));
    EXPECT_EQ(switch_count, step.topology().node_count() - step.topology().endpoint_count());
    EXPECT_NEAR(by_part / all, 1, 0.01);
  }
}

TEST(SingleFaults, AreRankedWorstFirstAndFractionsChecked) {
  const Job job = TwoNodes();
  const StepOnNetwork step = StepOf(job, Own(job));
  const std::vector<RankedFault> ranked = *RankSingleFaults(step, {0.75, 0.5, 0.25, 0});
  for (size_t i = 1; i < ranked.size(); ++i) {
    EXPECT_GE(ranked[i - 1].step.seconds, ranked[i].step.seconds);
  }
  EXPECT_GT(ranked.front().step.slowdown, 1);
  EXPECT_FALSE(RankSingleFaults(step, {1.0}).ok());
}

TEST(RandomFaults, AreSeededAndVanishWithTheirProbability) {
  const Job job = FourNodes();
  const StepOnNetwork step = StepOf(job, Own(job));
  RandomStudy study{.draw_count = 20};
  EXPECT_EQ(DrawFaults(step, study)->worst_slowdown, 1);
  study.faults.derated_probability = 0.02;
  const RandomOutcome few = *DrawFaults(step, study);
  EXPECT_LE(few.low_slowdown, few.mean_slowdown);
  EXPECT_LE(few.median_slowdown, few.p95_slowdown);
  EXPECT_EQ(DrawFaults(step, study)->mean_slowdown, few.mean_slowdown);
  study.faults.derated_probability = 0.2;
  EXPECT_GT(DrawFaults(step, study)->mean_slowdown, few.mean_slowdown);
  study.faults.dead_probability = 1;
  EXPECT_EQ(DrawFaults(step, study)->cut_off_count, 20);
  study.faults.dead_probability = 2;
  EXPECT_FALSE(DrawFaults(step, study).ok());
}

// Tensor parallel ranks belong on the fast links of a node.
TEST(Mappings, TensorRanksInsideNodesAreFasterHealthyAndBroken) {
  const Job job = FourNodes();
  const RandomStudy study{.draw_count = 5, .faults = {.derated_probability = 0.05}};
  const auto outcomes =
      *CompareMappings(job, Own(job).topology, {Routing::kAutomatic}, study, Uncalibrated());
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(MappingName(job.plan, outcomes[0].mapping), "tensor, data");
  EXPECT_GT(outcomes[1].healthy_seconds, 1.5 * outcomes[0].healthy_seconds);
}

TEST(Mappings, ArePermutationsAndKeepThePlansOwnOrderFirst) {
  workload::ParallelPlan plan;
  plan.tensor_parallel_size = 2;
  plan.data_parallel_size = 3;
  plan.pipeline_parallel_size = 4;
  const std::vector<Mapping> mappings = MappingsOf(plan);
  EXPECT_EQ(mappings.size(), 6u);  // 3!
  for (size_t m = 0; m < mappings.size(); ++m) {
    const std::vector<int64_t> gpus = GpusOfRanks(plan, mappings[m]);
    std::vector<int64_t> sorted = gpus;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], static_cast<int64_t>(i));
    EXPECT_EQ(gpus == sorted, m == 0);
  }
}

}  // namespace
}  // namespace sextant::resilience
