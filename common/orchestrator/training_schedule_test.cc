// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "common/orchestrator/graph.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/stage_layout.h"
#include "common/orchestrator/test_jobs.h"
#include "common/orchestrator/timeline_formula.h"
#include "gtest/gtest.h"

namespace sextant::orchestrator {
namespace {

using operator_cost::MemoryBoundKind;

using workload::Job;
using workload::PipelineSchedule;

// A framework that adds nothing to its kernels.
TrainingParameters<double> Ideal() {
  TrainingParameters<double> p{};
  p.compute_slowdown = p.memory_pass_factor = p.attention_slowdown = 1;
  return p;
}

// `ranks` equal stages: forward 1 s, backward 2 s of which weight gradients 1 s.
PricedTraining EqualStages(int64_t ranks, int64_t micro_batches, PipelineSchedule schedule) {
  PricedStage stage;
  stage.rank_count = ranks;
  stage.forward.matrix_seconds = 1;
  stage.backward.matrix_seconds = 2;
  stage.backward.weight_gradient_seconds = 1;
  PricedTraining job;
  job.stages = {stage};
  job.micro_batch_count = micro_batches;
  job.schedule = schedule;
  return job;
}

double Bubble(const PricedTraining& job) { return TrainingStep(job, Ideal()).pipeline_bubble; }

// With F = B = W = 1: 1F1B (p - 1)(F + B + W), ZB-H1 (p - 1)(F + B - W), ZB-H2 (p - 1)(F + B - 2W)
// = 0 (Qi et al. 2023, table 1); DualPipe (p/2 - 1)(F&B + B' - 3W) with B' = B + W, F&B = F + B'
// (DeepSeek-V3 2024, table 2).
TEST(PipelineBubble, EqualsTheClosedFormOfItsSchedule) {
  for (const int64_t p : {2, 4, 8, 64}) {
    const double others = static_cast<double>(p - 1);
    for (const int64_t m : {8, 64, 512}) {
      EXPECT_DOUBLE_EQ(Bubble(EqualStages(p, m, PipelineSchedule::kGpipe)), others * 3);
      EXPECT_DOUBLE_EQ(Bubble(EqualStages(p, m, PipelineSchedule::k1f1b)), others * 3);
      EXPECT_DOUBLE_EQ(Bubble(EqualStages(p, m, PipelineSchedule::kZeroBubbleH1)), others * 1);
      EXPECT_DOUBLE_EQ(Bubble(EqualStages(p, m, PipelineSchedule::kZeroBubbleH2)), 0);
      EXPECT_NEAR(Bubble(EqualStages(p, m, PipelineSchedule::kDualPipe)), others - 1, 1e-9);
    }
  }
}

// Narayanan et al. 2021, section 2.2.2: v chunks divide the bubble by v.
TEST(PipelineBubble, InterleavingDividesItByTheChunks) {
  PricedTraining job = EqualStages(8, 64, PipelineSchedule::kInterleaved);
  job.virtual_pipeline_size = 4;
  EXPECT_DOUBLE_EQ(Bubble(job), 7 * 3.0 / 4);
}

TEST(PipelineBubble, OneStageHasNone) {
  const PricedTraining job = EqualStages(1, 1, PipelineSchedule::k1f1b);
  EXPECT_DOUBLE_EQ(Bubble(job), 0);
  EXPECT_DOUBLE_EQ(TrainingStep(job, Ideal()).Total(), 3);
}

TEST(Straggler, TheStageOfASlowRankSetsThePaceAndOnlyItIsSlow) {
  PricedTraining job = EqualStages(3, 10, PipelineSchedule::k1f1b);
  PricedStage slow = job.stages[0];
  slow.rank_count = 1;
  slow.slowdown = 1.5;
  job.stages.push_back(slow);
  // Ten micro-batches at 4.5 s; three healthy stages fill and drain at 3 s.
  EXPECT_DOUBLE_EQ(TrainingStep(job, Ideal()).Total(), 10 * 4.5 + 3 * 3);
}

TEST(Straggler, SplitsItsPipelineRankFromTheOthersAlike) {
  Job job = Megatron175();
  job.plan.virtual_pipeline_size = 1;
  const size_t healthy = StageClasses(job).size();
  job.faults = {{.scope = "rank", .index = 3 * 8 + 5, .slowdown = 1.3}};
  ASSERT_TRUE(workload::ValidateJob(job).ok()) << workload::ValidateJob(job);
  const std::vector<StageClass> classes = StageClasses(job);
  EXPECT_EQ(classes.size(), healthy + 1);
  int64_t ranks = 0;
  for (const StageClass& c : classes) {
    ranks += c.rank_count;
    EXPECT_EQ(c.slowdown, c.first_rank == 3 ? 1.3 : 1.0);
  }
  EXPECT_EQ(ranks, job.plan.pipeline_parallel_size);
}

// Layers of hidden 2048 and ffn 8192 (gated): 4 h^2 + 3 h f = 67.1e6 weights; a head of 131072 rows
// 268.4e6, as four layers. 20 units over 8 ranks: a rank closes when all so far reach 2.5 units
// times its number; the head lies on the last one. Over 4 ranks shares are whole: five layers each.
TEST(StageSplit, ByComputeCountsTheHead) {
  Job job = Megatron175();
  job.model = LlamaModel(2048, 16, 32, 32, 8192);
  job.model.vocabulary_size = 131072;
  job.plan.stage_split = workload::StageSplit::kCompute;
  job.plan.virtual_pipeline_size = 1;
  const auto layers = [&](int64_t ranks) {
    job.plan.pipeline_parallel_size = ranks;
    std::vector<int64_t> counts;
    for (const Chunk& chunk : ModelChunks(job)) counts.push_back(chunk.layer_count);
    EXPECT_TRUE(ModelChunks(job).back().has_head);
    return counts;
  };
  EXPECT_EQ(layers(8), (std::vector<int64_t>{3, 2, 3, 2, 3, 2, 1, 0}));
  EXPECT_EQ(layers(4), (std::vector<int64_t>{5, 5, 5, 1}));
}

// Without ZeRO the gradients of a rank are all-reduced in messages no larger than a bucket, that
// together carry the same bytes.
TEST(GradientReduction, BucketsCarryTheSameBytes) {
  Job job = Megatron175();
  job.plan.data_parallel_size = 4;
  job.gpu_count *= 4;
  GraphOptions options;
  const TrainingGraph whole = BuildTrainingGraph(job, options);
  options.reduce_bucket_bytes = 5e7;
  const TrainingGraph buckets = BuildTrainingGraph(job, options);
  const auto bytes = [](const TrainingGraph& graph) {
    double sum = 0;
    for (const CollectiveUse& use : graph.stages.front().reduce) {
      sum += use.count * graph.collectives[static_cast<size_t>(use.index)].bytes;
    }
    return sum;
  };
  ASSERT_GT(bytes(whole), 5e7);
  EXPECT_NEAR(bytes(buckets), bytes(whole), 1e-9 * bytes(whole));
  const CollectiveUse& use = buckets.stages.front().reduce.front();
  EXPECT_LE(buckets.collectives[static_cast<size_t>(use.index)].bytes, 5e7);
}

TEST(StageSplit, ListedLayersAreTakenAndCheckedAgainstTheModel) {
  Job job = Megatron175();
  job.plan.virtual_pipeline_size = 1;
  job.plan.schedule = PipelineSchedule::k1f1b;
  job.plan.stage_layer_counts = {10, 12, 12, 12, 12, 12, 13, 13};
  EXPECT_TRUE(workload::ValidateJob(job).ok()) << workload::ValidateJob(job);
  EXPECT_EQ(ModelChunks(job)[6].layer_count, 13);
  job.plan.stage_layer_counts.back() = 12;
  EXPECT_FALSE(workload::ValidateJob(job).ok());
}

// DeepSeek-V3 2024, table 2, and Qi et al. 2023: stage activations that the first rank holds.
TEST(MicroBatchesInFlight, FollowsTheSchedule) {
  workload::ParallelPlan plan;
  plan.pipeline_parallel_size = 8;
  const auto first = [&](PipelineSchedule schedule) {
    plan.schedule = schedule;
    return MicroBatchesInFlight(plan, 64, 0);
  };
  EXPECT_EQ(first(PipelineSchedule::kGpipe), 64);
  EXPECT_EQ(first(PipelineSchedule::k1f1b), 8);
  EXPECT_EQ(first(PipelineSchedule::kZeroBubbleH1), 8);
  EXPECT_EQ(first(PipelineSchedule::kZeroBubbleH2), 15);
  EXPECT_EQ(first(PipelineSchedule::kDualPipe), 9);
}

double CollectiveBytes(const TrainingGraph& graph, const std::vector<CollectiveUse>& uses,
                       collectives::CollectiveKind kind) {
  double bytes = 0;
  for (const CollectiveUse& use : uses) {
    const auto& collective = graph.collectives[static_cast<size_t>(use.index)];
    if (use.category == CommunicationClass::kShardedData && collective.kind == kind) {
      bytes += use.count * collective.bytes;
    }
  }
  return bytes;
}

// Rajbhandari et al. 2020, section 7, for P weights in 16 bits and gradients in fp32: stage 0
// all-reduces 4 P; stages 1 and 2 scatter 4 P and gather 2 P, stage 2 with each micro-batch; stage
// 3 gathers 2 P in each pass and scatters 4 P with each micro-batch, and nothing at the end.
TEST(ZeroVolumes, EqualThePaper) {
  using collectives::CollectiveKind;
  Job job = Megatron175();
  job.model = Llama2Seven();
  job.plan = {.data_parallel_size = 64};
  const double weights = static_cast<double>(workload::CountParameters(job.model).Total());
  for (int stage = 0; stage <= 3; ++stage) {
    job.plan.zero_stage = stage;
    const TrainingGraph graph = BuildTrainingGraph(job, GraphOptions{});
    const auto in_passes = [&](CollectiveKind kind) {
      double bytes = 0;
      const auto add = [&](const TrainingBlocks& blocks, double count) {
        for (const Block* block : {&blocks.forward, &blocks.backward, &blocks.recompute}) {
          bytes += count * CollectiveBytes(graph, block->collectives, kind);
        }
      };
      add(graph.embedding, 1);
      add(graph.dense, static_cast<double>(job.model.layer_count));
      add(graph.head, 1);
      return bytes;
    };
    const auto& end = graph.stages.front().reduce;
    const double tolerance = 1e-6 * weights;
    EXPECT_NEAR(CollectiveBytes(graph, end, CollectiveKind::kAllReduce),
                stage == 0 ? 4 * weights : 0, tolerance);
    EXPECT_NEAR(CollectiveBytes(graph, end, CollectiveKind::kReduceScatter),
                stage == 1 ? 4 * weights : 0, tolerance);
    EXPECT_NEAR(CollectiveBytes(graph, end, CollectiveKind::kAllGather),
                stage == 1 || stage == 2 ? 2 * weights : 0, tolerance);
    EXPECT_NEAR(in_passes(CollectiveKind::kReduceScatter), stage >= 2 ? 4 * weights : 0, tolerance);
    EXPECT_NEAR(in_passes(CollectiveKind::kAllGather), stage == 3 ? 4 * weights : 0, tolerance);
  }
}

// Frozen weights: no weight gradients, so two thirds of the arithmetic but for attention; states of
// r x (2 h + 4 h + h) weights a layer alone (multi-head, adapters on both projections).
TEST(Lora, TrainsItsAdaptersAlone) {
  Job job = Megatron175();
  job.model = Llama2Seven();
  job.plan = {.data_parallel_size = 64};
  auto& work = std::get<workload::TrainingWorkload>(job.workload);
  const double all = ModelFlopCount(job);
  work.lora_rank = 16;
  EXPECT_LT(ModelFlopCount(job), 0.70 * all);
  EXPECT_GT(ModelFlopCount(job), 0.66 * all);
  const StageClass stage = StageClasses(job).front();
  EXPECT_DOUBLE_EQ(CountTrainedParameters(job, stage).Total(), 32 * 16.0 * (2 * 4096 + 4 * 4096));
}

double MovedBytes(const TrainingGraph& graph, const Block& block, MemoryBoundKind kind) {
  double bytes = 0;
  for (const OperatorUse& use : block.operators) {
    const auto* shape = std::get_if<operator_cost::MemoryBoundShape>(
        &graph.operators[static_cast<size_t>(use.index)].shape);
    if (shape == nullptr || shape->kind != kind) continue;
    bytes += use.count * 4 * static_cast<double>(shape->rows) * static_cast<double>(shape->columns);
  }
  return bytes;
}

// Each product reads its input cast to 8 bits, both of its gradients that of its output: per token
// of Llama-2-7B inputs of 3 x 4096 + 11008 numbers forward, gradients of 12288 + 4096 + 22016 +
// 4096 backward, 4 B each (16 bits read, 8 bits written in two layouts).
TEST(EightBitTraining, CastsWhatItsProductsRead) {
  Job job = LlamaTraining();
  job.plan = {.data_parallel_size = 8};
  EXPECT_EQ(MovedBytes(BuildTrainingGraph(job, {}), BuildTrainingGraph(job, {}).dense.forward,
                       MemoryBoundKind::kCopy),
            0);
  job.precision = hardware::Precision::kFp8;
  const TrainingGraph graph = BuildTrainingGraph(job, {});
  EXPECT_DOUBLE_EQ(MovedBytes(graph, graph.dense.forward, MemoryBoundKind::kCopy),
                   4.0 * 2048 * (3 * 4096 + 11008));
  EXPECT_DOUBLE_EQ(MovedBytes(graph, graph.dense.backward, MemoryBoundKind::kCopy),
                   4.0 * 2048 * (12288 + 4096 + 22016 + 4096));
}

Job ExpertsOverNodes() {
  Job job = LlamaTraining();
  job.model.experts = {.expert_count = 64, .experts_per_token = 8, .expert_ffn_size = 1024};
  job.gpu_count = 32;
  job.plan = {.expert_parallel_size = 32, .data_parallel_size = 32};
  return job;
}

// 2048 tokens of 8 KiB to eight of 64 experts on four nodes: eight copies of each between ranks, or
// one to each of the 4 (1 - (3/4)^8) = 3.60 nodes reached and eight inside them.
TEST(ExpertExchange, ATokenMayCrossOnceToEachNode) {
  const Job job = ExpertsOverNodes();
  const auto bytes = [&](const GraphOptions& options, bool inside) {
    const TrainingGraph graph = BuildTrainingGraph(job, options);
    double sum = 0;
    for (const CollectiveUse& use : graph.mixture.forward.collectives) {
      const auto& collective = graph.collectives[static_cast<size_t>(use.index)];
      if (use.category != CommunicationClass::kExpert) continue;
      if (collective.SpansNodes() != inside) sum += use.count * collective.bytes;
    }
    return sum;
  };
  const double once = 2 * 2048.0 * 8192;  // there and back
  EXPECT_DOUBLE_EQ(bytes({}, false), 8 * once);
  EXPECT_DOUBLE_EQ(bytes({}, true), 0);
  EXPECT_NEAR(bytes({.node_level_dispatch = true}, false), 3.5995 * once, 1e-3 * once);
  EXPECT_DOUBLE_EQ(bytes({.node_level_dispatch = true}, true), 8 * once);
}

TEST(ExpertExchange, TheBusiestRankSetsThePace) {
  Job job = ExpertsOverNodes();
  const auto imbalance = [&] {
    const TrainingGraph graph = BuildTrainingGraph(job, {});
    for (const operator_cost::Operator& op : graph.operators) {
      const auto* experts = std::get_if<operator_cost::ExpertFfnShape>(&op.shape);
      if (experts != nullptr) return experts->imbalance;
    }
    return 0.0;
  };
  EXPECT_EQ(imbalance(), 1);
  job.model.experts.load_imbalance = 1.5;
  EXPECT_EQ(imbalance(), 1.5);
}

}  // namespace
}  // namespace sextant::orchestrator
