// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/graph_builder.h"

namespace sextant::orchestrator {

using collectives::Collective;
using collectives::CollectiveKind;
using operator_cost::AttentionPhase;
using operator_cost::GemmShape;
using operator_cost::MemoryBoundKind;
using operator_cost::MemoryBoundShape;
using operator_cost::Operator;

void GraphBuilder::SetTokens(int64_t sequences, int64_t query_tokens, int64_t tokens) {
  sequences_ = sequences;
  query_tokens_ = query_tokens;
  tokens_ = tokens;
  split_tokens_ = plan_.sequence_parallel ? CeilDivide(tokens, tp_) : tokens;
}

int GraphBuilder::Add(const Operator& op) {
  for (size_t i = 0; i < graph_.operators.size(); ++i) {
    if (graph_.operators[i] == op) return static_cast<int>(i);
  }
  graph_.operators.push_back(op);
  return static_cast<int>(graph_.operators.size()) - 1;
}

int GraphBuilder::Add(const Collective& collective) {
  for (size_t i = 0; i < graph_.collectives.size(); ++i) {
    if (graph_.collectives[i] == collective) return static_cast<int>(i);
  }
  graph_.collectives.push_back(collective);
  return static_cast<int>(graph_.collectives.size()) - 1;
}

void GraphBuilder::Use(Block& block, const Operator& op, OperatorClass category, double count,
                       bool weight_gradient) {
  const int index = Add(op);
  count *= layer_share_;
  for (OperatorUse& use : block.operators) {
    if (use.index == index && use.category == category && use.weight_gradient == weight_gradient) {
      use.count += count;
      return;
    }
  }
  block.operators.push_back({index, count, category, weight_gradient});
}

CollectiveUse GraphBuilder::Communicate(CollectiveKind kind, double bytes,
                                        const Placement& placement, CommunicationClass category,
                                        double count) {
  return {Add(Collective{.kind = kind,
                         .bytes = bytes,
                         .group_size = placement.group_size,
                         .ranks_per_node = placement.ranks_per_node,
                         .groups_per_node = placement.groups_per_node}),
          count, category};
}

void GraphBuilder::Use(Block& block, CollectiveKind kind, double bytes, const Placement& placement,
                       CommunicationClass category, double count) {
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

void GraphBuilder::Memory(Block& block, MemoryBoundKind kind, int64_t rows, int64_t columns,
                          double count) {
  Use(block,
      Operator{MemoryBoundShape{.kind = kind, .rows = rows, .columns = columns},
               precisions_.vector},
      OperatorClass::kMemoryBound, count);
}

void GraphBuilder::CastTo8Bit(Block& block, int64_t rows, int64_t columns) {
  if (!job_.IsTraining() || hardware::BytesPerElement(precisions_.matrix) > 1) return;
  // 2 B in, 1 B out twice; frozen weights have no gradients that need the transposed copy.
  Memory(block, MemoryBoundKind::kCopy, rows, columns, lora_rank_ == 0 ? 1 : 0.75);
}

void GraphBuilder::Project(Block& block, int64_t m, int64_t n, int64_t k, double count) {
  CastTo8Bit(block, m, k);
  Multiply(block, m, n, k, count, false);
}

void GraphBuilder::Multiply(Block& block, int64_t m, int64_t n, int64_t k, double count,
                            bool weight_gradient) {
  Use(block,
      Operator{GemmShape{.m = m,
                         .n = n,
                         .k = k,
                         .weight_precision = precisions_.weight,
                         .block_scaled = precisions_.block_scaled},
               precisions_.matrix},
      OperatorClass::kMatrixMultiply, count, weight_gradient);
}

void GraphBuilder::ProjectBackward(Block& block, int64_t m, int64_t n, int64_t k) {
  CastTo8Bit(block, m, n);
  Multiply(block, m, k, n, 1, false);
  if (lora_rank_ == 0) Multiply(block, n, k, m, 1, true);
}

void GraphBuilder::Adapter(Block& block, int64_t m, int64_t n, int64_t k, bool backward) {
  if (lora_rank_ == 0) return;
  Multiply(block, m, lora_rank_, k, 1, false);
  Multiply(block, m, n, lora_rank_, 1, false);
  if (!backward) return;
  Multiply(block, lora_rank_, k, m, 1, true);
  Multiply(block, n, lora_rank_, m, 1, true);
}

void GraphBuilder::Batched(Block& block, OperatorClass category, int64_t batch, int64_t m,
                           int64_t n, int64_t k, double count) {
  Use(block,
      Operator{
          GemmShape{
              .m = m, .n = n, .k = k, .batch_count = batch, .weight_precision = precisions_.vector},
          precisions_.vector},
      category, count);
}

void GraphBuilder::TensorReduce(Block& block, double count) {
  const double bytes =
      static_cast<double>(tokens_) * static_cast<double>(model_.hidden_size) * activation_bytes_;
  if (plan_.sequence_parallel) {
    Use(block, CollectiveKind::kAllGather, bytes, tensor_, CommunicationClass::kTensor, count);
    Use(block, CollectiveKind::kReduceScatter, bytes, tensor_, CommunicationClass::kTensor, count);
  } else {
    Use(block, CollectiveKind::kAllReduce, bytes, tensor_, CommunicationClass::kTensor, count);
  }
}

void GraphBuilder::LayerForward(Block& block, bool mixture) {
  ForEachAttention([&](bool linear) {
    if (linear) return LinearAttentionLayer(block, /*decode=*/false, /*backward=*/false);
    AttentionAround(block);
    AttentionCore(block, AttentionPhase::kPrefill);
    ContextExchange(block, 1);
  });
  FfnForward(block, mixture);
}

void GraphBuilder::LayerBackward(Block& block, bool mixture) {
  FfnBackward(block, mixture);
  ForEachAttention([&](bool linear) {
    if (linear) return LinearAttentionLayer(block, /*decode=*/false, /*backward=*/true);
    AttentionCore(block, AttentionPhase::kBackward);
    ContextExchange(block, 2);  // keys and values again, and their gradients
    AttentionAroundBackward(block);
  });
}

void GraphBuilder::Project16(Block& block, int64_t m, int64_t n, int64_t k, bool weight_gradient) {
  Use(block, Operator{GemmShape{.m = m, .n = n, .k = k, .weight_precision = Head()}, Head()},
      OperatorClass::kMatrixMultiply, 1, weight_gradient);
}

void GraphBuilder::ResidualBackward(Block& block) {
  const int64_t h = model_.hidden_size;
  Memory(block, MemoryBoundKind::kNormBackward, split_tokens_, h);
  Memory(block, MemoryBoundKind::kAdd, split_tokens_, h);
  if (HasDropout()) Memory(block, MemoryBoundKind::kElementwise, split_tokens_, h);
  TensorReduce(block, 1);
}

}  // namespace sextant::orchestrator
