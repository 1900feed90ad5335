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

// Tokens of the busiest rank over the mean when serving benchmarks draw the share of each expert
// from a power law of density x^-exponent: on [1, 0.8 token_count], or on [0.01, 2] where choices
// are fewer than experts. A rank sums expert_count / ranks draws, about a gamma variable of the
// same mean and variance; the largest of `ranks` lies near that variable's quantile, by Wilson and
// Hilferty (1931): mean (1 - 1/(9 shape) + z / (3 sqrt(shape)))^3 with z = 0.72 sqrt(2 ln ranks).
// The 0.72 is from drawing (8 to 256 experts, 2 to 256 ranks): within 15 % where a rank has 8
// experts or more. 1 where one rank has all experts.
inline double PowerLawImbalance(int64_t token_count, int64_t expert_count,
                                int64_t experts_per_token, int64_t expert_parallel_size,
                                double exponent) {
  if (expert_parallel_size <= 1) return 1;
  const double ranks = static_cast<double>(expert_parallel_size);
  const double experts = static_cast<double>(expert_count);
  const double tokens = static_cast<double>(token_count);
  const bool scarce = tokens * static_cast<double>(experts_per_token) <= experts;
  const double lower = scarce ? 0.01 : 1;
  const double upper = scarce ? 2 : std::max(2.0, 0.8 * tokens);
  // Moment of order p of the density; the limit of (u^q - l^q) / q at q = 0 is ln(u / l).
  const auto moment = [&](double p) {
    const double q = p + 1 - exponent;
    return std::abs(q) < 1e-6 ? std::log(upper / lower)
                              : (std::pow(upper, q) - std::pow(lower, q)) / q;
  };
  const double mean = moment(1) / moment(0);
  const double square = moment(2) / moment(0) / (mean * mean);
  const double local = std::max(1.0, experts / ranks);
  const double shape = local / std::max(1e-9, square - 1);
  const double z = 0.72 * std::sqrt(2 * std::log(ranks));
  const double largest =
      std::pow(std::max(0.0, 1 - 1 / (9 * shape) + z / (3 * std::sqrt(shape))), 3);
  // No rank has more than all tokens, none of its experts more than the largest draw.
  return std::clamp(largest, 1.0, std::max(1.0, std::min(ranks, upper / mean)));
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
