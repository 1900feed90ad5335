// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/graph_builder.h"

namespace sextant::orchestrator {

using collectives::CollectiveKind;
using operator_cost::MemoryBoundKind;

void GraphBuilder::EmbeddingForward(Block& block) {
  const int64_t h = model_.hidden_size;
  if (model_.patch_input_size > 0) {
    Project16(block, tokens_, h, model_.patch_input_size);
    if (model_.learned_position_count > 0) Memory(block, MemoryBoundKind::kAdd, tokens_, h);
    return;
  }
  Memory(block, MemoryBoundKind::kEmbedding, tokens_, h);
  if (model_.learned_position_count > 0) Memory(block, MemoryBoundKind::kAdd, tokens_, h);
  const double bytes = static_cast<double>(tokens_) * static_cast<double>(h) * activation_bytes_;
  Use(block, plan_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
      bytes, tensor_, CommunicationClass::kTensor);
}

void GraphBuilder::EmbeddingBackward(Block& block) {
  if (lora_rank_ > 0) return;
  if (model_.patch_input_size > 0) {
    Project16(block, model_.hidden_size, model_.patch_input_size, tokens_, true);
    return;
  }
  Memory(block, MemoryBoundKind::kEmbedding, tokens_, model_.hidden_size);
  if (plan_.sequence_parallel) {
    Use(block, CollectiveKind::kAllGather,
        static_cast<double>(tokens_) * static_cast<double>(model_.hidden_size) * activation_bytes_,
        tensor_, CommunicationClass::kTensor);
  }
}

void GraphBuilder::HeadForwardTraining(Block& block) {
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

void GraphBuilder::HeadBackward(Block& block) {
  const int64_t h = model_.hidden_size;
  const int64_t vocabulary = VocabularyRowsPerRank(model_, tp_);
  const int64_t tokens = HeadTokens();
  Project16(block, tokens, h, vocabulary);
  if (lora_rank_ == 0) Project16(block, vocabulary, h, tokens, true);
  Memory(block, MemoryBoundKind::kNormBackward, split_tokens_, h);
  Use(block, plan_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
      static_cast<double>(tokens_) * static_cast<double>(h) * activation_bytes_, tensor_,
      CommunicationClass::kTensor);
}

void GraphBuilder::HeadInference(Block& block, int64_t sequences) {
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

}  // namespace sextant::orchestrator
