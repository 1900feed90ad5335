// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_EXPERT_FFN_FORMULA_H_
#define SEXTANT_COMMON_OPERATOR_COST_EXPERT_FFN_FORMULA_H_

#include <array>
#include <cmath>

#include "common/operator_cost/gemm_formula.h"
#include "common/parameters/parameter_descriptor.h"

namespace sextant::operator_cost {

// Routed feed-forward network: two grouped GEMMs with tiles of their own efficiency, and the
// routing around them.
template <typename T>
struct ExpertFfnParameters {
  T peak_efficiency;
  T tile_half_reuse;
  T tile_fixed_seconds;
  T wave_quantisation;
  T hbm_efficiency;
  T sm_bandwidth_ratio;
  T permute_efficiency;
  T expert_seconds;
  T fixed_seconds;

  static ExpertFfnParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
  }
};

inline constexpr std::array<parameters::ParameterDescriptor, 9> kExpertFfnDescriptors = {{
    {"peak_efficiency", 0.7, 0.05, 1.0, "share of the matrix rate of a large grouped tile"},
    {"tile_half_reuse", 20, 0, 200, "reuse of a tile at which half of that rate is lost"},
    {"tile_fixed_seconds", 1.5e-6, 0, 20e-6, "seconds to fill and drain one tile"},
    {"wave_quantisation", 0.7, 0, 1, "share of a partly filled last wave that is waited for"},
    {"hbm_efficiency", 0.75, 0.1, 1.0, "share of the HBM bandwidth when reading experts"},
    {"sm_bandwidth_ratio", 1.5, 0.5, 8, "HBM bandwidth one SM can draw over its even share"},
    {"permute_efficiency", 0.4, 0.02, 1.0, "share of the HBM bandwidth when tokens are permuted"},
    {"expert_seconds", 0.02e-6, 0, 2e-6, "seconds per expert of this rank (routing tables)"},
    {"fixed_seconds", 20e-6, 1e-6, 300e-6, "device-visible seconds of all kernels"},
}};

// Experts of this rank that get at least one token when choices are uniform.
inline double TouchedExperts(const ExpertFfnShape& shape) {
  const double experts = static_cast<double>(shape.expert_count);
  const double local = experts / static_cast<double>(shape.expert_parallel_size);
  const double chance = static_cast<double>(shape.experts_per_token) / experts;
  // 1 - (1 - k/E)^t
  const double touched =
      local * -std::expm1(static_cast<double>(shape.token_count) * std::log1p(-chance));
  return chance >= 1 ? local : touched;
}

// Tokens of the busiest rank over the mean when the popularity of experts follows a power law with
// an exponent near 1, as in serving benchmarks that draw the tokens of each expert from x^-exponent
// on [1, 0.8 token_count]. Close to log-uniform: with X the upper end, mean X / ln X and squared
// coefficient of variation ln X / 2 - 1; a rank sums expert_count / ranks draws, and the largest of
// `ranks` normal sums lies sqrt(2 ln ranks) deviations above the mean.
inline double PowerLawImbalance(int64_t token_count, int64_t expert_count,
                                int64_t expert_parallel_size) {
  if (expert_parallel_size <= 1) return 1;
  const double ranks = static_cast<double>(expert_parallel_size);
  const double local = std::max(1.0, static_cast<double>(expert_count) / ranks);
  const double log_upper = std::log(std::max(1.0, 0.8 * static_cast<double>(token_count)));
  const double variation = std::sqrt(std::max(0.0, log_upper / 2 - 1));
  const double imbalance = 1 + std::sqrt(2 * std::log(ranks)) * variation / std::sqrt(local);
  // One expert has at most X tokens: ln X means.
  return std::clamp(imbalance, 1.0, std::max(1.0, std::min(ranks, log_upper)));
}

template <typename T>
Cost<T> ExpertFfnCost(const ExpertFfnShape& shape, Precision precision,
                      const hardware::Accelerator& accelerator, const ExpertFfnParameters<T>& p) {
  const double touched = std::max(1.0, std::round(TouchedExperts(shape)));
  const double pairs = static_cast<double>(shape.token_count) *
                       static_cast<double>(shape.experts_per_token) * shape.imbalance /
                       static_cast<double>(shape.expert_parallel_size);
  const double ffn = std::max(
      1.0, static_cast<double>(shape.ffn_size) / static_cast<double>(shape.tensor_parallel_size));
  const double local_experts = std::max(1.0, static_cast<double>(shape.expert_count) /
                                                 static_cast<double>(shape.expert_parallel_size));
  GemmShape first;
  first.m = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(pairs)));
  first.group_count = std::min(first.m, static_cast<int64_t>(touched));
  first.n = static_cast<int64_t>(ffn) * (shape.gated ? 2 : 1);
  first.k = shape.hidden_size;
  first.weight_precision = shape.weight_precision;
  first.block_scaled = shape.block_scaled;
  GemmShape second = first;
  second.n = shape.hidden_size;
  second.k = static_cast<int64_t>(ffn);
  const GemmParameters<T> gemm{p.peak_efficiency,
                               p.tile_half_reuse,
                               p.tile_fixed_seconds,
                               p.wave_quantisation,
                               p.hbm_efficiency,
                               p.sm_bandwidth_ratio,
                               T(1.1),
                               T(1.0),
                               T(1.0),
                               T(1e-6),
                               T(0.0)};
  const Cost<T> a = GemmCost(first, precision, accelerator, gemm);
  const Cost<T> b = GemmCost(second, precision, accelerator, gemm);
  Cost<T> cost;
  cost.flop_count = a.flop_count + b.flop_count;
  const double element = hardware::BytesPerElement(precision);
  const double permute_bytes =
      4 * pairs * static_cast<double>(shape.hidden_size) * 2 + 2 * pairs * ffn * 2;
  const double weight_bytes = touched *
                              (static_cast<double>(first.n) * static_cast<double>(first.k) +
                               static_cast<double>(second.n) * static_cast<double>(second.k)) *
                              hardware::BytesPerElement(shape.weight_precision);
  cost.hbm_bytes = weight_bytes + 2 * static_cast<double>(shape.token_count) /
                                      static_cast<double>(shape.expert_parallel_size) *
                                      static_cast<double>(shape.hidden_size) * element;
  const T permute =
      permute_bytes / (accelerator.hbm_bandwidth_bytes_per_second * p.permute_efficiency);
  cost.seconds =
      p.fixed_seconds + a.seconds + b.seconds + permute + local_experts * p.expert_seconds;
  cost.binding = ValueOf(p.fixed_seconds) > ValueOf(a.seconds) + ValueOf(b.seconds)
                     ? Binding::kLaunch
                     : a.binding;
  ApplyRoofline(accelerator, accelerator.MatrixRate(precision), cost);
  return cost;
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_EXPERT_FFN_FORMULA_H_
