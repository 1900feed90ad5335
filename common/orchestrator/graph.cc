// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/orchestrator/kv_cache.h"
#include "common/orchestrator/step_graph.h"

namespace sextant::orchestrator {
namespace {

using collectives::Collective;
using collectives::CollectiveKind;
using hardware::Precision;
using operator_cost::AttentionPhase;
using operator_cost::AttentionShape;
using operator_cost::ExpertFfnShape;
using operator_cost::GemmShape;
using operator_cost::MemoryBoundKind;
using operator_cost::MemoryBoundShape;
using operator_cost::Operator;
using workload::Job;
using workload::ModelArchitecture;
using workload::ParallelPlan;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A group of `size` ranks that lie `stride` apart, as it falls on nodes.
struct Placement {
  int64_t group_size = 1;
  int64_t ranks_per_node = 1;
  int64_t groups_per_node = 1;
};
Placement Place(const Job& job, int64_t size, int64_t stride) {
  const int64_t node = job.cluster.gpus_per_node;
  Placement placement{.group_size = size};
  if (size * stride <= node) {
    placement.ranks_per_node = size;
  } else if (stride < node) {
    // Every node must hold equally many ranks; a stride that does not divide the node leaves some
    // nodes with fewer, which the greatest common divisor covers from the slow side.
    placement.ranks_per_node = std::gcd(size, std::max<int64_t>(1, node / stride));
  }
  placement.groups_per_node =
      std::max<int64_t>(1, std::min(node, job.gpu_count) / placement.ranks_per_node);
  return placement;
}

// Precisions of one job: what matrices multiply in, how weights are stored, what the rest runs in.
struct Precisions {
  Precision matrix;
  Precision weight;
  Precision vector;
  bool block_scaled = false;
};
Precisions PrecisionsOf(const Job& job) {
  const Precision p = job.precision;
  switch (p) {
    case Precision::kFp4:
      if (!job.cluster.accelerator.Supports(p)) return {Precision::kBf16, p, Precision::kBf16};
      return {p, p, Precision::kBf16};
    case Precision::kFp8:
    case Precision::kInt8:
      return {p, p, Precision::kBf16};
    case Precision::kInt4:  // weights alone; activations stay in 16 bits
      return {Precision::kBf16, p, Precision::kBf16};
    case Precision::kTf32:
      return {p, p, Precision::kFp32};
    default:
      return {p, p, p};
  }
}

// Adds operators and collectives to a graph, each distinct one once, and lowers layers to blocks.
class Builder {
 public:
  Builder(const Job& job, const GraphOptions& options, Graph& graph)
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
  void SetTokens(int64_t sequences, int64_t query_tokens, int64_t tokens) {
    sequences_ = sequences;
    query_tokens_ = query_tokens;
    tokens_ = tokens;
    split_tokens_ = plan_.sequence_parallel ? CeilDivide(tokens, tp_) : tokens;
  }

  int Add(const Operator& op) {
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      if (graph_.operators[i] == op) return static_cast<int>(i);
    }
    graph_.operators.push_back(op);
    return static_cast<int>(graph_.operators.size()) - 1;
  }
  int Add(const Collective& collective) {
    for (size_t i = 0; i < graph_.collectives.size(); ++i) {
      if (graph_.collectives[i] == collective) return static_cast<int>(i);
    }
    graph_.collectives.push_back(collective);
    return static_cast<int>(graph_.collectives.size()) - 1;
  }

  void Use(Block& block, const Operator& op, OperatorClass category, double count = 1,
           bool weight_gradient = false) {
    const int index = Add(op);
    count *= layer_share_;
    for (OperatorUse& use : block.operators) {
      if (use.index == index && use.category == category &&
          use.weight_gradient == weight_gradient) {
        use.count += count;
        return;
      }
    }
    block.operators.push_back({index, count, category, weight_gradient});
  }
  CollectiveUse Communicate(CollectiveKind kind, double bytes, const Placement& placement,
                            CommunicationClass category, double count = 1) {
    return {Add(Collective{.kind = kind,
                           .bytes = bytes,
                           .group_size = placement.group_size,
                           .ranks_per_node = placement.ranks_per_node,
                           .groups_per_node = placement.groups_per_node}),
            count, category};
  }
  void Use(Block& block, CollectiveKind kind, double bytes, const Placement& placement,
           CommunicationClass category, double count = 1) {
    if (placement.group_size <= 1) return;
    count *= layer_share_;
    const CollectiveUse use = Communicate(kind, bytes, placement, category, count);
    for (CollectiveUse& other : block.collectives) {
      if (other.index == use.index && other.category == use.category) {
        other.count += count;
        return;
      }
    }
    block.collectives.push_back(use);
  }

  void Memory(Block& block, MemoryBoundKind kind, int64_t rows, int64_t columns, double count = 1) {
    Use(block,
        Operator{MemoryBoundShape{.kind = kind, .rows = rows, .columns = columns},
                 precisions_.vector},
        OperatorClass::kMemoryBound, count);
  }
  // A projection with weights.
  void Project(Block& block, int64_t m, int64_t n, int64_t k, double count = 1,
               bool weight_gradient = false) {
    Use(block,
        Operator{GemmShape{.m = m,
                           .n = n,
                           .k = k,
                           .weight_precision = precisions_.weight,
                           .block_scaled = precisions_.block_scaled},
                 precisions_.matrix},
        OperatorClass::kMatrixMultiply, count, weight_gradient);
  }
  // Its gradients: data C[m,k] and, of a trained weight, C[n,k].
  void ProjectBackward(Block& block, int64_t m, int64_t n, int64_t k) {
    Project(block, m, k, n);
    if (lora_rank_ == 0) Project(block, n, k, m, 1, true);
  }
  // A low-rank adapter beside a projection: two thin products, and their gradients.
  void Adapter(Block& block, int64_t m, int64_t n, int64_t k, bool backward) {
    if (lora_rank_ == 0) return;
    Project(block, m, lora_rank_, k);
    Project(block, m, n, lora_rank_);
    if (!backward) return;
    Project(block, lora_rank_, k, m, 1, true);
    Project(block, n, lora_rank_, m, 1, true);
  }
  void Batched(Block& block, OperatorClass category, int64_t batch, int64_t m, int64_t n, int64_t k,
               double count = 1) {
    Use(block,
        Operator{GemmShape{.m = m,
                           .n = n,
                           .k = k,
                           .batch_count = batch,
                           .weight_precision = precisions_.vector},
                 precisions_.vector},
        category, count);
  }

  // Sums of partial results over tensor parallel ranks where a split region ends (and, in the
  // backward pass, where it began). Sequence parallelism turns each all-reduce into an all-gather
  // and a reduce-scatter of the same total traffic.
  void TensorReduce(Block& block, double count) {
    const double bytes =
        static_cast<double>(tokens_) * static_cast<double>(model_.hidden_size) * activation_bytes_;
    if (plan_.sequence_parallel) {
      Use(block, CollectiveKind::kAllGather, bytes, tensor_, CommunicationClass::kTensor, count);
      Use(block, CollectiveKind::kReduceScatter, bytes, tensor_, CommunicationClass::kTensor,
          count);
    } else {
      Use(block, CollectiveKind::kAllReduce, bytes, tensor_, CommunicationClass::kTensor, count);
    }
  }

  bool HasRotary() const { return model_.learned_position_count == 0 && !model_.linear_bias; }
  bool HasDropout() const { return model_.layer_norm && model_.linear_bias; }

  // Keys that a query sees in a prompt, as the shape of one attention kernel. Context parallel
  // ranks hold one early and one late piece of the sequence, so that causal work is even.
  AttentionShape PromptAttention(AttentionPhase phase) const {
    const int64_t cp = plan_.context_parallel_size;
    const int64_t keys = query_tokens_ * cp;
    // An all-to-all gives each rank the whole sequence of its share of the heads.
    const bool exchanged = cp > 1 && plan_.context_mode == workload::ContextMode::kAllToAll;
    const int64_t kv_heads = exchanged ? std::max<int64_t>(1, kv_heads_ / cp) : kv_heads_;
    AttentionShape shape{.phase = phase,
                         .batch_size = sequences_,
                         .query_tokens = exchanged ? keys : query_tokens_,
                         .key_tokens = keys,
                         .head_count = exchanged ? heads_ / cp : heads_,
                         .kv_head_count = kv_heads,
                         .head_size = model_.head_size,
                         .causal = model_.causal,
                         .kv_precision = precisions_.vector};
    if (window_ > 0 && window_ < keys) {
      const double w = static_cast<double>(window_);
      shape.causal = false;
      shape.key_tokens = std::max<int64_t>(
          1, std::llround(w - (model_.causal ? w * w / (2 * static_cast<double>(keys)) : 0)));
    } else if (model_.causal && cp > 1 && !exchanged) {
      shape.causal = false;
      shape.key_tokens = (keys + 1) / 2;
    }
    if (model_.IsLatent()) {
      const workload::LatentAttention& l = model_.latent_attention;
      shape.kv_head_count = shape.head_count;
      // Scores over nope + rope, context over value: the mean has the same arithmetic.
      shape.head_size = (l.nope_head_size + l.rope_head_size + l.value_head_size + 1) / 2;
    }
    return shape;
  }

  void AttentionCore(Block& block, AttentionPhase phase) {
    const AttentionShape shape = PromptAttention(phase);
    if (options_.fused_attention) {
      Use(block, Operator{shape, precisions_.vector}, OperatorClass::kAttention);
      return;
    }
    const int64_t batch = shape.batch_size * shape.head_count;
    const int64_t q = shape.query_tokens;
    const int64_t keys = query_tokens_ * plan_.context_parallel_size;
    const int64_t d = shape.head_size;
    const auto stream = [&](MemoryBoundKind kind) {
      Use(block,
          Operator{MemoryBoundShape{.kind = kind, .rows = batch * q, .columns = keys},
                   precisions_.vector},
          OperatorClass::kAttention);
    };
    if (!job_.IsTraining()) TransposeHeads(block);
    if (phase == AttentionPhase::kBackward) {
      // Gradients of scores, of values and keys, of queries.
      Batched(block, OperatorClass::kAttention, batch, q, keys, d);
      Batched(block, OperatorClass::kAttention, batch, keys, d, q, 2);
      Batched(block, OperatorClass::kAttention, batch, q, d, keys);
      stream(MemoryBoundKind::kAdd);  // softmax backward: gradient and output in, one out
      if (HasDropout()) stream(MemoryBoundKind::kElementwise);
      return;
    }
    Batched(block, OperatorClass::kAttention, batch, q, keys, d);
    stream(MemoryBoundKind::kSoftmax);  // scale, mask and softmax in one kernel
    if (HasDropout()) stream(MemoryBoundKind::kElementwise);
    Batched(block, OperatorClass::kAttention, batch, q, d, keys);
  }

  // Separate kernels of an inference engine want heads outermost: query, key and value with their
  // biases, the copy into the cache, and the context back (FasterTransformer's
  // addFusedQKVBiasTranspose, transpose4dBatchMajor, transposeQKV).
  void TransposeHeads(Block& block) {
    for (const int64_t heads : {heads_ + 2 * kv_heads_, 2 * kv_heads_, heads_}) {
      Use(block,
          Operator{MemoryBoundShape{.kind = MemoryBoundKind::kElementwise,
                                    .rows = tokens_,
                                    .columns = heads * model_.head_size},
                   precisions_.vector},
          OperatorClass::kAttention);
    }
  }

  // Keys and values pass around the ring of context parallel ranks; or queries, keys and values
  // change from a part of the sequence to a part of the heads, and the output back.
  void ContextExchange(Block& block, double passes) {
    const int64_t cp = plan_.context_parallel_size;
    if (cp <= 1) return;
    if (plan_.context_mode == workload::ContextMode::kAllToAll) {
      const Placement group = Place(job_, cp, tp_);
      const double query_bytes = static_cast<double>(tokens_) *
                                 static_cast<double>(AttentionOutputSize()) * activation_bytes_;
      const double kv_bytes =
          static_cast<double>(tokens_) * KvBytesPerTokenPerLayer(model_, tp_, precisions_.vector);
      Use(block, CollectiveKind::kAllToAll, query_bytes + kv_bytes, group,
          CommunicationClass::kTensor);
      Use(block, CollectiveKind::kAllToAll, query_bytes, group, CommunicationClass::kTensor);
      return;
    }
    Placement neighbours = Place(job_, cp, tp_);
    const bool inside = neighbours.ranks_per_node == cp;
    neighbours.group_size = 2;
    neighbours.ranks_per_node = inside ? 2 : 1;
    neighbours.groups_per_node =
        std::max<int64_t>(1, std::min<int64_t>(job_.cluster.gpus_per_node, tp_));
    const double bytes =
        static_cast<double>(tokens_) * KvBytesPerTokenPerLayer(model_, tp_, precisions_.vector);
    Use(block, CollectiveKind::kSendReceive, bytes, neighbours, CommunicationClass::kContext,
        passes * static_cast<double>(cp - 1));
  }

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
  void LinearAttentionLayer(Block& block, bool decode, bool backward) {
    const workload::LinearAttention& l = model_.linear_attention;
    const int64_t h = model_.hidden_size;
    const int64_t keys = CeilDivide(l.KeySize(), tp_);
    const int64_t values = CeilDivide(l.ValueSize(), tp_);
    const int64_t heads = CeilDivide(l.value_head_count, tp_);
    const auto project = [&](int64_t n, int64_t k) {
      if (backward) {
        ProjectBackward(block, tokens_, n, k);
      } else {
        Project(block, tokens_, n, k);
      }
    };
    Memory(block, MemoryBoundKind::kNorm, split_tokens_, h);
    project(2 * keys + 2 * values + 2 * heads, h);
    Memory(block, MemoryBoundKind::kElementwise, tokens_, 2 * keys + values, backward ? 2 : 1);
    if (decode) {
      Use(block,
          Operator{MemoryBoundShape{.kind = MemoryBoundKind::kElementwise,
                                    .rows = sequences_ * heads,
                                    .columns = l.key_head_size * l.value_head_size},
                   precisions_.vector},
          OperatorClass::kAttention);
    } else {
      Batched(block, OperatorClass::kAttention, sequences_ * heads, query_tokens_,
              l.value_head_size, l.key_head_size, backward ? 8 : 4);
    }
    Memory(block, MemoryBoundKind::kGatedActivation, tokens_, values, backward ? 2 : 1);
    project(h, values);
    Memory(block, MemoryBoundKind::kAdd, split_tokens_, h);
    TensorReduce(block, 1);
  }

  // Query, key and value projections; weight gradients as well when `backward`.
  void AttentionInput(Block& block, bool backward) {
    const auto project = [&](int64_t n, int64_t k) {
      if (backward) {
        ProjectBackward(block, tokens_, n, k);
      } else {
        Project(block, tokens_, n, k);
      }
    };
    const int64_t h = model_.hidden_size;
    if (!model_.IsLatent()) {
      const int64_t queries = (model_.gated_attention ? 2 : 1) * heads_;
      project((queries + 2 * kv_heads_) * model_.head_size, h);
      Adapter(block, tokens_, (queries + 2 * kv_heads_) * model_.head_size, h, backward);
      return;
    }
    const workload::LatentAttention& l = model_.latent_attention;
    const int64_t query = heads_ * (l.nope_head_size + l.rope_head_size);
    if (l.query_lora_rank > 0) {
      project(l.query_lora_rank + l.kv_lora_rank + l.rope_head_size, h);
      project(query, l.query_lora_rank);
    } else {
      project(l.kv_lora_rank + l.rope_head_size, h);
      project(query, h);
    }
    if (!absorbed_) project(heads_ * (l.nope_head_size + l.value_head_size), l.kv_lora_rank);
  }
  int64_t AttentionOutputSize() const {
    return heads_ *
           (model_.IsLatent() ? model_.latent_attention.value_head_size : model_.head_size);
  }
  // Decode of latent attention works on the latent itself: the key expansion is absorbed into the
  // query, the value expansion into the output.
  void SetAbsorbed(bool absorbed) { absorbed_ = absorbed; }
  void AbsorbedProjections(Block& block) {
    if (!model_.IsLatent()) return;
    const workload::LatentAttention& l = model_.latent_attention;
    Batched(block, OperatorClass::kMatrixMultiply, heads_, tokens_, l.kv_lora_rank,
            l.nope_head_size);
    Batched(block, OperatorClass::kMatrixMultiply, heads_, tokens_, l.value_head_size,
            l.kv_lora_rank);
  }

  // The attention half of a layer but its core.
  void AttentionAround(Block& block) {
    const int64_t h = model_.hidden_size;
    Memory(block, MemoryBoundKind::kNorm, split_tokens_, h);
    AttentionInput(block, false);
    if (HasRotary()) {
      Memory(block, MemoryBoundKind::kRotary, tokens_, (heads_ + kv_heads_) * RotarySize());
    }
    Project(block, tokens_, h, AttentionOutputSize());
    Adapter(block, tokens_, h, AttentionOutputSize(), false);
    Memory(block, MemoryBoundKind::kAdd, split_tokens_, h);
    TensorReduce(block, 1);
  }
  void AttentionAroundBackward(Block& block) {
    const int64_t h = model_.hidden_size;
    ProjectBackward(block, tokens_, h, AttentionOutputSize());
    Adapter(block, tokens_, h, AttentionOutputSize(), true);
    if (HasRotary()) {
      Memory(block, MemoryBoundKind::kRotary, tokens_, (heads_ + kv_heads_) * RotarySize());
    }
    AttentionInput(block, true);
    ResidualBackward(block);
  }

  void DenseFfn(Block& block, int64_t ffn) {
    const int64_t h = model_.hidden_size;
    Project(block, tokens_, (model_.gated_ffn ? 2 : 1) * ffn, h);
    Memory(block,
           model_.gated_ffn ? MemoryBoundKind::kGatedActivation : MemoryBoundKind::kActivation,
           tokens_, ffn);
    Project(block, tokens_, h, ffn);
  }
  void DenseFfnBackward(Block& block, int64_t ffn) {
    const int64_t h = model_.hidden_size;
    ProjectBackward(block, tokens_, h, ffn);
    // A gated activation moves five tensors of `ffn` columns where a plain one moves three.
    Memory(block, MemoryBoundKind::kActivationBackward, tokens_,
           model_.gated_ffn ? (5 * ffn + 2) / 3 : ffn);
    ProjectBackward(block, tokens_, (model_.gated_ffn ? 2 : 1) * ffn, h);
  }

  void FfnForward(Block& block, bool mixture) {
    const int64_t h = model_.hidden_size;
    Memory(block, MemoryBoundKind::kNorm, split_tokens_, h);
    if (mixture) {
      MixtureFfn(block, 1);
    } else {
      DenseFfn(block, CeilDivide(model_.ffn_size, tp_));
    }
    Memory(block, MemoryBoundKind::kAdd, split_tokens_, h);
    TensorReduce(block, 1);
  }
  void FfnBackward(Block& block, bool mixture) {
    if (mixture) {
      // Data and, of trained weights, weight gradients: each the arithmetic of the forward pass.
      MixtureFfn(block, lora_rank_ == 0 ? 2 : 1, true);
    } else {
      DenseFfnBackward(block, CeilDivide(model_.ffn_size, tp_));
    }
    ResidualBackward(block);
  }

  void LayerForward(Block& block, bool mixture) {
    ForEachAttention([&](bool linear) {
      if (linear) return LinearAttentionLayer(block, /*decode=*/false, /*backward=*/false);
      AttentionAround(block);
      AttentionCore(block, AttentionPhase::kPrefill);
      ContextExchange(block, 1);
    });
    FfnForward(block, mixture);
  }
  void LayerBackward(Block& block, bool mixture) {
    FfnBackward(block, mixture);
    ForEachAttention([&](bool linear) {
      if (linear) return LinearAttentionLayer(block, /*decode=*/false, /*backward=*/true);
      AttentionCore(block, AttentionPhase::kBackward);
      ContextExchange(block, 2);  // keys and values again, and their gradients
      AttentionAroundBackward(block);
    });
  }

  // Adds a micro-batch's gradients of `parameters` weights to the sums of the step.
  void SumGradients(Block& block, double parameters) {
    if (options_.fused_gradient_sum || parameters <= 0) return;
    constexpr int64_t kColumns = 1024;
    Use(block,
        Operator{MemoryBoundShape{.kind = MemoryBoundKind::kAdd,
                                  .rows = std::max<int64_t>(1, std::llround(parameters / kColumns)),
                                  .columns = kColumns},
                 Precision::kFp32},
        OperatorClass::kMemoryBound);
  }

  void EmbeddingForward(Block& block) {
    const int64_t h = model_.hidden_size;
    if (model_.patch_input_size > 0) {
      Project16(block, tokens_, h, model_.patch_input_size);
      if (model_.learned_position_count > 0) Memory(block, MemoryBoundKind::kAdd, tokens_, h);
      return;
    }
    Memory(block, MemoryBoundKind::kEmbedding, tokens_, h);
    if (model_.learned_position_count > 0) Memory(block, MemoryBoundKind::kAdd, tokens_, h);
    const double bytes = static_cast<double>(tokens_) * static_cast<double>(h) * activation_bytes_;
    Use(block,
        plan_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
        bytes, tensor_, CommunicationClass::kTensor);
  }
  void EmbeddingBackward(Block& block) {
    if (lora_rank_ > 0) return;
    if (model_.patch_input_size > 0) {
      Project16(block, model_.hidden_size, model_.patch_input_size, tokens_, true);
      return;
    }
    Memory(block, MemoryBoundKind::kEmbedding, tokens_, model_.hidden_size);
    if (plan_.sequence_parallel) {
      Use(block, CollectiveKind::kAllGather,
          static_cast<double>(tokens_) * static_cast<double>(model_.hidden_size) *
              activation_bytes_,
          tensor_, CommunicationClass::kTensor);
    }
  }

  // The vocabulary is split over tensor parallel ranks, cross-entropy too: ranks exchange three
  // fp32 numbers a token (largest logit, target logit, sum of exponentials).
  void HeadForwardTraining(Block& block) {
    const int64_t h = model_.hidden_size;
    const int64_t vocabulary = VocabularyRowsPerRank(model_, tp_);
    const int64_t tokens = HeadTokens();
    Memory(block, MemoryBoundKind::kNorm, split_tokens_, h);
    Project16(block, tokens, vocabulary, h);
    Memory(block, MemoryBoundKind::kCrossEntropy, tokens, vocabulary, options_.loss_pass_factor);
    Use(block, CollectiveKind::kAllReduce, 4 * static_cast<double>(tokens_), tensor_,
        CommunicationClass::kTensor, 3);
    if (plan_.sequence_parallel) {
      Use(block, CollectiveKind::kAllGather,
          static_cast<double>(tokens_) * static_cast<double>(h) * activation_bytes_, tensor_,
          CommunicationClass::kTensor);
    }
  }
  void HeadBackward(Block& block) {
    const int64_t h = model_.hidden_size;
    const int64_t vocabulary = VocabularyRowsPerRank(model_, tp_);
    const int64_t tokens = HeadTokens();
    Project16(block, tokens, h, vocabulary);
    if (lora_rank_ == 0) Project16(block, vocabulary, h, tokens, true);
    Memory(block, MemoryBoundKind::kNormBackward, split_tokens_, h);
    Use(block,
        plan_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
        static_cast<double>(tokens_) * static_cast<double>(h) * activation_bytes_, tensor_,
        CommunicationClass::kTensor);
  }
  void HeadInference(Block& block, int64_t sequences) {
    const int64_t h = model_.hidden_size;
    const int64_t vocabulary = CeilDivide(model_.vocabulary_size, tp_);
    Memory(block, MemoryBoundKind::kNorm, sequences, h);
    Project16(block, sequences, vocabulary, h);
    Use(block, CollectiveKind::kAllGather,
        static_cast<double>(sequences) * static_cast<double>(model_.vocabulary_size) *
            activation_bytes_,
        tensor_, CommunicationClass::kTensor);
    Memory(block, MemoryBoundKind::kSoftmax, sequences, model_.vocabulary_size);
  }

  // ZeRO-3: a layer's parameters are gathered before each pass. From ZeRO-2 on its gradients are
  // scattered after the backward pass of every micro-batch, since no rank keeps their sum whole.
  void ShardedData(TrainingBlocks& blocks, const RankParameters& all,
                   const RankParameters& trained) {
    if (plan_.zero_stage < 2) return;
    const auto category = CommunicationClass::kShardedData;
    const auto exchange = [&](double parameters, double trained_parameters, Placement group) {
      if (parameters <= 0) return;
      if (plan_.zero_stage >= 3) {
        const double bytes = parameters * activation_bytes_;
        Use(blocks.forward, CollectiveKind::kAllGather, bytes, group, category);
        Use(blocks.backward, CollectiveKind::kAllGather, bytes, group, category);
      }
      if (trained_parameters <= 0) return;
      Use(blocks.backward, CollectiveKind::kReduceScatter,
          trained_parameters * std::min(options_.gradient_bytes, 4.0), group, category);
    };
    exchange(all.Dense(), trained.Dense(), ShardGroup(DataGroup(), tp_));
    exchange(all.expert, trained.expert,
             ShardGroup(ExpertDataGroup(),
                        ExpertTensorParallelSize(plan_) * plan_.expert_parallel_size));
  }

  // The part of a group over which ZeRO shards, and the copies of one shard.
  Placement ShardGroup(const Placement& group, int64_t stride) const {
    const int64_t size = ShardGroupSize(plan_, group.group_size);
    return size == group.group_size ? group : Place(job_, size, stride);
  }
  Placement CopyGroup(const Placement& group, int64_t stride) const {
    const int64_t size = ShardGroupSize(plan_, group.group_size);
    return Place(job_, group.group_size / size, stride * size);
  }

  // Ranks that hold the same parameters: data and context parallel together.
  Placement DataGroup() const {
    return Place(job_, plan_.data_parallel_size * plan_.context_parallel_size, tp_);
  }
  Placement ExpertDataGroup() const {
    const int64_t etp = ExpertTensorParallelSize(plan_);
    const int64_t size = plan_.data_parallel_size * plan_.context_parallel_size * (tp_ / etp) /
                         plan_.expert_parallel_size;
    return Place(job_, std::max<int64_t>(1, size), etp * plan_.expert_parallel_size);
  }

  StageStep Step(const StageClass& stage, workload::Optimizer optimizer) {
    StageStep step{.stage = stage};
    const RankParameters rank = CountTrainedParameters(job_, stage);
    const Placement dense_group = DataGroup();
    const Placement expert_group = ExpertDataGroup();
    const auto shards = [&](const Placement& group) {
      return plan_.zero_stage >= 1 ? static_cast<double>(ShardGroupSize(plan_, group.group_size))
                                   : 1.0;
    };
    const double owned = rank.Dense() / shards(dense_group) + rank.expert / shards(expert_group);
    // Fused over all tensors: as many equal rows as fill the device, whatever the tensors' shapes.
    constexpr int64_t kColumns = 1024;
    const int64_t rows = std::max<int64_t>(1, std::llround(owned / kColumns));
    const auto stream = [&](MemoryBoundKind kind) {
      Use(step.optimizer,
          Operator{MemoryBoundShape{.kind = kind, .rows = rows, .columns = kColumns},
                   Precision::kFp32},
          OperatorClass::kMemoryBound);
    };
    stream(optimizer == workload::Optimizer::kAdam ? MemoryBoundKind::kOptimizer
                                                   : MemoryBoundKind::kAdd);
    stream(MemoryBoundKind::kElementwise);  // norm and clipping of the gradients
    Reduce(step, rank.Dense(), dense_group, tp_);
    Reduce(step, rank.expert, expert_group,
           ExpertTensorParallelSize(plan_) * plan_.expert_parallel_size);
    return step;
  }

  // Pipeline neighbours: the slowest boundary, one that crosses nodes if any does.
  Placement PipelineNeighbours() const {
    const int64_t stride = tp_ * plan_.context_parallel_size * plan_.data_parallel_size;
    const bool inside = stride * plan_.pipeline_parallel_size <= job_.cluster.gpus_per_node;
    return {.group_size = 2,
            .ranks_per_node = inside ? 2 : 1,
            .groups_per_node =
                std::max<int64_t>(1, std::min<int64_t>(stride, job_.cluster.gpus_per_node))};
  }
  // Tensor parallel ranks hold the same activations, or each its part: either way each sends one
  // part (Narayanan et al. 2021, section 4.1). Frameworks without that optimization send all of a
  // replicated activation from every rank.
  void Send(std::vector<CollectiveUse>& uses, double count) {
    const bool split = options_.pipeline_send_split || plan_.sequence_parallel;
    const double tokens = static_cast<double>(split ? CeilDivide(tokens_, tp_) : tokens_);
    if (plan_.pipeline_parallel_size <= 1 || count <= 0) return;
    uses.push_back(Communicate(CollectiveKind::kSendReceive,
                               tokens * static_cast<double>(model_.hidden_size) * activation_bytes_,
                               PipelineNeighbours(), CommunicationClass::kTensor, count));
  }

  // One layer's attention of a prompt's chunk to itself and to `before` tokens.
  int ChunkAttention(int64_t before, int64_t window) {
    AttentionShape shape = PromptAttention(AttentionPhase::kPrefill);
    shape.key_tokens = query_tokens_ + before;
    if (window > 0 && shape.key_tokens > window) {
      shape.causal = false;
      shape.key_tokens = std::min(window, before + (query_tokens_ + 1) / 2);
    }
    return Add(Operator{shape, precisions_.vector});
  }

  // One layer's attention when one new token of each sequence attends to `context` tokens.
  int DecodeAttention(int64_t context, int64_t window, Precision kv_precision) {
    AttentionShape shape{.phase = AttentionPhase::kDecode,
                         .batch_size = sequences_,
                         .query_tokens = 1,
                         .key_tokens = window > 0 ? std::min(context, window) : context,
                         .head_count = heads_,
                         .kv_head_count = kv_heads_,
                         .head_size = model_.head_size,
                         .causal = model_.causal,
                         .kv_precision = kv_precision};
    if (model_.IsLatent()) {
      const workload::LatentAttention& l = model_.latent_attention;
      shape.kv_head_count = 1;
      shape.latent_size = l.kv_lora_rank + l.rope_head_size;
      shape.head_size = shape.latent_size;
    }
    return Add(Operator{shape, precisions_.vector});
  }

 private:
  int64_t RotarySize() const {
    return model_.IsLatent() ? model_.latent_attention.rope_head_size : model_.head_size;
  }
  // Embedding-sized matrices stay in 16 bits when the layers are quantised.
  void Project16(Block& block, int64_t m, int64_t n, int64_t k, bool weight_gradient = false) {
    Use(block, Operator{GemmShape{.m = m, .n = n, .k = k, .weight_precision = Head()}, Head()},
        OperatorClass::kMatrixMultiply, 1, weight_gradient);
  }
  // An image encoder classifies one token of each sequence.
  int64_t HeadTokens() const { return model_.patch_input_size > 0 ? sequences_ : tokens_; }
  Precision Head() const {
    return precisions_.matrix == Precision::kTf32 ? Precision::kTf32 : precisions_.vector;
  }

  void ResidualBackward(Block& block) {
    const int64_t h = model_.hidden_size;
    Memory(block, MemoryBoundKind::kNormBackward, split_tokens_, h);
    Memory(block, MemoryBoundKind::kAdd, split_tokens_, h);
    if (HasDropout()) Memory(block, MemoryBoundKind::kElementwise, split_tokens_, h);
    TensorReduce(block, 1);
  }

  void MixtureFfn(Block& block, double passes, bool backward = false) {
    const workload::MixtureOfExperts& e = model_.experts;
    const int64_t h = model_.hidden_size;
    const int64_t ep = plan_.expert_parallel_size;
    const int64_t etp = ExpertTensorParallelSize(plan_);
    // An engine whose expert groups lie inside its tensor parallel ranks has every token on each of
    // them: each computes its own experts, and the sum over ranks that ends the layer collects them
    // (vLLM's and TensorRT-LLM's expert parallelism without attention data parallelism).
    const bool collected = !job_.IsTraining() && ep * etp <= tp_;
    // Otherwise, where experts are not split by tensor parallelism, each of its ranks routes its
    // own part of the tokens.
    const int64_t routed = collected || etp == tp_ ? tokens_ : CeilDivide(tokens_, tp_);
    Project16(block, routed, e.expert_count, h);
    Memory(block, MemoryBoundKind::kSoftmax, routed, e.expert_count);
    const ExpertFfnShape experts{.token_count = collected ? tokens_ : routed * ep,
                                 .hidden_size = h,
                                 .ffn_size = e.expert_ffn_size,
                                 .expert_count = e.expert_count,
                                 .experts_per_token = e.experts_per_token,
                                 .tensor_parallel_size = etp,
                                 .expert_parallel_size = ep,
                                 .gated = model_.gated_ffn,
                                 .weight_precision = precisions_.weight,
                                 .block_scaled = precisions_.block_scaled};
    Use(block, Operator{experts, precisions_.matrix}, OperatorClass::kMatrixMultiply,
        passes > 1 ? 1 : passes);
    if (passes > 1) {
      Use(block, Operator{experts, precisions_.matrix}, OperatorClass::kMatrixMultiply, passes - 1,
          true);
    }
    if (e.SharedFfnSize() > 0) {
      const int64_t ffn = CeilDivide(e.SharedFfnSize(), tp_);
      if (backward) {
        DenseFfnBackward(block, ffn);
      } else {
        DenseFfn(block, ffn);
      }
    }
    if (ep > 1 && !collected) {
      const double bytes = static_cast<double>(routed) * static_cast<double>(e.experts_per_token) *
                           static_cast<double>(h) * activation_bytes_;
      Use(block, CollectiveKind::kAllToAll, bytes, Place(job_, ep, etp),
          CommunicationClass::kExpert, 2);  // to the experts and back
    }
  }

  // What data parallel ranks exchange once a step, per ZeRO stage (Rajbhandari et al. 2020, section
  // 7): 0 all-reduces gradients; 1 scatters them and gathers the updated weights; 2 has scattered
  // them with each micro-batch and gathers; 3 has done both. Copies of a shard all-reduce it.
  void Reduce(StageStep& step, double parameters, const Placement& group, int64_t stride) {
    if (group.group_size <= 1 || parameters <= 0) return;
    const double gradients = parameters * options_.gradient_bytes;
    const auto category = CommunicationClass::kShardedData;
    if (plan_.zero_stage == 0) {
      step.reduce.push_back(Communicate(CollectiveKind::kAllReduce, gradients, group, category));
      return;
    }
    const Placement shards = ShardGroup(group, stride);
    const Placement copies = CopyGroup(group, stride);
    const double messages = std::max(1.0, std::round(options_.shard_messages_per_layer *
                                                     static_cast<double>(step.stage.LayerCount())));
    const auto exchange = [&](CollectiveKind kind, double bytes, const Placement& place) {
      if (place.group_size <= 1) return;
      step.reduce.push_back(Communicate(kind, bytes / messages, place, category, messages));
    };
    if (plan_.zero_stage == 1) exchange(CollectiveKind::kReduceScatter, gradients, shards);
    exchange(CollectiveKind::kAllReduce, gradients / static_cast<double>(shards.group_size),
             copies);
    if (plan_.zero_stage <= 2) {
      exchange(CollectiveKind::kAllGather, parameters * activation_bytes_, shards);
    }
  }

  const Job& job_;
  const ModelArchitecture& model_;
  const ParallelPlan& plan_;
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

void BuildRecompute(Builder& builder, workload::Recompute recompute, bool fused, bool mixture,
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
  Builder builder(job, options, graph);
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
  Builder builder(job, options, graph);
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
  builder.SetTokens(graph.decode_sequence_count, 1, graph.decode_sequence_count);
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
  builder.HeadInference(graph.decode_head, graph.decode_sequence_count);

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

namespace {

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
        Sizes(1, std::max<int64_t>(2, schedule_.max_batch_sequences), 2);
    for (const int64_t sequences : batches) {
      graph_.decode_passes.push_back(Pass(sequences, /*decode=*/true));
      HeadPoint head{.sequence_count = sequences};
      builder_.HeadInference(head.head, sequences);
      graph_.heads.push_back(std::move(head));
    }
    AddDecodeAttention(longest);
    AddPromptAttention(longest);
    if (load.prefill_replica_count > 0) AddTransfers(longest);
    return std::move(graph_);
  }

 private:
  PassPoint Pass(int64_t tokens, bool decode) {
    PassPoint point{.token_count = tokens};
    if (decode) {
      builder_.SetTokens(tokens, 1, tokens);
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
      builder_.SetTokens(sequences, 1, sequences);
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

  const Job& job_;
  const workload::InferenceWorkload& work_;
  const serving::EngineSchedule schedule_;
  StepGraph graph_;
  Builder builder_;
};

}  // namespace

StepGraph BuildStepGraph(const Job& job, const GraphOptions& options) {
  return StepGraphBuilder(job, options).Build();
}

double ModelFlopCount(const Job& job) {
  const ModelArchitecture& m = job.model;
  const workload::ParameterCounts counts = workload::CountParameters(m);
  double per_layer_sum = static_cast<double>(counts.AttentionTotal()) +
                         static_cast<double>(counts.dense_layer_count) *
                             static_cast<double>(counts.dense_ffn_per_layer);
  if (m.IsMixture()) {
    const double visited = static_cast<double>(counts.routed_experts_per_layer) *
                           static_cast<double>(m.experts.experts_per_token) /
                           static_cast<double>(m.experts.expert_count);
    per_layer_sum += static_cast<double>(counts.mixture_layer_count) *
                     (visited + static_cast<double>(counts.shared_experts_per_layer) +
                      static_cast<double>(counts.router_per_layer));
  }
  const double head = static_cast<double>(m.vocabulary_size) * static_cast<double>(m.hidden_size);
  // Scores and context: 2 x 2 flops for each query, key and channel.
  const double width = static_cast<double>(m.attention_head_count) *
                       (m.IsLatent() ? static_cast<double>(m.latent_attention.nope_head_size +
                                                           m.latent_attention.rope_head_size +
                                                           m.latent_attention.value_head_size) /
                                           2
                                     : static_cast<double>(m.head_size));
  const double per_pair = 4 * width;
  const double full = static_cast<double>(m.FullAttentionLayerCount());
  const double windowed = static_cast<double>(m.WindowedLayerCount());
  // Keys seen, and pairs of a prompt, summed over layers.
  const auto seen = [&](double keys) {
    return full * keys + windowed * std::min(keys, static_cast<double>(m.sliding_window));
  };
  const auto prompt_pairs = [&](double tokens) {
    const auto pairs = [&](double w) { return m.causal ? tokens * w - w * w / 2 : tokens * w; };
    return full * pairs(tokens) +
           windowed * pairs(std::min(tokens, static_cast<double>(m.sliding_window)));
  };
  if (const auto* work = std::get_if<workload::TrainingWorkload>(&job.workload)) {
    const double sequence = static_cast<double>(work->sequence_length);
    const double head_tokens = m.patch_input_size > 0 ? 1 : sequence;
    const double forward = 2 * (sequence * per_layer_sum + head_tokens * head);
    const double attention = per_pair * prompt_pairs(sequence);
    // Frozen weights have a data gradient and no weight gradient.
    const double passes = work->lora_rank > 0 ? 2 : 3;
    return (passes * forward + 3 * attention) * static_cast<double>(work->global_batch_size);
  }
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  const double prompt = static_cast<double>(work.prompt_tokens);
  const double steps = static_cast<double>(std::max<int64_t>(0, work.output_tokens - 1));
  const double decode_pairs = steps * (seen(prompt + 1) + seen(prompt + steps)) / 2;
  return static_cast<double>(work.batch_size) *
         (2 * (prompt + steps) * per_layer_sum + 2 * (1 + steps) * head +
          per_pair * (prompt_pairs(prompt) + decode_pairs));
}

}  // namespace sextant::orchestrator
