// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <variant>

#include "common/orchestrator/graph.h"
#include "common/orchestrator/graph_builder.h"

namespace sextant::orchestrator {
namespace {

using collectives::CollectiveKind;
using operator_cost::AttentionPhase;
using workload::Job;
using workload::ParallelPlan;

void BuildRecompute(GraphBuilder& builder, workload::Recompute recompute, bool fused, bool mixture,
                    Block& block) {
  if (recompute == workload::Recompute::kFull) {
    builder.LayerForward(block, mixture);
  } else if (recompute == workload::Recompute::kSelective && !fused) {
    // The attention core; a FlashAttention backward pass recomputes it inside the kernel anyway.
    builder.AttentionCore(block, AttentionPhase::kPrefill);
  }
}

StageClass OneLayer(bool mixture) {
  StageClass one;
  (mixture ? one.mixture_layer_count : one.dense_layer_count) = 1;
  return one;
}

}  // namespace

TrainingGraph BuildTrainingGraph(const Job& job, const GraphOptions& options) {
  const auto& work = std::get<workload::TrainingWorkload>(job.workload);
  const ParallelPlan& plan = job.plan;
  TrainingGraph graph;
  GraphBuilder builder(job, options, graph);
  const int64_t local = work.sequence_length / plan.context_parallel_size;
  builder.SetTokens(plan.micro_batch_size, local, plan.micro_batch_size * local);

  graph.micro_batch_count =
      work.global_batch_size / (plan.micro_batch_size * plan.data_parallel_size);
  const auto finish = [&](TrainingBlocks& blocks, const StageClass& part) {
    const RankParameters trained = CountTrainedParameters(job, part);
    builder.SumGradients(blocks.backward, trained.Total());
    builder.ShardedData(blocks, CountRankParameters(job, part), trained);
  };
  const auto layer = [&](TrainingBlocks& blocks, bool mixture) {
    builder.LayerForward(blocks.forward, mixture);
    builder.LayerBackward(blocks.backward, mixture);
    BuildRecompute(builder, plan.recompute, options.fused_attention, mixture, blocks.recompute);
    finish(blocks, OneLayer(mixture));
  };
  const bool mixture = job.model.IsMixture();
  if (!mixture || job.model.experts.dense_layer_count > 0) layer(graph.dense, false);
  if (mixture && job.model.experts.dense_layer_count < job.model.layer_count) {
    layer(graph.mixture, true);
  }
  builder.EmbeddingForward(graph.embedding.forward);
  builder.EmbeddingBackward(graph.embedding.backward);
  builder.HeadForwardTraining(graph.head.forward);
  builder.HeadBackward(graph.head.backward);
  finish(graph.embedding, {.has_embedding = true});
  const bool shared_table = job.model.tied_embeddings && plan.pipeline_parallel_size == 1;
  if (!shared_table) finish(graph.head, {.has_head = true});

  for (const StageClass& stage : StageClasses(job)) {
    graph.stages.push_back(builder.Step(stage, work.optimizer));
  }
  builder.Send(graph.send, 2 * static_cast<double>(plan.virtual_pipeline_size));
  if (job.model.tied_embeddings && plan.pipeline_parallel_size > 1) {
    const double bytes =
        options.gradient_bytes * static_cast<double>(job.model.hidden_size) *
        static_cast<double>(VocabularyRowsPerRank(job.model, plan.tensor_parallel_size));
    graph.tied_embedding.push_back(builder.Communicate(CollectiveKind::kAllReduce, bytes,
                                                       builder.PipelineNeighbours(),
                                                       CommunicationClass::kShardedData));
  }
  return graph;
}

}  // namespace sextant::orchestrator
