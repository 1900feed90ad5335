// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "common/orchestrator/graph_builder.h"

namespace sextant::orchestrator {

using collectives::CollectiveKind;
using operator_cost::ExpertFfnShape;
using operator_cost::MemoryBoundKind;
using operator_cost::Operator;

void GraphBuilder::DenseFfn(Block& block, int64_t ffn) {
  const int64_t h = model_.hidden_size;
  Project(block, tokens_, (model_.gated_ffn ? 2 : 1) * ffn, h);
  Memory(block, model_.gated_ffn ? MemoryBoundKind::kGatedActivation : MemoryBoundKind::kActivation,
         tokens_, ffn);
  Project(block, tokens_, h, ffn);
}

void GraphBuilder::DenseFfnBackward(Block& block, int64_t ffn) {
  const int64_t h = model_.hidden_size;
  ProjectBackward(block, tokens_, h, ffn);
  // A gated activation moves five tensors of `ffn` columns where a plain one moves three.
  Memory(block, MemoryBoundKind::kActivationBackward, tokens_,
         model_.gated_ffn ? (5 * ffn + 2) / 3 : ffn);
  ProjectBackward(block, tokens_, (model_.gated_ffn ? 2 : 1) * ffn, h);
}

void GraphBuilder::FfnForward(Block& block, bool mixture) {
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

void GraphBuilder::FfnBackward(Block& block, bool mixture) {
  if (mixture) {
    // Data and, of trained weights, weight gradients: each the arithmetic of the forward pass.
    MixtureFfn(block, lora_rank_ == 0 ? 2 : 1, true);
  } else {
    DenseFfnBackward(block, CeilDivide(model_.ffn_size, tp_));
  }
  ResidualBackward(block);
}

void GraphBuilder::MixtureFfn(Block& block, double passes, bool backward) {
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
                               .block_scaled = precisions_.block_scaled,
                               .imbalance = e.load_imbalance};
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
  if (job_.IsTraining()) {
    const int64_t copies = routed * e.experts_per_token;
    // Of the first product's input and of the second's; backward of the gradients of both outputs.
    CastTo8Bit(block, copies,
               backward ? (model_.gated_ffn ? 2 : 1) * CeilDivide(e.expert_ffn_size, etp) : h);
    CastTo8Bit(block, copies, backward ? h : CeilDivide(e.expert_ffn_size, etp));
    // What came from other ranks is sorted by expert, and by rank before it goes back.
    if (ep > 1) Memory(block, MemoryBoundKind::kCopy, copies, h, 2);
  }
  if (ep > 1 && !collected) ExchangeTokens(block, routed, ep, etp);
}

void GraphBuilder::ExchangeTokens(Block& block, int64_t tokens, int64_t experts,
                                  int64_t expert_tensor_size) {
  const Placement group = Place(job_, experts, expert_tensor_size);
  const double visited = static_cast<double>(model_.experts.experts_per_token);
  const double token_bytes =
      static_cast<double>(tokens) * static_cast<double>(model_.hidden_size) * activation_bytes_;
  const int64_t nodes = group.group_size / group.ranks_per_node;
  if (!options_.node_level_dispatch || nodes <= 1 || group.ranks_per_node <= 1) {
    // To the experts and back.
    Use(block, CollectiveKind::kAllToAll, visited * token_bytes, group, CommunicationClass::kExpert,
        2);
    return;
  }
  // Nodes that a token's experts lie on, of choices that are alike: n (1 - (1 - 1/n)^k). Between
  // nodes ranks of the same place exchange, inside a node all of its ranks.
  const double n = static_cast<double>(nodes);
  const double reached = n * -std::expm1(visited * std::log1p(-1 / n));
  const Placement across{.group_size = nodes,
                         .ranks_per_node = 1,
                         .groups_per_node = group.groups_per_node * group.ranks_per_node};
  const Placement inside{.group_size = group.ranks_per_node,
                         .ranks_per_node = group.ranks_per_node,
                         .groups_per_node = group.groups_per_node};
  Use(block, CollectiveKind::kAllToAll, reached * token_bytes, across, CommunicationClass::kExpert,
      2);
  Use(block, CollectiveKind::kAllToAll, visited * token_bytes, inside, CommunicationClass::kExpert,
      2);
}

}  // namespace sextant::orchestrator
