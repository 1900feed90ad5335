// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_OPERATOR_H_
#define SEXTANT_COMMON_OPERATOR_COST_OPERATOR_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "common/hardware/precision.h"

namespace sextant::operator_cost {

using hardware::Precision;

// C[m,n] = A[m,k] B[k,n], `batch_count` times with different operands. Grouped (experts):
// `group_count` > 1 matrices B, among whose rows the m rows of A are divided.
struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch_count = 1;
  int64_t group_count = 1;
  Precision weight_precision = Precision::kBf16;  // of B; equals Operator::precision unless
                                                  // weights alone are quantised
  bool block_scaled = false;                      // fp8 with 128-wide block scales

  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

enum class AttentionPhase : int { kPrefill, kBackward, kDecode };

// Fused attention of `batch_size` sequences: `query_tokens` new tokens of each attend to
// `key_tokens` (the new ones included). Decode: query_tokens is 1. Heads are those of one rank.
struct AttentionShape {
  AttentionPhase phase = AttentionPhase::kPrefill;
  int64_t batch_size = 0;
  int64_t query_tokens = 0;
  int64_t key_tokens = 0;
  int64_t head_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_size = 0;
  bool causal = true;
  Precision kv_precision = Precision::kBf16;
  // > 0: latent attention; keys and values are one latent of this width (rope included), shared
  // by all heads, and head_size is that of queries as the kernel sees them.
  int64_t latent_size = 0;

  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

// Operators that stream through memory. Traffic per kind is in memory_bound_formula.h.
enum class MemoryBoundKind : int {
  kNorm,  // LayerNorm or RMSNorm forward
  kNormBackward,
  kSoftmax,
  kRotary,           // rotary embedding of query and key
  kGatedActivation,  // silu(a) * b: reads 2 x columns, writes columns
  kActivation,       // gelu, relu: reads and writes columns
  kActivationBackward,
  kAdd,           // residual: two tensors in, one out
  kElementwise,   // tensor and scalar in, tensor out
  kEmbedding,     // gather of rows
  kCrossEntropy,  // softmax and loss over the vocabulary, forward and backward
  kOptimizer,     // fused optimizer step over rows x columns parameters
  kCopy,
  kTranspose,  // unfused head split or merge
};

// `rows` x `columns` elements. kOptimizer: one row of parameters.
struct MemoryBoundShape {
  MemoryBoundKind kind = MemoryBoundKind::kCopy;
  int64_t rows = 0;
  int64_t columns = 0;

  friend bool operator==(const MemoryBoundShape&, const MemoryBoundShape&) = default;
};

// Routed feed-forward network of one rank as one fused operator: `token_count` tokens, each sent
// to `experts_per_token` of `expert_count` experts of [hidden, ffn]; this rank holds
// expert_count / expert_parallel_size experts, each split tensor_parallel_size ways.
struct ExpertFfnShape {
  int64_t token_count = 0;
  int64_t hidden_size = 0;
  int64_t ffn_size = 0;
  int64_t expert_count = 0;
  int64_t experts_per_token = 0;
  int64_t tensor_parallel_size = 1;
  int64_t expert_parallel_size = 1;
  bool gated = true;
  Precision weight_precision = Precision::kBf16;
  bool block_scaled = false;
  double imbalance = 1;  // tokens of the busiest rank over the mean; >= 1

  friend bool operator==(const ExpertFfnShape&, const ExpertFfnShape&) = default;
};

using OperatorShape = std::variant<GemmShape, AttentionShape, MemoryBoundShape, ExpertFfnShape>;

// One kernel, or few that act as one, on one GPU.
struct Operator {
  OperatorShape shape;
  Precision precision = Precision::kBf16;  // of the activations, and of the arithmetic

  friend bool operator==(const Operator&, const Operator&) = default;
};

// What bounds an operator.
enum class Binding : int { kMatrixRate, kL2Bandwidth, kHbmBandwidth, kLaunch, kVectorRate };
absl::string_view BindingName(Binding binding);  // "matrix_rate", "l2_bandwidth", ...

// The answer for one operator on one accelerator.
struct OperatorEstimate {
  double seconds = 0;  // as a stream of kernels sees it: device time and fixed costs
  Binding binding = Binding::kMatrixRate;
  double flop_count = 0;
  double hbm_bytes = 0;             // least traffic: every operand once
  double roofline_seconds = 0;      // no answer is below this
  bool extrapolated = false;        // outside the fitted domain, or parameters were transferred
  double interval_low_seconds = 0;  // 90 % interval; low is never below the roofline
  double interval_high_seconds = 0;

  friend bool operator==(const OperatorEstimate&, const OperatorEstimate&) = default;
};

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_OPERATOR_H_
