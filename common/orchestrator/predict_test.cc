// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/predict.h"

#include <cmath>

#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/test_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::orchestrator {
namespace {

using ::testing::HasSubstr;
using workload::Job;

std::shared_ptr<const parameters::ParameterSet> Uncalibrated() {
  return std::make_shared<const parameters::ParameterSet>();
}

absl::StatusOr<Prediction> TryPredict(
    const Job& job, std::shared_ptr<const parameters::ParameterSet> set = Uncalibrated(),
    const PredictOptions& options = {}) {
  LocalOperatorCost operators(set);
  LocalNetworkTime network(set);
  return Predict(job, operators, network, options);
}

Prediction PredictOrDie(const Job& job) {
  absl::StatusOr<Prediction> prediction = TryPredict(job);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return prediction.ok() ? *std::move(prediction) : Prediction{};
}

double PartOf(const Prediction& prediction, const std::string& name) {
  for (const TimePart& part : prediction.breakdown) {
    if (part.name == name) return part.seconds;
  }
  ADD_FAILURE() << "no part " << name;
  return 0;
}

void ExpectConsistent(const Prediction& p) {
  double sum = 0;
  for (const TimePart& part : p.breakdown) {
    EXPECT_GE(part.seconds, 0) << part.name;
    EXPECT_LE(part.seconds, p.total_seconds) << part.name;
    sum += part.seconds;
  }
  EXPECT_NEAR(sum, p.total_seconds, 1e-9 * p.total_seconds);
  EXPECT_GT(p.total_seconds, 0);
  EXPECT_LT(p.interval_low_seconds, p.total_seconds);
  EXPECT_GT(p.interval_high_seconds, p.total_seconds);
  EXPECT_GT(p.model_flops_utilization, 0);
  EXPECT_LT(p.model_flops_utilization, 1);
  int64_t bytes = 0;
  for (const MemoryPart& part : p.memory.breakdown) bytes += part.bytes;
  EXPECT_EQ(bytes, p.memory.total_bytes);
  EXPECT_FALSE(p.binding.empty());
}

TEST(Predict, PartsSumToTheTotalAndStayInsideIt) {
  ExpectConsistent(PredictOrDie(Megatron175()));
  ExpectConsistent(PredictOrDie(LlamaTraining()));
  ExpectConsistent(PredictOrDie(LlamaServing()));
}

TEST(Predict, EqualJobsGiveEqualAnswers) {
  EXPECT_EQ(PredictOrDie(Megatron175()), PredictOrDie(Megatron175()));
}

TEST(Predict, OptimizerTimeDoesNotDependOnMicroBatches) {
  Job one = LlamaTraining();
  std::get<workload::TrainingWorkload>(one.workload).global_batch_size = 4;
  Job many = one;
  std::get<workload::TrainingWorkload>(many.workload).global_batch_size = 256;
  EXPECT_EQ(PartOf(PredictOrDie(one), "optimizer"), PartOf(PredictOrDie(many), "optimizer"));
}

TEST(Predict, RecomputationCostsTimeAndSavesMemory) {
  Job none = Megatron175();
  none.plan.recompute = workload::Recompute::kNone;
  Job full = none;
  full.plan.recompute = workload::Recompute::kFull;
  const Prediction kept = PredictOrDie(none);
  const Prediction again = PredictOrDie(full);
  EXPECT_GT(again.total_seconds, 1.15 * kept.total_seconds);
  EXPECT_LT(again.total_seconds, 1.45 * kept.total_seconds);
  EXPECT_LT(again.memory.total_bytes, kept.memory.total_bytes);
}

TEST(Predict, MoreBandwidthIsNeverSlower) {
  Job job = Megatron175();
  double before = PredictOrDie(job).total_seconds;
  for (int i = 0; i < 3; ++i) {
    job.cluster.network_bandwidth_bytes_per_second *= 2;
    job.cluster.node_bandwidth_bytes_per_second *= 2;
    const double after = PredictOrDie(job).total_seconds;
    EXPECT_LE(after, before * (1 + 1e-12));
    before = after;
  }
}

TEST(Predict, ADeratedNetworkIsSlower) {
  Job job = LlamaTraining();
  job.gpu_count = 64;
  job.plan.data_parallel_size = 32;
  const double healthy = PredictOrDie(job).total_seconds;
  job.faults = {{.scope = "network", .bandwidth_fraction = 0.1}};
  EXPECT_GT(PredictOrDie(job).total_seconds, healthy);
}

// GPT-3 175B: 6 N D = 6 x 175e9 x 64 x 2048 = 1.376e17; the exact count adds attention scores
// (causal: 6 x s / 2 x 2 h per token and layer, 1.4 % of it) and drops the embedding lookup.
TEST(ModelFlopCount, IsSixNDWithAttention) {
  EXPECT_NEAR(ModelFlopCount(Megatron175()), 6 * 174.6e9 * 64 * 2048, 0.03 * 1.376e17);
  Job untied = Megatron175();
  untied.model.tied_embeddings = false;
  EXPECT_EQ(ModelFlopCount(untied), ModelFlopCount(Megatron175()));
}

TEST(Predict, DecodeOfZeroAndOneTokenIsAPrefill) {
  Job job = LlamaServing();
  auto& work = std::get<workload::InferenceWorkload>(job.workload);
  work.output_tokens = 0;
  const Prediction none = PredictOrDie(job);
  work.output_tokens = 1;
  const Prediction one = PredictOrDie(job);
  EXPECT_EQ(none.total_seconds, one.total_seconds);
  EXPECT_EQ(one.total_seconds, *one.time_to_first_token_seconds);
  EXPECT_FALSE(one.inter_token_latency_seconds.has_value());
}

TEST(Predict, InferenceIsFirstTokenPlusTheOthers) {
  const Prediction p = PredictOrDie(LlamaServing());
  EXPECT_NEAR(p.total_seconds,
              *p.time_to_first_token_seconds + 127 * *p.inter_token_latency_seconds,
              1e-9 * p.total_seconds);
  // Every weight is read for each token: 13.5 GB at 2.039 TB/s is a floor of 6.5 ms.
  EXPECT_GT(*p.inter_token_latency_seconds, 6.5e-3);
  EXPECT_LT(*p.inter_token_latency_seconds, 20e-3);
}

// One client of a fleet sees what a static batch of one sees: both price the same kernels, the
// fleet between sizes of a step.
TEST(Predict, AClosedLoopOfOneIsABatchOfOne) {
  Job job = LlamaServing();
  auto& work = std::get<workload::InferenceWorkload>(job.workload);
  work.batch_size = 1;
  const Prediction batch = PredictOrDie(job);
  job.serving = serving::ServingLoad{.concurrency = 1, .request_count = 4};
  const Prediction served = PredictOrDie(job);
  EXPECT_NEAR(*served.time_to_first_token_seconds / *batch.time_to_first_token_seconds, 1, 0.1);
  EXPECT_NEAR(*served.inter_token_latency_seconds / *batch.inter_token_latency_seconds, 1, 0.1);
  double sum = 0;
  for (const TimePart& part : served.breakdown) sum += part.seconds;
  EXPECT_NEAR(sum, served.total_seconds, 1e-9 * sum);
  EXPECT_EQ(served.serving->completed_request_count, 4);
}

// Far above capacity there is no point latency, but the capacity and a flag.
TEST(Predict, ASaturatedFleetStatesItsCapacity) {
  Job job = LlamaServing();
  job.serving = serving::ServingLoad{
      .arrival = serving::Arrival::kPoisson, .requests_per_second = 1000, .request_count = 300};
  const Prediction p = PredictOrDie(job);
  ASSERT_TRUE(p.serving.has_value());
  EXPECT_TRUE(p.serving->saturated);
  EXPECT_GT(*p.serving->capacity_requests_per_second, 0);
  EXPECT_LT(*p.serving->capacity_requests_per_second, 1000);
  EXPECT_FALSE(p.time_to_first_token_seconds.has_value());
  EXPECT_THAT(p.warnings, ::testing::Contains(HasSubstr("saturated")));
}

// Expert groups inside the tensor parallel ranks see every token already: nothing is exchanged but
// the sum that ends the layer. Across data parallel ranks (attention data parallelism) tokens go to
// their experts and back.
TEST(Predict, ExpertsInsideTensorRanksExchangeNothing) {
  Job job = LlamaServing();
  job.model.experts = {.expert_count = 8, .experts_per_token = 2, .expert_ffn_size = 4096};
  job.gpu_count = 4;
  const auto exchanged = [](const Prediction& p) {
    for (const TimePart& part : p.breakdown) {
      if (part.name == "expert_parallel_exposed") return part.seconds;
    }
    return -1.0;
  };
  job.plan.tensor_parallel_size = 4;
  job.plan.expert_parallel_size = 4;
  EXPECT_EQ(exchanged(PredictOrDie(job)), 0);
  job.plan.tensor_parallel_size = 1;
  job.plan.data_parallel_size = 4;
  EXPECT_GT(exchanged(PredictOrDie(job)), 0);
}

// H100 has no 4-bit rate: weights are read at 4 bits (and scales) and multiplied in 16.
TEST(Predict, FourBitWeightsRunWhereTheDeviceHasNoFourBitRate) {
  Job job = LlamaServing();
  std::get<workload::InferenceWorkload>(job.workload).batch_size = 1;
  const Prediction wide = PredictOrDie(job);
  ASSERT_FALSE(job.cluster.accelerator.Supports(hardware::Precision::kFp4));
  job.precision = hardware::Precision::kFp4;
  const Prediction narrow = PredictOrDie(job);
  EXPECT_LT(*narrow.inter_token_latency_seconds, *wide.inter_token_latency_seconds);
  EXPECT_GT(*narrow.inter_token_latency_seconds, 0.25 * *wide.inter_token_latency_seconds);
  job.workload = workload::TrainingWorkload{.global_batch_size = 1, .sequence_length = 128};
  EXPECT_FALSE(TryPredict(job).ok());
}

TEST(Predict, TheCapacityThatAnEngineReportsIsHonoured) {
  Job job = LlamaServing();
  std::get<workload::InferenceWorkload>(job.workload).kv_cache_capacity_tokens = 12345;
  EXPECT_EQ(*PredictOrDie(job).kv_cache_capacity_tokens, 12345);
}

// A kernel that serves every query head by itself does 4 FLOP for each of 4 sequences x 32 heads x
// 128 channels x keys, in 32 layers; grouping heads over 8 key heads leaves that as it is. At 1e12
// FLOP/s that outlasts any memory traffic here.
TEST(PriceInference, DecodeHeadByHeadCostsItsArithmetic) {
  Job job = LlamaServing();
  job.model.kv_head_count = 8;
  const InferenceGraph graph = BuildInferenceGraph(job, {});
  LocalOperatorCost operators(Uncalibrated());
  LocalNetworkTime network(Uncalibrated());
  const absl::StatusOr<PortAnswers> answers = AskPorts(graph, job, operators, network);
  ASSERT_TRUE(answers.ok()) << answers.status();
  const PricedInference grouped = PriceInference(graph, *answers, 0);
  const PricedInference by_head = PriceInference(graph, *answers, 1e12);
  ASSERT_EQ(by_head.contexts.size(), grouped.contexts.size());
  for (size_t i = 0; i < by_head.contexts.size(); ++i) {
    const double keys = static_cast<double>(by_head.contexts[i].context_tokens);
    EXPECT_NEAR(by_head.contexts[i].attention_seconds, 32 * 4 * 4 * 32 * 128 * keys / 1e12, 1e-9);
    EXPECT_GT(by_head.contexts[i].attention_seconds, grouped.contexts[i].attention_seconds);
  }
  // Groups of four: an engine that has a kernel for those does not multiply head by head.
  InferenceParameters<double> p{.vector_attention_share = 0.1, .matrix_attention_group = 4};
  EXPECT_EQ(VectorAttentionRate(job, p), 0);
  p.matrix_attention_group = 8;
  EXPECT_NEAR(VectorAttentionRate(job, p), 0.1 * job.cluster.accelerator.vector_flop_per_second, 1);
}

TEST(Predict, AServingLoadGoesWithInference) {
  Job job = LlamaTraining();
  job.serving = serving::ServingLoad{.concurrency = 0};
  const absl::Status status = TryPredict(job).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("serving:"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("serving.concurrency"));
}

TEST(Predict, MixtureFlopsAreThoseOfVisitedExperts) {
  Job job = LlamaTraining();
  job.model.experts = {.expert_count = 8, .experts_per_token = 2, .expert_ffn_size = 14336};
  const Prediction p = PredictOrDie(job);
  ExpectConsistent(p);
  Job wide = job;
  wide.model.experts.expert_count = 16;
  // A bigger router is all that the model computes more.
  EXPECT_NEAR(ModelFlopCount(wide) / ModelFlopCount(job), 1, 1e-3);
}

TEST(Predict, WrongJobsNameEveryViolation) {
  Job job = LlamaTraining();
  job.plan.tensor_parallel_size = 3;
  const absl::Status status = TryPredict(job).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("plan.tensor_parallel_size"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("gpu_count"));
}

TEST(Predict, UnknownProfilesAreRefusedOrFlagged) {
  parameters::AcceleratorParameters a100;
  a100.profiles["megatron-lm"]["training.step_seconds"] = {.value = 0.02};
  const auto set = std::make_shared<const parameters::ParameterSet>(
      parameters::Provenance{},
      std::map<std::string, parameters::AcceleratorParameters, std::less<>>{
          {"a100-sxm4-80gb", a100}});
  Job job = LlamaTraining();
  job.framework = "megatron-ml";
  const absl::Status status = TryPredict(job, set).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("megatron-lm"));
  const absl::StatusOr<Prediction> flagged =
      TryPredict(job, set, {.unknown_profile_is_default = true});
  ASSERT_TRUE(flagged.ok()) << flagged.status();
  EXPECT_TRUE(flagged->extrapolated);
  EXPECT_THAT(flagged->warnings, ::testing::Contains(HasSubstr("megatron-ml")));
}

// Half a percent more of a resource changes the logarithm of the total by its elasticity times
// ln 1.005. Tile and algorithm choices may flip between: a tenth of the largest is allowed.
TEST(Sensitivities, AgreeWithFiniteChanges) {
  const Job jobs[] = {Megatron175(), LlamaTraining(), LlamaServing()};
  for (const Job& job : jobs) {
    const absl::StatusOr<Prediction> base =
        TryPredict(job, Uncalibrated(), {.sensitivities = true});
    ASSERT_TRUE(base.ok()) << base.status();
    ASSERT_EQ(base->sensitivities.size(), 6u);
    double sum = 0;
    for (const Sensitivity& s : base->sensitivities) {
      Job faster = job;
      hardware::Cluster& cluster = faster.cluster;
      constexpr double kFactor = 1.005;
      if (s.resource == "matrix_rate") {
        for (double& rate : cluster.accelerator.matrix_flop_per_second) rate *= kFactor;
      } else if (s.resource == "l2_bandwidth") {
        cluster.accelerator.l2_bandwidth_bytes_per_second *= kFactor;
      } else if (s.resource == "hbm_bandwidth") {
        cluster.accelerator.hbm_bandwidth_bytes_per_second *= kFactor;
      } else if (s.resource == "node_bandwidth") {
        cluster.node_bandwidth_bytes_per_second *= kFactor;
      } else if (s.resource == "network_bandwidth") {
        cluster.network_bandwidth_bytes_per_second *= kFactor;
      } else {
        EXPECT_EQ(s.resource, "launch_overhead");
        EXPECT_GE(s.elasticity, 0);
        continue;
      }
      EXPECT_LE(s.elasticity, 1e-9) << s.resource;
      sum += s.elasticity;
      const double change =
          std::log(PredictOrDie(faster).total_seconds / base->total_seconds) / std::log(kFactor);
      EXPECT_NEAR(s.elasticity, change, 0.03) << s.resource;
    }
    // Twice as much of everything takes no less than half the time.
    EXPECT_GE(sum, -1 - 1e-6);
    EXPECT_LT(sum, -0.5);
  }
  EXPECT_TRUE(PredictOrDie(LlamaTraining()).sensitivities.empty());
}

TEST(LargestMicroBatch, FitsAndTheNextDoesNot) {
  Job job = LlamaTraining();
  auto& work = std::get<workload::TrainingWorkload>(job.workload);
  work.global_batch_size = 256 * job.plan.data_parallel_size;
  const Prediction prediction = PredictOrDie(job);
  ASSERT_TRUE(prediction.memory.largest_micro_batch_size.has_value());
  const int64_t largest = *prediction.memory.largest_micro_batch_size;
  ASSERT_GT(largest, 0);
  ASSERT_LT(largest, 256);
  job.plan.micro_batch_size = largest;
  EXPECT_TRUE(PredictOrDie(job).memory.fits);
  job.plan.micro_batch_size = 2 * largest;
  EXPECT_FALSE(PredictOrDie(job).memory.fits);
  EXPECT_FALSE(PredictOrDie(LlamaServing()).memory.largest_micro_batch_size.has_value());
}

}  // namespace
}  // namespace sextant::orchestrator
