// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/memory.h"

#include <algorithm>
#include <numeric>

#include "common/orchestrator/kv_cache.h"
#include "common/orchestrator/stage_layout.h"
#include "common/orchestrator/test_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::orchestrator {
namespace {

using workload::Job;
using workload::Recompute;

constexpr MemoryParameters<double> kPlain{.context_bytes = 0,
                                          .workspace_bytes = 0,
                                          .activation_factor = 1,
                                          .gradient_bytes = 4,
                                          .logits_bytes = 4,
                                          .fragmentation = 0,
                                          .inference_memory_fraction = 1};

int64_t PartOf(const MemoryPrediction& memory, const std::string& name) {
  for (const MemoryPart& part : memory.breakdown) {
    if (part.name == name) return part.bytes;
  }
  ADD_FAILURE() << "no part " << name;
  return 0;
}

// Korthikanti et al. 2022, table 2, for s 2048, b 1, h 12288, a 96, t 8.
TEST(LayerActivationBytes, MatchesThePublishedTable) {
  Job job = Megatron175();
  const double sbh = 2048.0 * 12288;
  const double scores = 5.0 * 96 * 2048 / 12288;  // 5 a s / h = 80
  job.plan.sequence_parallel = false;
  job.plan.recompute = Recompute::kNone;
  EXPECT_DOUBLE_EQ(LayerActivationBytes(job, false, false), sbh * (10 + 24.0 / 8 + scores / 8));
  job.plan.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(LayerActivationBytes(job, false, false), sbh / 8 * (34 + scores));
  job.plan.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(LayerActivationBytes(job, false, false), sbh / 8 * 34);
  job.plan.sequence_parallel = false;
  job.plan.recompute = Recompute::kFull;
  EXPECT_DOUBLE_EQ(LayerActivationBytes(job, false, false), 2 * sbh);
}

// Inputs of the four products in 8 bits: 2 h and f bytes a token less than with 16.
TEST(LayerActivationBytes, EightBitTrainingKeepsInputsIn8Bits) {
  Job job = LlamaTraining();
  job.plan = {};
  const double wide = LayerActivationBytes(job, false, true);
  job.precision = hardware::Precision::kFp8;
  EXPECT_DOUBLE_EQ(wide - LayerActivationBytes(job, false, true), 2048.0 * (2 * 4096 + 11008));
}

TEST(MicroBatchesInFlight, FollowsTheSchedule) {
  workload::ParallelPlan plan{.pipeline_parallel_size = 8};
  EXPECT_EQ(MicroBatchesInFlight(plan, 64, 0), 8);
  EXPECT_EQ(MicroBatchesInFlight(plan, 64, 7), 1);
  EXPECT_EQ(MicroBatchesInFlight(plan, 4, 0), 4);
  plan.virtual_pipeline_size = 3;
  // Korthikanti et al. 2022, section 4.2.3: p (1 + (p - 1) / (p v)) = 8 + 7/3.
  EXPECT_DOUBLE_EQ(MicroBatchesInFlight(plan, 64, 0), 8 + 7.0 / 3);
  EXPECT_LE(MicroBatchesInFlight(plan, 8, 0), 8);
  plan.virtual_pipeline_size = 1;
  plan.schedule = workload::PipelineSchedule::kGpipe;
  EXPECT_EQ(MicroBatchesInFlight(plan, 64, 0), 64);
}

// 6.74 G parameters: 13.5 GB in 16 bits, and with fp32 gradients, master weights and moments 18 B
// for each.
TEST(PredictMemory, LlamaSevenHoldsEighteenBytesPerParameter) {
  Job job = LlamaTraining();
  job.gpu_count = 1;
  job.plan = {};
  const MemoryPrediction memory = PredictMemory(job, kPlain, true);
  const double states = static_cast<double>(
      PartOf(memory, "weights") + PartOf(memory, "gradients") + PartOf(memory, "optimizer"));
  EXPECT_NEAR(static_cast<double>(PartOf(memory, "weights")), 13.476e9, 0.01e9);
  EXPECT_NEAR(states / 6.738e9, 18, 0.01);
  EXPECT_FALSE(memory.fits);
  EXPECT_EQ(memory.shortfall_bytes, memory.total_bytes - memory.capacity_bytes);
}

TEST(PredictMemory, ZeroStagesShardOptimizerThenGradientsThenWeights) {
  Job job = LlamaTraining();
  job.plan.zero_stage = 0;
  const MemoryPrediction whole = PredictMemory(job, kPlain, true);
  job.plan.zero_stage = 1;
  const MemoryPrediction one = PredictMemory(job, kPlain, true);
  EXPECT_NEAR(static_cast<double>(PartOf(one, "optimizer")),
              static_cast<double>(PartOf(whole, "optimizer")) / 4, 1);
  EXPECT_EQ(PartOf(one, "gradients"), PartOf(whole, "gradients"));
  job.plan.zero_stage = 2;
  const MemoryPrediction two = PredictMemory(job, kPlain, true);
  EXPECT_NEAR(static_cast<double>(PartOf(two, "gradients")),
              static_cast<double>(PartOf(whole, "gradients")) / 4, 1);
  job.plan.zero_stage = 3;
  EXPECT_LT(PartOf(PredictMemory(job, kPlain, true), "weights"), PartOf(two, "weights"));
}

// Buffers that exchange shards are there while the optimizer steps, activations in the passes: the
// peak has the larger of both.
TEST(PredictMemory, ExchangeBuffersAndActivationsAreNotThereAtOnce) {
  Job job = LlamaTraining();
  job.plan.zero_stage = 1;
  const double passes = static_cast<double>(PredictMemory(job, kPlain, true).total_bytes);
  const double states = ResidentTrainingBytes(job, kPlain);
  MemoryParameters<double> p = kPlain;
  const double parameters = CountTrainedParameters(job, StageClasses(job).front()).Total();
  p.shard_buffer_bytes = 0.5 * (passes - states) / parameters;
  EXPECT_NEAR(static_cast<double>(PredictMemory(job, p, true).total_bytes), passes, 10);
  p.shard_buffer_bytes = 2 * (passes - states) / parameters;
  const MemoryPrediction step = PredictMemory(job, p, true);
  EXPECT_NEAR(static_cast<double>(step.total_bytes), ResidentTrainingBytes(job, p), 10);
  EXPECT_EQ(PartOf(step, "activations"), 0);
}

TEST(KvBytes, LlamaSevenKeepsHalfAMebibytePerToken) {
  EXPECT_EQ(32 * KvBytesPerTokenPerLayer(Llama2Seven(), 1, hardware::Precision::kFp16), 524288);
  // Llama-3-70B: 80 layers x 2 x 8 x 128 x 2 B, an eighth of what its 64 query heads would need.
  const auto large = LlamaModel(8192, 80, 64, 8, 28672);
  EXPECT_EQ(80 * KvBytesPerTokenPerLayer(large, 1, hardware::Precision::kBf16), 327680);
  EXPECT_EQ(KvBytesPerTokenPerLayer(large, 16, hardware::Precision::kBf16),
            KvBytesPerTokenPerLayer(large, 8, hardware::Precision::kBf16));
}

TEST(KvCacheCapacityTokens, GrowsWithPipelineStages) {
  Job job = LlamaServing();
  const double one = static_cast<double>(KvCacheCapacityTokens(job, kPlain));
  job.gpu_count = 4;
  job.plan.pipeline_parallel_size = 4;
  const double four = static_cast<double>(KvCacheCapacityTokens(job, kPlain));
  // Four times the layers' room, and weights that are there once instead of four times.
  EXPECT_GT(four, 4 * one);
  EXPECT_LT(four, 5.2 * one);
}

TEST(CountRankParameters, TiedTablesAreOnceAtOneStageAndTwiceAtTwo) {
  Job job = LlamaTraining();
  // Llama-3.2-1B: 1.2358 G parameters, embedding 128256 x 2048 = 0.2627 G.
  job.model = LlamaModel(2048, 16, 32, 8, 8192);
  job.model.vocabulary_size = 128256;
  job.model.tied_embeddings = true;
  const auto total = [&](int64_t pipeline) {
    job.plan = {};
    job.plan.pipeline_parallel_size = pipeline;
    double sum = 0;
    for (const StageClass& stage : StageClasses(job)) {
      sum += CountRankParameters(job, stage).Total() * static_cast<double>(stage.rank_count);
    }
    return sum;
  };
  EXPECT_NEAR(total(1), 1.2358e9, 1e5);
  EXPECT_NEAR(total(2) - total(1), 128256.0 * 2048, 1);
}

TEST(PredictMemory, CountsAllExpertsNotOnlyTheActive) {
  Job job = LlamaServing();
  job.model = LlamaModel(4096, 32, 32, 8, 14336);
  job.model.experts = {.expert_count = 8, .experts_per_token = 2, .expert_ffn_size = 14336};
  // Mixtral-8x7B: 46.7 G parameters, 93.4 GB: not one 80 GB device.
  const MemoryPrediction memory = PredictMemory(job, kPlain, true);
  EXPECT_NEAR(static_cast<double>(PartOf(memory, "weights")), 93.4e9, 0.3e9);
  EXPECT_FALSE(memory.fits);
}

TEST(ChunkLayerCounts, SumToTheLayersWhateverTheStages) {
  for (int64_t layers = 1; layers < 130; ++layers) {
    for (int64_t chunks = 1; chunks <= layers; ++chunks) {
      const std::vector<int64_t> counts = ChunkLayerCounts(layers, chunks);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), layers);
      const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
      EXPECT_LE(*high - *low, 1);
    }
  }
  EXPECT_THAT(ChunkLayerCounts(10, 3), ::testing::ElementsAre(3, 4, 3));
}

}  // namespace
}  // namespace sextant::orchestrator
