// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "common/orchestrator/graph_builder.h"
#include "common/orchestrator/kv_cache.h"

namespace sextant::orchestrator {

using collectives::CollectiveKind;
using hardware::Precision;
using operator_cost::AttentionPhase;
using operator_cost::AttentionShape;
using operator_cost::MemoryBoundKind;
using operator_cost::MemoryBoundShape;
using operator_cost::Operator;

AttentionShape GraphBuilder::PromptAttention(AttentionPhase phase) const {
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

void GraphBuilder::AttentionCore(Block& block, AttentionPhase phase) {
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

void GraphBuilder::TransposeHeads(Block& block) {
  for (const int64_t heads : {heads_ + 2 * kv_heads_, 2 * kv_heads_, heads_}) {
    Use(block,
        Operator{MemoryBoundShape{.kind = MemoryBoundKind::kElementwise,
                                  .rows = tokens_,
                                  .columns = heads * model_.head_size},
                 precisions_.vector},
        OperatorClass::kAttention);
  }
}

void GraphBuilder::ContextExchange(Block& block, double passes) {
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

void GraphBuilder::LinearAttentionLayer(Block& block, bool decode, bool backward) {
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
    Batched(block, OperatorClass::kAttention, sequences_ * heads, query_tokens_, l.value_head_size,
            l.key_head_size, backward ? 8 : 4);
  }
  Memory(block, MemoryBoundKind::kGatedActivation, tokens_, values, backward ? 2 : 1);
  project(h, values);
  Memory(block, MemoryBoundKind::kAdd, split_tokens_, h);
  TensorReduce(block, 1);
}

void GraphBuilder::AttentionInput(Block& block, bool backward) {
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

int64_t GraphBuilder::AttentionOutputSize() const {
  return heads_ * (model_.IsLatent() ? model_.latent_attention.value_head_size : model_.head_size);
}

void GraphBuilder::AbsorbedProjections(Block& block) {
  if (!model_.IsLatent()) return;
  const workload::LatentAttention& l = model_.latent_attention;
  Batched(block, OperatorClass::kMatrixMultiply, heads_, tokens_, l.kv_lora_rank, l.nope_head_size);
  Batched(block, OperatorClass::kMatrixMultiply, heads_, tokens_, l.value_head_size,
          l.kv_lora_rank);
}

void GraphBuilder::AttentionAround(Block& block) {
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

void GraphBuilder::AttentionAroundBackward(Block& block) {
  const int64_t h = model_.hidden_size;
  ProjectBackward(block, tokens_, h, AttentionOutputSize());
  Adapter(block, tokens_, h, AttentionOutputSize(), true);
  if (HasRotary()) {
    Memory(block, MemoryBoundKind::kRotary, tokens_, (heads_ + kv_heads_) * RotarySize());
  }
  AttentionInput(block, true);
  ResidualBackward(block);
}

int GraphBuilder::ChunkAttention(int64_t before, int64_t window) {
  AttentionShape shape = PromptAttention(AttentionPhase::kPrefill);
  shape.key_tokens = query_tokens_ + before;
  if (window > 0 && shape.key_tokens > window) {
    shape.causal = false;
    shape.key_tokens = std::min(window, before + (query_tokens_ + 1) / 2);
  }
  return Add(Operator{shape, precisions_.vector});
}

int GraphBuilder::DecodeAttention(int64_t context, int64_t window, Precision kv_precision) {
  AttentionShape shape{.phase = AttentionPhase::kDecode,
                       .batch_size = sequences_,
                       .query_tokens = 1,
                       .key_tokens = window > 0 ? std::min(context, window) : context,
                       .head_count = heads_ * query_tokens_,
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

}  // namespace sextant::orchestrator
