// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_GRAPH_BUILDER_H_
#define SEXTANT_COMMON_ORCHESTRATOR_GRAPH_BUILDER_H_

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "common/orchestrator/graph.h"
#include "common/orchestrator/placement.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// Adds operators and collectives to a graph, each distinct one once, and lowers the parts of a
// valid job's model to blocks: attention in graph_attention.cc, networks and experts in
// graph_ffn.cc, both ends of the model in graph_head.cc, groups of ranks and what they exchange in
// graph_sharding.cc.
class GraphBuilder {
 public:
  GraphBuilder(const workload::Job& job, const GraphOptions& options, Graph& graph)
      : job_(job),
        model_(job.model),
        plan_(job.plan),
        options_(options),
        graph_(graph),
        precisions_(PrecisionsOf(job)),
        tp_(plan_.tensor_parallel_size),
        heads_(model_.attention_head_count / tp_),
        kv_heads_(std::max<int64_t>(1, model_.kv_head_count / tp_)),
        activation_bytes_(hardware::BytesPerElement(precisions_.vector)),
        lora_rank_(job.IsTraining() ? std::get<workload::TrainingWorkload>(job.workload).lora_rank
                                    : 0),
        tensor_(Place(job, tp_, 1)) {
    graph_.operators.reserve(48);
    graph_.collectives.reserve(16);
  }

  // Tokens that a rank works on, and tokens of the regions that sequence parallelism splits.
  void SetTokens(int64_t sequences, int64_t query_tokens, int64_t tokens);
  int Add(const operator_cost::Operator& op);
  int Add(const collectives::Collective& collective);
  void Use(Block& block, const operator_cost::Operator& op, OperatorClass category,
           double count = 1, bool weight_gradient = false);
  CollectiveUse Communicate(collectives::CollectiveKind kind, double bytes,
                            const Placement& placement, CommunicationClass category,
                            double count = 1);
  void Use(Block& block, collectives::CollectiveKind kind, double bytes, const Placement& placement,
           CommunicationClass category, double count = 1);
  void Memory(Block& block, operator_cost::MemoryBoundKind kind, int64_t rows, int64_t columns,
              double count = 1);

  // A projection with weights. In 8-bit training its input is cast first.
  void Project(Block& block, int64_t m, int64_t n, int64_t k, double count = 1);

  // Its gradients: data C[m,k] and, of a trained weight, C[n,k]. Both take the gradient of the
  // output, cast once in 8-bit training.
  void ProjectBackward(Block& block, int64_t m, int64_t n, int64_t k);

  // A low-rank adapter beside a projection: two thin products, and their gradients.
  void Adapter(Block& block, int64_t m, int64_t n, int64_t k, bool backward);
  void Batched(Block& block, OperatorClass category, int64_t batch, int64_t m, int64_t n, int64_t k,
               double count = 1);

  // Sums of partial results over tensor parallel ranks where a split region ends (and, in the
  // backward pass, where it began). Sequence parallelism turns each all-reduce into an all-gather
  // and a reduce-scatter of the same total traffic.
  void TensorReduce(Block& block, double count);
  bool HasRotary() const { return model_.learned_position_count == 0 && !model_.linear_bias; }
  bool HasDropout() const { return model_.layer_norm && model_.linear_bias; }

  // Keys that a query sees in a prompt, as the shape of one attention kernel. Context parallel
  // ranks hold one early and one late piece of the sequence, so that causal work is even.
  operator_cost::AttentionShape PromptAttention(operator_cost::AttentionPhase phase) const;
  void AttentionCore(Block& block, operator_cost::AttentionPhase phase);

  // Separate kernels of an inference engine want heads outermost: query, key and value with their
  // biases, the copy into the cache, and the context back (FasterTransformer's
  // addFusedQKVBiasTranspose, transpose4dBatchMajor, transposeQKV).
  void TransposeHeads(Block& block);

  // Keys and values pass around the ring of context parallel ranks; or queries, keys and values
  // change from a part of the sequence to a part of the heads, and the output back.
  void ContextExchange(Block& block, double passes);

  // Calls `layer` once for each kind of attention that layers of the model have; what it adds
  // counts by the share of such layers.
  template <typename Layer>
  void ForEachAttention(const Layer& layer) {
    const double all = static_cast<double>(model_.layer_count);
    const auto add = [&](int64_t layers, int64_t window, bool linear) {
      if (layers == 0) return;
      layer_share_ = static_cast<double>(layers) / all;
      window_ = window;
      layer(linear);
    };
    add(model_.FullAttentionLayerCount(), 0, false);
    add(model_.WindowedLayerCount(), model_.sliding_window, false);
    add(model_.LinearLayerCount(), 0, true);
    layer_share_ = 1;
    window_ = 0;
  }

  // A layer of gated linear attention (Yang et al. 2024, Gated DeltaNet): projections, convolution,
  // and the recurrence, chunk by chunk over a prompt (four products of a chunk's keys or queries
  // with the state or with one another) or as one read and write of the state in a decode step.
  void LinearAttentionLayer(Block& block, bool decode, bool backward);

  // Query, key and value projections; weight gradients as well when `backward`.
  void AttentionInput(Block& block, bool backward);
  int64_t AttentionOutputSize() const;

  // Decode of latent attention works on the latent itself: the key expansion is absorbed into the
  // query, the value expansion into the output.
  void SetAbsorbed(bool absorbed) { absorbed_ = absorbed; }
  void AbsorbedProjections(Block& block);

  // The attention half of a layer but its core.
  void AttentionAround(Block& block);
  void AttentionAroundBackward(Block& block);
  void DenseFfn(Block& block, int64_t ffn);
  void DenseFfnBackward(Block& block, int64_t ffn);
  void FfnForward(Block& block, bool mixture);
  void FfnBackward(Block& block, bool mixture);
  void LayerForward(Block& block, bool mixture);
  void LayerBackward(Block& block, bool mixture);

  // Adds a micro-batch's gradients of `parameters` weights to the sums of the step.
  void SumGradients(Block& block, double parameters);
  void EmbeddingForward(Block& block);
  void EmbeddingBackward(Block& block);

  // The vocabulary is split over tensor parallel ranks, cross-entropy too: ranks exchange three
  // fp32 numbers a token (largest logit, target logit, sum of exponentials).
  void HeadForwardTraining(Block& block);
  void HeadBackward(Block& block);
  void HeadInference(Block& block, int64_t sequences);

  // ZeRO-3: a layer's parameters are gathered before each pass. From ZeRO-2 on its gradients are
  // scattered after the backward pass of every micro-batch, since no rank keeps their sum whole.
  void ShardedData(TrainingBlocks& blocks, const RankParameters& all,
                   const RankParameters& trained);

  // The part of a group over which ZeRO shards, and the copies of one shard.
  Placement ShardGroup(const Placement& group, int64_t stride) const;
  Placement CopyGroup(const Placement& group, int64_t stride) const;

  // Ranks that hold the same parameters: data and context parallel together.
  Placement DataGroup() const;
  Placement ExpertDataGroup() const;
  StageStep Step(const StageClass& stage, workload::Optimizer optimizer);

  // Pipeline neighbours: the slowest boundary, one that crosses nodes if any does.
  Placement PipelineNeighbours() const;

  // Tensor parallel ranks hold the same activations, or each its part: either way each sends one
  // part (Narayanan et al. 2021, section 4.1). Frameworks without that optimization send all of a
  // replicated activation from every rank.
  void Send(std::vector<CollectiveUse>& uses, double count);

  // One layer's attention of a prompt's chunk to itself and to `before` tokens.
  int ChunkAttention(int64_t before, int64_t window);

  // One layer's attention when the new tokens of each sequence attend to `context` tokens: one, or
  // several that are checked together and share its keys like the heads of a group.
  int DecodeAttention(int64_t context, int64_t window, hardware::Precision kv_precision);

 private:
  int64_t RotarySize() const {
    return model_.IsLatent() ? model_.latent_attention.rope_head_size : model_.head_size;
  }

  // Embedding-sized matrices stay in 16 bits when the layers are quantised.
  void Project16(Block& block, int64_t m, int64_t n, int64_t k, bool weight_gradient = false);

  // An image encoder classifies one token of each sequence.
  int64_t HeadTokens() const { return model_.patch_input_size > 0 ? sequences_ : tokens_; }
  hardware::Precision Head() const {
    return precisions_.matrix == hardware::Precision::kTf32 ? hardware::Precision::kTf32
                                                            : precisions_.vector;
  }
  void Multiply(Block& block, int64_t m, int64_t n, int64_t k, double count, bool weight_gradient);

  // 8-bit training casts what a matrix product reads: 16 bits in, 8 bits out, and the same again
  // transposed, since Hopper multiplies 8-bit operands in one layout alone and weight gradients
  // need the other (Transformer Engine, cast_transpose).
  void CastTo8Bit(Block& block, int64_t rows, int64_t columns);

  // `tokens` of each rank to their experts on `experts` groups of ranks, and back.
  void ExchangeTokens(Block& block, int64_t tokens, int64_t experts, int64_t expert_tensor_size);

  void ResidualBackward(Block& block);
  void MixtureFfn(Block& block, double passes, bool backward = false);

  // What data parallel ranks exchange once a step, per ZeRO stage (Rajbhandari et al. 2020, section
  // 7): 0 all-reduces gradients; 1 scatters them and gathers the updated weights; 2 has scattered
  // them with each micro-batch and gathers; 3 has done both. Copies of a shard all-reduce it.
  void Reduce(StageStep& step, double parameters, const Placement& group, int64_t stride);

  const workload::Job& job_;
  const workload::ModelArchitecture& model_;
  const workload::ParallelPlan& plan_;
  const GraphOptions& options_;
  Graph& graph_;
  const Precisions precisions_;
  const int64_t tp_;
  const int64_t heads_;
  const int64_t kv_heads_;
  const double activation_bytes_;
  const int64_t lora_rank_;
  const Placement tensor_;
  int64_t sequences_ = 1;
  int64_t query_tokens_ = 1;
  int64_t tokens_ = 1;
  int64_t split_tokens_ = 1;
  double layer_share_ = 1;  // of the layers whose attention is being added
  int64_t window_ = 0;      // of theirs; 0: all keys
  bool absorbed_ = false;
};

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_GRAPH_BUILDER_H_
