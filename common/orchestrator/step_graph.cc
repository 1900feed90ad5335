// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/step_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "common/orchestrator/graph_builder.h"
#include "common/orchestrator/image_encoder.h"
#include "common/orchestrator/kv_cache.h"

namespace sextant::orchestrator {
namespace {

using collectives::CollectiveKind;
using workload::Job;
using workload::ParallelPlan;

// Powers of `ratio` from `first` up to `last`, and `last` itself.
std::vector<int64_t> Sizes(int64_t first, int64_t last, int64_t ratio) {
  std::vector<int64_t> sizes;
  for (int64_t size = first; size < last; size *= ratio) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

// The longest sequence that a load brings.
int64_t LongestSequence(const Job& job) {
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  int64_t longest = 0;
  for (const serving::Request& request : job.serving->trace) {
    longest = std::max(longest, request.prompt_tokens + request.output_tokens);
  }
  if (longest > 0) return longest;
  return std::llround(static_cast<double>(work.prompt_tokens + work.output_tokens) *
                      (1 + job.serving->length_spread));
}

class StepGraphBuilder {
 public:
  StepGraphBuilder(const Job& job, const GraphOptions& options)
      : job_(job),
        work_(std::get<workload::InferenceWorkload>(job.workload)),
        schedule_(options.schedule),
        checked_(1 + work_.speculation.draft_tokens),
        builder_(job, options, graph_) {}

  StepGraph Build() && {
    const serving::ServingLoad& load = *job_.serving;
    const int64_t longest = LongestSequence(job_);
    graph_.dense_layer_count =
        job_.model.IsMixture() ? job_.model.experts.dense_layer_count : job_.model.layer_count;
    graph_.mixture_layer_count = job_.model.layer_count - graph_.dense_layer_count;
    graph_.full_attention_layer_count = job_.model.FullAttentionLayerCount();
    graph_.windowed_layer_count = job_.model.WindowedLayerCount();
    for (const int64_t tokens : Sizes(1, std::max<int64_t>(2, schedule_.max_batch_tokens), 2)) {
      graph_.prompt_passes.push_back(Pass(tokens, /*decode=*/false));
    }
    const std::vector<int64_t> batches =
        Sizes(1, std::max<int64_t>(2, schedule_.max_batch_sequences * checked_), 2);
    for (const int64_t tokens : batches) {
      graph_.decode_passes.push_back(Pass(tokens, /*decode=*/true));
      HeadPoint head{.token_count = tokens};
      builder_.HeadInference(head.head, tokens);
      graph_.heads.push_back(std::move(head));
    }
    AddDecodeAttention(longest);
    AddPromptAttention(longest);
    if (load.prefill_replica_count > 0) AddTransfers(longest);
    if (load.adapters.count > 0) {
      // Shrink and expand of the four attention projections, each a small kernel.
      builder_.Memory(graph_.adapter_kernels, operator_cost::MemoryBoundKind::kCopy, 1,
                      load.adapters.rank, 8);
    }
    if (load.images.per_request > 0) AddImages(load.images);
    return std::move(graph_);
  }

 private:
  PassPoint Pass(int64_t tokens, bool decode) {
    PassPoint point{.token_count = tokens};
    if (decode) {
      builder_.SetTokens(CeilDivide(tokens, checked_), std::min(tokens, checked_), tokens);
    } else {
      builder_.SetTokens(1, tokens, tokens);
    }
    builder_.SetAbsorbed(decode);
    builder_.EmbeddingForward(point.embedding);
    const auto layer = [&](Block& block, bool mixture) {
      builder_.ForEachAttention([&](bool linear) {
        if (linear) return builder_.LinearAttentionLayer(block, decode, /*backward=*/false);
        builder_.AttentionAround(block);
        if (decode) builder_.AbsorbedProjections(block);
      });
      builder_.FfnForward(block, mixture);
    };
    if (graph_.dense_layer_count > 0) layer(point.dense, false);
    if (graph_.mixture_layer_count > 0) layer(point.mixture, true);
    builder_.Send(point.send, static_cast<double>(job_.plan.pipeline_parallel_size - 1));
    return point;
  }

  void AddDecodeAttention(int64_t longest) {
    graph_.decode_sequences = Sizes(1, std::max<int64_t>(2, schedule_.max_batch_sequences), 4);
    graph_.decode_contexts = Sizes(64, std::max<int64_t>(128, longest), 4);
    for (const int64_t sequences : graph_.decode_sequences) {
      builder_.SetTokens(sequences, checked_, sequences * checked_);
      for (const int64_t context : graph_.decode_contexts) {
        AttentionPoint point;
        if (graph_.full_attention_layer_count > 0) {
          point.full_index = builder_.DecodeAttention(context, 0, work_.kv_cache_precision);
        }
        if (graph_.windowed_layer_count > 0) {
          point.windowed_index = builder_.DecodeAttention(context, job_.model.sliding_window,
                                                          work_.kv_cache_precision);
        }
        graph_.decode_attention.push_back(point);
      }
    }
  }

  AttentionPoint Chunk(int64_t sequences, int64_t tokens, int64_t before) {
    builder_.SetTokens(sequences, tokens, sequences * tokens);
    AttentionPoint point;
    if (graph_.full_attention_layer_count > 0) {
      point.full_index = builder_.ChunkAttention(before, 0);
    }
    if (graph_.windowed_layer_count > 0) {
      point.windowed_index = builder_.ChunkAttention(before, job_.model.sliding_window);
    }
    return point;
  }

  void AddPromptAttention(int64_t longest) {
    constexpr int64_t kFullDevice = 8192;  // query tokens of short chunks that fill any device
    const int64_t largest = std::max<int64_t>(32, std::min(longest, schedule_.max_batch_tokens));
    graph_.chunk_tokens = Sizes(16, largest, 4);
    graph_.tokens_before = {0};
    if (longest > 512) {
      for (const int64_t before : Sizes(512, longest, 4)) graph_.tokens_before.push_back(before);
    }
    for (const int64_t tokens : graph_.chunk_tokens) {
      const int64_t fill = std::max<int64_t>(1, kFullDevice / tokens);
      graph_.chunks_per_fill.push_back(fill);
      for (const int64_t before : graph_.tokens_before) {
        graph_.chunk_alone.push_back(Chunk(1, tokens, before));
        graph_.chunks_filled.push_back(Chunk(fill, tokens, before));
      }
    }
    graph_.smallest_chunk = Chunk(1, 1, 0);
  }

  // Each rank hands its part of a sequence's cache to its twin of another replica.
  void AddTransfers(int64_t longest) {
    const ParallelPlan& plan = job_.plan;
    const int64_t replica = plan.tensor_parallel_size * plan.pipeline_parallel_size;
    const bool inside = 2 * replica <= job_.cluster.gpus_per_node;
    const Placement pair{.group_size = 2,
                         .ranks_per_node = inside ? 2 : 1,
                         .groups_per_node = std::min<int64_t>(replica, job_.cluster.gpus_per_node)};
    graph_.transfer_tokens = Sizes(16, std::max<int64_t>(32, longest), 16);
    for (const int64_t tokens : graph_.transfer_tokens) {
      const double bytes = KvCacheBytes(job_.model, plan.tensor_parallel_size,
                                        work_.kv_cache_precision, static_cast<double>(tokens)) /
                           static_cast<double>(plan.pipeline_parallel_size);
      graph_.transfer.push_back(
          builder_
              .Communicate(CollectiveKind::kSendReceive, bytes, pair, CommunicationClass::kTensor)
              .index);
    }
  }

  // One request's images alone, and as many as a step may bring.
  void AddImages(const serving::Images& images) {
    const Job encoder = EncoderJob(job_);
    const GraphOptions options;
    GraphBuilder builder(encoder, options, graph_);
    for (const int64_t count : Sizes(1, std::max<int64_t>(16, 4 * images.per_request), 2)) {
      builder.SetTokens(count, images.encoder_tokens, count * images.encoder_tokens);
      graph_.image_counts.push_back(count);
      builder.LayerForward(graph_.image_layers.emplace_back(), /*mixture=*/false);
    }
    if (images.encoder_gpu_count == 0) return;
    const double bytes = 2 * static_cast<double>(images.per_request * images.prompt_tokens) *
                         static_cast<double>(job_.model.hidden_size);
    const Placement other_node{.group_size = 2, .ranks_per_node = 1, .groups_per_node = 1};
    graph_.embedding_transfer = builder_
                                    .Communicate(CollectiveKind::kSendReceive, bytes, other_node,
                                                 CommunicationClass::kTensor)
                                    .index;
  }

  const Job& job_;
  const workload::InferenceWorkload& work_;
  const serving::EngineSchedule schedule_;
  const int64_t checked_;  // tokens of a decoding sequence in one step
  StepGraph graph_;
  GraphBuilder builder_;
};

}  // namespace

StepGraph BuildStepGraph(const Job& job, const GraphOptions& options) {
  return StepGraphBuilder(job, options).Build();
}

}  // namespace sextant::orchestrator
