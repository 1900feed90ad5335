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
  T key_tile_seconds;
  T tile_fixed_seconds;
  T tail;
  T hbm_efficiency;
  T overlap;
  T packed_share;
  T fixed_seconds;

  static PrefillParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
  }
  template <typename U>
  PrefillParameters<U> As() const {
    return {U(peak_efficiency), U(key_tile_seconds), U(tile_fixed_seconds), U(tail),
            U(hbm_efficiency),  U(overlap),          U(packed_share),       U(fixed_seconds)};
  }
};

inline constexpr std::array<parameters::ParameterDescriptor, 8> kPrefillDescriptors = {{
    {"peak_efficiency", 0.7, 0.05, 1.0, "share of the matrix rate inside one pair of tiles"},
    {"key_tile_seconds", 0.2e-6, 0, 5e-6,
     "seconds of softmax, not hidden, per pair of a query tile and a key tile of 128 x 128"},
    {"tile_fixed_seconds", 2e-6, 0, 50e-6, "seconds to start and finish one tile of queries"},
    {"tail", 0.5, 0, 1.5, "share of the longest tile that is waited for after the even load"},
    {"hbm_efficiency", 0.7, 0.05, 1.0, "share of the HBM bandwidth"},
    {"overlap", 0.5, 0, 1,
     "share of the shorter of compute and memory time that is hidden; cache writes and packing run "
     "as kernels of their own"},
    {"packed_share", 0.5, 0, 1,
     "share of a lone query token's work that is packed with the heads that share its keys"},
    {"fixed_seconds", 5e-6, 0.3e-6, 100e-6, "device-visible seconds of launching"},
}};

// Backward attention runs 2.5 times the forward's arithmetic (five products instead of two) at a
// lower rate. FlashAttention-2 (Dao 2023, section 1): up to 73 % of the A100's matrix rate forward
// and 63 % backward, a ratio of 0.86. No measured kernel to fit it on.
template <typename T>
struct BackwardParameters {
  T efficiency_ratio;
  T fixed_seconds;

  static BackwardParameters FromArray(const T* v) { return {v[0], v[1]}; }
};

inline constexpr std::array<parameters::ParameterDescriptor, 2> kBackwardDescriptors = {{
    {"efficiency_ratio", 0.86, 0.2, 1.2, "rate of attention backward over forward"},
    {"fixed_seconds", 10e-6, 0.3e-6, 100e-6, "device-visible seconds of launching (three kernels)"},
}};

// Attention of one new token per sequence against cached keys and values, split over blocks of keys
// (FlashDecoding). The query heads that share a key head are served by one block of threads, unless
// a library has no kernel for so many.
template <typename T>
struct DecodeParameters {
  T hbm_efficiency;
  T compute_efficiency;
  T query_efficiency;
  T key_seconds;
  T block_seconds;
  T tail;
  T blocks_per_sm;
  T combine_seconds;
  T split_seconds;
  T pack_seconds;
  T wide_group_unshared;
  T fixed_seconds;

  static DecodeParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]};
  }
};

inline constexpr std::array<parameters::ParameterDescriptor, 12> kDecodeDescriptors = {{
    {"hbm_efficiency", 0.8, 0.05, 1.0, "share of the HBM bandwidth when reading a long cache"},
    {"compute_efficiency", 0.1, 0.005, 1.0, "share of the matrix rate"},
    {"query_efficiency", 0.4, 0.02, 1.0,
     "share of the HBM bandwidth for queries and results, beside no other work"},
    {"key_seconds", 20e-9, 0.2e-9, 1e-6,
     "seconds of one block per key of head size 128 after its first tile, one after another"},
    {"block_seconds", 3.5e-6, 0, 50e-6,
     "seconds to start a block, walk its first tile of keys and finish"},
    {"tail", 0.6, 0, 1.5, "share of a block's walk that is waited for after the even load"},
    {"blocks_per_sm", 1.5, 0, 8,
     "blocks per SM up to which the cache of a sequence is split; 0 where kernels do not split"},
    {"combine_seconds", 4e-6, 0, 20e-6, "seconds of launching the kernel that combines splits"},
    {"split_seconds", 0.15e-6, 0, 2e-6, "seconds of combining per split"},
    {"pack_seconds", 2e-6, 0, 20e-6,
     "seconds of the copies that bring the heads of a group together, where a batch needs them"},
    {"wide_group_unshared", 0.1, 0, 1,
     "share of work done head by head when more than 32 query heads share a key head"},
    {"fixed_seconds", 7e-6, 0.3e-6, 100e-6, "device-visible seconds of launching"},
}};

// Query heads per key head beyond which some libraries have no kernel that shares the reads
// (XQA in TensorRT-LLM).
inline constexpr int64_t kWidestSharedGroup = 32;

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

// Tiles of 128 queries, each walking over the tiles of 128 keys that it may see. Kernel time is the
// even load of the SMs plus what the longest tile sticks out (greedy scheduling), or that tile
// alone. Tiles that the causal mask halves are computed whole. O(1).
template <typename T>
Cost<T> PrefillCost(const AttentionShape& shape, Precision precision,
                    const hardware::Accelerator& accelerator, const PrefillParameters<T>& p) {
  constexpr double kTile = 128;
  Cost<T> cost;
  cost.flop_count = FlopCount(shape);
  cost.hbm_bytes = LeastBytes(shape, precision);
  const double rate = accelerator.MatrixRate(precision);
  const double sm_count = accelerator.sm_count;
  const double queries = static_cast<double>(shape.query_tokens);
  const double keys = static_cast<double>(shape.key_tokens);
  const double query_tiles = std::ceil(queries / kTile);
  const double tiles =
      query_tiles * static_cast<double>(shape.batch_size) * static_cast<double>(shape.head_count);
  const double rows = std::min(kTile, 64 * std::ceil(queries / 64));
  const double longest_keys = std::ceil(keys / kTile);
  const double mean_keys =
      shape.causal ? std::max(1.0, longest_keys - (query_tiles - 1) / 2) : longest_keys;
  const double pair_flop_count = 4 * rows * kTile * static_cast<double>(shape.head_size);
  const T pair_seconds =
      pair_flop_count * sm_count / rate / p.peak_efficiency + p.key_tile_seconds * (rows / kTile);
  const T longest = longest_keys * pair_seconds + p.tile_fixed_seconds;
  T even = (tiles / sm_count) * (mean_keys * pair_seconds + p.tile_fixed_seconds);
  if (shape.query_tokens == 1 && shape.latent_size == 0) {
    const double unpacked_share =
        static_cast<double>(shape.kv_head_count) / static_cast<double>(shape.head_count);
    even *= T(1.0) - p.packed_share * (1 - unpacked_share);
  }
  // Kink where the grid outgrows the SMs.
  const T compute = Max(longest, even + p.tail * longest);
  const T hbm = cost.hbm_bytes / (accelerator.hbm_bandwidth_bytes_per_second * p.hbm_efficiency);
  cost.seconds = p.fixed_seconds + Overlapped(compute, hbm, p.overlap);
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

// Blocks of threads, each over one key head's share of one sequence. The cache is split until the
// SMs hold `blocks_per_sm` blocks, by whole tiles of 128 keys and at most 128 times
// (FlashDecoding's heuristic, made continuous so that its parameter has a derivative); splits are
// combined by a second kernel. A block walks its tiles one after another, which bounds a short
// grid; the bandwidth bounds a long one, and an unsplit grid also waits for the walk that sticks
// out. O(1).
template <typename T>
Cost<T> DecodeCost(const AttentionShape& shape, Precision precision,
                   const hardware::Accelerator& accelerator, const DecodeParameters<T>& p) {
  constexpr double kTile = 128;
  constexpr double kMostSplits = 128;
  Cost<T> cost;
  cost.flop_count = FlopCount(shape);
  cost.hbm_bytes = LeastBytes(shape, precision);
  const double rate = accelerator.MatrixRate(precision);
  const double sm_count = accelerator.sm_count;
  const bool latent = shape.latent_size > 0;
  const double heads = static_cast<double>(shape.head_count);
  const double kv_heads = latent ? 1 : static_cast<double>(shape.kv_head_count);
  const double batch = static_cast<double>(shape.batch_size);
  const double tiles = std::ceil(static_cast<double>(shape.key_tokens) / kTile);
  const bool wide = !latent && shape.head_count > kWidestSharedGroup * shape.kv_head_count;
  const T readers = wide ? kv_heads + p.wide_group_unshared * (heads - kv_heads) : T(kv_heads);

  const T wanted = p.blocks_per_sm * sm_count / (batch * readers);
  const T most_splits = Min(T(kMostSplits), Max(T(1.0), wanted));  // kinks at both ends
  const T tiles_per_block = Max(T(1.0), tiles / most_splits);
  const T split = tiles / tiles_per_block;
  const T load = batch * readers * split / sm_count;
  const double waves = std::ceil(ValueOf(load) - 1e-9);
  // A key of a latent is one row of that width, not a key and a value.
  const double width =
      (latent ? static_cast<double>(shape.latent_size) / 2 : static_cast<double>(shape.head_size)) /
      128;
  const T walk = (tiles_per_block - T(1.0)) * (kTile * width) * p.key_seconds;
  const double key_value_bytes = KeyValueBytes(shape);
  const T hbm = key_value_bytes / (accelerator.hbm_bandwidth_bytes_per_second * p.hbm_efficiency);
  const T l2 = readers * (key_value_bytes / kv_heads / accelerator.l2_bandwidth_bytes_per_second);
  const T compute = cost.flop_count / (rate * p.compute_efficiency);
  const T blocks = waves * p.block_seconds;
  const T even = Max(Max(hbm, l2), Max(compute, blocks));
  // Grids that fit on the SMs at once, split ones among them, have no wave left over.
  const T left_over = Min(T(1.0), Max(T(0.0), load - Max(T(1.0), p.blocks_per_sm)));
  const T chain = blocks + walk;
  const T body = Max(chain, even + p.tail * left_over * walk);
  const bool packed = heads > kv_heads && kv_heads > 1 && batch > 1;
  const T combine =
      p.combine_seconds * Min(T(1.0), split - T(1.0)) + p.split_seconds * (split - T(1.0));
  const double query_bytes = cost.hbm_bytes - key_value_bytes;
  const T launch = p.fixed_seconds + combine + (packed ? p.pack_seconds : T(0.0));
  cost.seconds = launch + body +
                 query_bytes / (accelerator.hbm_bandwidth_bytes_per_second * p.query_efficiency);
  const double longest = ValueOf(body);
  cost.binding = ValueOf(launch) > longest      ? Binding::kLaunch
                 : ValueOf(hbm) >= longest      ? Binding::kHbmBandwidth
                 : ValueOf(l2) >= longest       ? Binding::kL2Bandwidth
                 : ValueOf(hbm) > 0.5 * longest ? Binding::kHbmBandwidth
                                                : Binding::kMatrixRate;
  ApplyRoofline(accelerator, rate, cost);
  return cost;
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_ATTENTION_FORMULA_H_
