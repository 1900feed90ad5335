// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_ATTENTION_FORMULA_H_
#define SEXTANT_COMMON_OPERATOR_COST_ATTENTION_FORMULA_H_

#include <array>
#include <cmath>

#include "common/operator_cost/formula.h"
#include "common/parameters/parameter_descriptor.h"

namespace sextant::operator_cost {

// Fused attention with many query tokens (prefill, training forward).
template <typename T>
struct PrefillParameters {
  T peak_efficiency;
  T half_head_size;
  T tile_fixed_seconds;
  T key_tile_seconds;
  T wave_quantisation;
  T hbm_efficiency;
  T fixed_seconds;

  static PrefillParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
  }
  template <typename U>
  PrefillParameters<U> As() const {
    return {U(peak_efficiency),   U(half_head_size), U(tile_fixed_seconds), U(key_tile_seconds),
            U(wave_quantisation), U(hbm_efficiency), U(fixed_seconds)};
  }
};

inline constexpr std::array<parameters::ParameterDescriptor, 7> kPrefillDescriptors = {{
    {"peak_efficiency", 0.65, 0.05, 1.0,
     "share of the matrix rate on long sequences, head size 128"},
    {"half_head_size", 20, 0, 300, "head size at which half of the rate is lost to softmax"},
    {"tile_fixed_seconds", 2e-6, 0, 50e-6, "seconds to start and finish one tile of queries"},
    {"key_tile_seconds", 0.1e-6, 0, 5e-6, "seconds lost per tile of keys"},
    {"wave_quantisation", 0.5, 0, 1, "share of a partly filled last wave that is waited for"},
    {"hbm_efficiency", 0.8, 0.1, 1.0, "share of the HBM bandwidth"},
    {"fixed_seconds", 5e-6, 0.3e-6, 100e-6, "device-visible seconds of launching"},
}};

// Backward attention runs 2.5 times the forward's arithmetic (five products instead of two) at a
// lower rate: FlashAttention-2 (Dao 2023, table of A100 speeds, head size 128, causal, 8k) reaches
// 189 TFLOP/s forward+backward and 203 forward, hence about 0.9 of the forward's rate.
template <typename T>
struct BackwardParameters {
  T efficiency_ratio;
  T fixed_seconds;

  static BackwardParameters FromArray(const T* v) { return {v[0], v[1]}; }
};

inline constexpr std::array<parameters::ParameterDescriptor, 2> kBackwardDescriptors = {{
    {"efficiency_ratio", 0.85, 0.2, 1.2, "rate of attention backward over forward"},
    {"fixed_seconds", 10e-6, 0.3e-6, 100e-6, "device-visible seconds of launching (three kernels)"},
}};

// Attention of one new token per sequence against cached keys and values.
template <typename T>
struct DecodeParameters {
  T hbm_efficiency;
  T compute_efficiency;
  T split_half_keys;
  T block_fixed_seconds;
  T fixed_seconds;

  static DecodeParameters FromArray(const T* v) { return {v[0], v[1], v[2], v[3], v[4]}; }
};

inline constexpr std::array<parameters::ParameterDescriptor, 5> kDecodeDescriptors = {{
    {"hbm_efficiency", 0.8, 0.05, 1.0, "share of the HBM bandwidth when reading a long cache"},
    {"compute_efficiency", 0.3, 0.01, 1.0, "share of the matrix rate"},
    {"split_half_keys", 100, 0, 10000, "keys of one split at which half of the rate is reached"},
    {"block_fixed_seconds", 1e-6, 0, 50e-6, "seconds to start and finish one block"},
    {"fixed_seconds", 5e-6, 0.3e-6, 100e-6, "device-visible seconds of launching"},
}};

// Pairs of (query, key) that one head attends to.
inline double AttendedPairs(const AttentionShape& shape) {
  const double q = static_cast<double>(shape.query_tokens);
  const double kv = static_cast<double>(shape.key_tokens);
  if (!shape.causal) return q * kv;
  // Query i of q sees the kv - q keys before the new ones and i of the new ones.
  const double old_keys = std::max(0.0, kv - q);
  return q * old_keys + q * (std::min(q, kv) + 1) / 2;
}

inline double FlopCount(const AttentionShape& shape) {
  const double heads =
      static_cast<double>(shape.batch_size) * static_cast<double>(shape.head_count);
  const double pairs = AttendedPairs(shape);
  const double width = static_cast<double>(shape.head_size);
  if (shape.latent_size > 0 && shape.phase == AttentionPhase::kDecode) {
    // Absorbed: scores over the whole latent, values over its unrotated part (512 of 576).
    return 2 * heads * pairs * static_cast<double>(shape.latent_size) * (1 + 512.0 / 576.0);
  }
  return (shape.phase == AttentionPhase::kBackward ? 2.5 : 1.0) * 4 * heads * pairs * width;
}

// Bytes of keys and values, each once: kv heads, not query heads.
inline double KeyValueBytes(const AttentionShape& shape) {
  const double tokens =
      static_cast<double>(shape.batch_size) * static_cast<double>(shape.key_tokens);
  const double width = shape.latent_size > 0 ? static_cast<double>(shape.latent_size)
                                             : 2 * static_cast<double>(shape.kv_head_count) *
                                                   static_cast<double>(shape.head_size);
  return tokens * width * hardware::BytesPerElement(shape.kv_precision);
}

inline double LeastBytes(const AttentionShape& shape, Precision precision) {
  const double element = std::max(2.0, hardware::BytesPerElement(precision));
  const double q = static_cast<double>(shape.batch_size) * static_cast<double>(shape.query_tokens) *
                   static_cast<double>(shape.head_count) * static_cast<double>(shape.head_size);
  // Forward: query in, output out. Backward: query, output, its gradient in; gradients out.
  return shape.phase == AttentionPhase::kBackward ? 4 * q * element + 2 * KeyValueBytes(shape)
                                                  : 2 * q * element + KeyValueBytes(shape);
}

template <typename T>
Cost<T> PrefillCost(const AttentionShape& shape, Precision precision,
                    const hardware::Accelerator& accelerator, const PrefillParameters<T>& p) {
  Cost<T> cost;
  cost.flop_count = FlopCount(shape);
  cost.hbm_bytes = LeastBytes(shape, precision);
  const double rate = accelerator.MatrixRate(precision);
  const double tile = 128;
  const double tiles = std::ceil(static_cast<double>(shape.query_tokens) / tile) *
                       static_cast<double>(shape.batch_size) *
                       static_cast<double>(shape.head_count);
  const double sm = accelerator.sm_count;
  const double busy = tiles / sm;
  const T load = busy <= 1 ? T(1.0) : busy + p.wave_quantisation * (std::ceil(busy) - busy);
  const double tile_flops = cost.flop_count / tiles;
  const double head = static_cast<double>(shape.head_size);
  const T efficiency =
      p.peak_efficiency * (head / 128.0) * (128.0 + p.half_head_size) / (head + p.half_head_size);
  const double key_tiles = AttendedPairs(shape) / static_cast<double>(shape.query_tokens) / 128;
  const T compute = load * (tile_flops * sm / (rate * efficiency) + p.tile_fixed_seconds +
                            key_tiles * p.key_tile_seconds);
  const T hbm = cost.hbm_bytes / (accelerator.hbm_bandwidth_bytes_per_second * p.hbm_efficiency);
  cost.seconds = p.fixed_seconds + Max(compute, hbm);
  cost.binding =
      ValueOf(p.fixed_seconds) > std::max(ValueOf(compute), ValueOf(hbm))
          ? Binding::kLaunch
          : (ValueOf(compute) >= ValueOf(hbm) ? Binding::kMatrixRate : Binding::kHbmBandwidth);
  ApplyRoofline(accelerator, rate, cost);
  return cost;
}

template <typename T>
Cost<T> BackwardCost(const AttentionShape& shape, Precision precision,
                     const hardware::Accelerator& accelerator, const PrefillParameters<T>& forward,
                     const BackwardParameters<T>& p) {
  AttentionShape as_forward = shape;
  as_forward.phase = AttentionPhase::kPrefill;
  const Cost<T> f = PrefillCost(as_forward, precision, accelerator, forward);
  Cost<T> cost;
  cost.flop_count = FlopCount(shape);
  cost.hbm_bytes = LeastBytes(shape, precision);
  cost.binding = f.binding;
  cost.seconds = p.fixed_seconds +
                 (f.seconds - Min(f.seconds, forward.fixed_seconds)) * 2.5 / p.efficiency_ratio;
  ApplyRoofline(accelerator, accelerator.MatrixRate(precision), cost);
  return cost;
}

template <typename T>
Cost<T> DecodeCost(const AttentionShape& shape, Precision precision,
                   const hardware::Accelerator& accelerator, const DecodeParameters<T>& p) {
  Cost<T> cost;
  cost.flop_count = FlopCount(shape);
  cost.hbm_bytes = LeastBytes(shape, precision);
  const double rate = accelerator.MatrixRate(precision);
  const double kv_heads = shape.latent_size > 0 ? 1 : static_cast<double>(shape.kv_head_count);
  const double blocks = static_cast<double>(shape.batch_size) * kv_heads;
  const double sm = accelerator.sm_count;
  // Split the cache until every SM has a block.
  const double split = std::max(1.0, std::floor(2 * sm / blocks));
  const double keys = static_cast<double>(shape.key_tokens) / split;
  const T hbm = cost.hbm_bytes / (accelerator.hbm_bandwidth_bytes_per_second * p.hbm_efficiency) *
                ((keys + p.split_half_keys) / keys);
  const T compute = cost.flop_count / (rate * p.compute_efficiency);
  const double waves = std::ceil(blocks * split / (2 * sm));
  cost.seconds = p.fixed_seconds + Max(hbm, compute) + waves * p.block_fixed_seconds;
  cost.binding =
      ValueOf(p.fixed_seconds) > std::max(ValueOf(compute), ValueOf(hbm))
          ? Binding::kLaunch
          : (ValueOf(compute) > ValueOf(hbm) ? Binding::kMatrixRate : Binding::kHbmBandwidth);
  ApplyRoofline(accelerator, rate, cost);
  return cost;
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_ATTENTION_FORMULA_H_
