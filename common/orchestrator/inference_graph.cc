// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <variant>

#include "common/orchestrator/graph.h"
#include "common/orchestrator/graph_builder.h"

namespace sextant::orchestrator {

using workload::Job;
using workload::ParallelPlan;

int64_t MicroBatchSequences(int64_t sequence_count, int64_t tokens, int64_t pipeline_parallel_size,
                            int64_t pass_tokens) {
  if (pipeline_parallel_size <= 1) return sequence_count;
  int64_t local = sequence_count;
  if (local % pipeline_parallel_size == 0) local /= pipeline_parallel_size;
  while (local % 2 == 0 && local > pass_tokens / std::max<int64_t>(1, tokens)) local /= 2;
  return local;
}

InferenceGraph BuildInferenceGraph(const Job& job, const GraphOptions& options) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  const ParallelPlan& plan = job.plan;
  InferenceGraph graph;
  GraphBuilder builder(job, options, graph);
  const auto micro_batch = [&](int64_t tokens) {
    return MicroBatchSequences(graph.sequence_count, tokens, plan.pipeline_parallel_size,
                               options.pass_tokens);
  };
  graph.sequence_count = CeilDivide(work.batch_size, plan.data_parallel_size);
  graph.prefill_sequence_count = micro_batch(work.prompt_tokens);
  graph.decode_sequence_count = micro_batch(1);
  graph.prompt_tokens = work.prompt_tokens;
  graph.dense_layer_count =
      job.model.IsMixture() ? job.model.experts.dense_layer_count : job.model.layer_count;
  graph.mixture_layer_count = job.model.layer_count - graph.dense_layer_count;
  graph.full_attention_layer_count = job.model.FullAttentionLayerCount();
  graph.windowed_layer_count = job.model.WindowedLayerCount();
  int64_t longest = 0;
  for (const StageClass& stage : StageClasses(job)) {
    longest = std::max(longest, stage.LayerCount());
  }
  graph.slowest_stage_share =
      static_cast<double>(longest) / static_cast<double>(job.model.layer_count);
  const double boundaries = static_cast<double>(plan.pipeline_parallel_size - 1);

  builder.SetTokens(graph.prefill_sequence_count, work.prompt_tokens,
                    graph.prefill_sequence_count * work.prompt_tokens);
  builder.EmbeddingForward(graph.prefill_embedding);
  if (graph.dense_layer_count > 0) builder.LayerForward(graph.prefill_dense, false);
  if (graph.mixture_layer_count > 0) builder.LayerForward(graph.prefill_mixture, true);
  builder.Send(graph.prefill_send, boundaries);
  builder.HeadInference(graph.prefill_head, graph.prefill_sequence_count);

  graph.decode_step_count = std::max<int64_t>(0, work.output_tokens - 1);
  if (graph.decode_step_count == 0) return graph;
  graph.tokens_per_step = serving::TokensPerStep(work.speculation);
  graph.step_over_pass = serving::StepOverPass(work.speculation);
  const int64_t checked = 1 + work.speculation.draft_tokens;
  builder.SetTokens(graph.decode_sequence_count, checked, graph.decode_sequence_count * checked);
  builder.SetAbsorbed(true);
  builder.EmbeddingForward(graph.decode_embedding);
  const auto decode = [&](Block& block, bool mixture) {
    builder.ForEachAttention([&](bool linear) {
      if (linear) return builder.LinearAttentionLayer(block, /*decode=*/true, /*backward=*/false);
      builder.AttentionAround(block);
      builder.AbsorbedProjections(block);
    });
    builder.FfnForward(block, mixture);
  };
  if (graph.dense_layer_count > 0) decode(graph.decode_dense, false);
  if (graph.mixture_layer_count > 0) decode(graph.decode_mixture, true);
  builder.Send(graph.decode_send, boundaries);
  builder.HeadInference(graph.decode_head, graph.decode_sequence_count * checked);

  // Kernels are close to linear in the context; a few points follow their steps.
  constexpr int64_t kSegments = 4;
  const int64_t first = work.prompt_tokens + 1;
  const int64_t last = work.prompt_tokens + graph.decode_step_count;
  for (int64_t i = 0; i <= kSegments; ++i) {
    const int64_t context = first + (last - first) * i / kSegments;
    if (!graph.decode_points.empty() && graph.decode_points.back().context_tokens == context) {
      continue;
    }
    DecodePoint point{.context_tokens = context};
    if (graph.full_attention_layer_count > 0) {
      point.full_index = builder.DecodeAttention(context, 0, work.kv_cache_precision);
    }
    if (graph.windowed_layer_count > 0) {
      point.windowed_index =
          builder.DecodeAttention(context, job.model.sliding_window, work.kv_cache_precision);
    }
    graph.decode_points.push_back(point);
  }
  return graph;
}

}  // namespace sextant::orchestrator
