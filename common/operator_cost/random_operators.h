// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_RANDOM_OPERATORS_H_
#define SEXTANT_COMMON_OPERATOR_COST_RANDOM_OPERATORS_H_

#include <cmath>
#include <cstdint>
#include <random>

#include "common/operator_cost/operator.h"

// Valid operators of every family for property tests, sizes spread evenly over their logarithm.
namespace sextant::operator_cost {

class RandomOperators {
 public:
  explicit RandomOperators(uint32_t seed) : engine_(seed) {}

  int64_t Size(int64_t minimum, int64_t maximum) {
    const double low = std::log(static_cast<double>(minimum));
    const double high = std::log(static_cast<double>(maximum) + 0.999);
    // The engine alone: standard distributions differ between libraries.
    const double u = static_cast<double>(engine_()) / 4294967296.0;
    return static_cast<int64_t>(std::exp(low + u * (high - low)));
  }

  Operator Gemm() {
    GemmShape shape;
    shape.m = Size(1, 65536);
    shape.n = Size(1, 65536);
    shape.k = Size(1, 65536);
    if (Size(1, 4) == 1) shape.batch_count = Size(1, 256);
    if (Size(1, 8) == 1) shape.group_count = Size(1, 64);
    return {shape, Precision::kBf16};
  }
  Operator Attention(AttentionPhase phase) {
    AttentionShape shape;
    shape.phase = phase;
    shape.batch_size = Size(1, 256);
    shape.key_tokens = Size(1, 65536);
    shape.query_tokens = phase == AttentionPhase::kDecode ? 1 : Size(1, shape.key_tokens);
    shape.kv_head_count = Size(1, 16);
    shape.head_count = shape.kv_head_count * Size(1, 64);
    shape.head_size = 64 * Size(1, 4);
    shape.causal = Size(1, 2) == 1;
    if (phase != AttentionPhase::kBackward && Size(1, 4) == 1) shape.latent_size = 576;
    return {shape, Precision::kBf16};
  }
  Operator MemoryBound() {
    MemoryBoundShape shape;
    shape.kind = static_cast<MemoryBoundKind>(Size(1, 14) - 1);
    shape.rows = Size(1, 1 << 20);
    shape.columns = Size(1, 1 << 16);
    return {shape, Precision::kBf16};
  }
  Operator ExpertFfn() {
    ExpertFfnShape shape;
    shape.token_count = Size(1, 65536);
    shape.hidden_size = Size(64, 16384);
    shape.ffn_size = Size(64, 16384);
    shape.expert_count = Size(1, 512);
    shape.experts_per_token = Size(1, shape.expert_count);
    shape.tensor_parallel_size = Size(1, 8);
    shape.expert_parallel_size = Size(1, shape.expert_count);
    shape.imbalance = static_cast<double>(Size(1, 4));
    return {shape, Precision::kBf16};
  }
  Operator Any() {
    switch (Size(1, 6)) {
      case 1:
        return Gemm();
      case 2:
        return Attention(AttentionPhase::kPrefill);
      case 3:
        return Attention(AttentionPhase::kBackward);
      case 4:
        return Attention(AttentionPhase::kDecode);
      case 5:
        return MemoryBound();
      default:
        return ExpertFfn();
    }
  }

 private:
  std::mt19937 engine_;
};

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_RANDOM_OPERATORS_H_
