// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_GEMM_FORMULA_H_
#define SEXTANT_COMMON_OPERATOR_COST_GEMM_FORMULA_H_

#include <array>
#include <cmath>

#include "common/operator_cost/formula.h"
#include "common/parameters/parameter_descriptor.h"

namespace sextant::operator_cost {

// Parameters of one precision class of matrix multiplication. Members in descriptor order.
template <typename T>
struct GemmParameters {
  T peak_efficiency;
  T tile_half_reuse;
  T tile_fixed_seconds;
  T wave_quantisation;
  T hbm_efficiency;
  T sm_bandwidth_ratio;
  T l2_efficiency;
  T overlap;
  T write_overlap;
  T split_seconds;
  T fixed_seconds;

  static GemmParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]};
  }
};

inline constexpr std::array<parameters::ParameterDescriptor, 11> kGemmDescriptors = {{
    {"peak_efficiency", 0.85, 0.05, 1.0,
     "share of the matrix rate that the largest tile reaches in a long inner loop"},
    {"tile_half_reuse", 20, 0, 200,
     "operand reuse m n / (m + n) of a tile at which half of that rate is lost"},
    {"tile_fixed_seconds", 1.5e-6, 0, 20e-6, "seconds to fill and drain the pipeline of one tile"},
    {"wave_quantisation", 0.7, 0, 1,
     "share of a partly filled last wave that is really waited for; 1 is a static tile schedule"},
    {"hbm_efficiency", 0.85, 0.2, 1.0, "share of the HBM bandwidth reached with all SMs busy"},
    {"sm_bandwidth_ratio", 3.5, 0.5, 10,
     "bandwidth one SM can draw (from L2 and HBM) over its even share of HBM's"},
    {"l2_efficiency", 1.1, 0.1, 3,
     "share of the stated L2 bandwidth; above 1 where CTAs share reads"},
    {"overlap", 0.8, 0, 1, "share of the shorter of compute and memory time that is hidden"},
    {"write_overlap", 0.7, 0, 1, "share of writing the result that runs beside later tiles"},
    {"split_seconds", 1.5e-6, 0, 20e-6,
     "seconds to reduce partial sums when the inner loop is split"},
    {"fixed_seconds", 3e-6, 0.3e-6, 50e-6, "device-visible seconds of launching one kernel"},
}};

// What of a GEMM does not depend on parameters.
struct GemmTile {
  int m;
  int n;
};

// CTA tiles of CUTLASS and cuBLAS tensor core kernels, largest reuse first; the flat ones are the
// (swapped) kernels for few rows.
inline constexpr std::array<GemmTile, 11> kGemmTiles = {{{256, 128},
                                                         {128, 256},
                                                         {128, 128},
                                                         {128, 64},
                                                         {64, 128},
                                                         {64, 64},
                                                         {32, 128},
                                                         {32, 64},
                                                         {16, 128},
                                                         {16, 64},
                                                         {64, 32}}};

// A tile, and into how many parts its inner loop is split.
struct GemmChoice {
  GemmTile tile = kGemmTiles[0];
  double tiles = 1;
  double split = 1;
};

// Sizes and rates of one GEMM, precomputed once per estimate.
struct GemmProblem {
  int64_t m = 0;  // rows of one group
  int64_t n = 0;
  double k = 0;
  double rows = 0;  // m and n as used in sums
  double columns = 0;
  double copies = 1;  // batch x groups
  double sm_count = 1;
  double element_bytes = 2;
  double weight_bytes = 2;
  double flop_per_second = 1;
  double l2_bandwidth = 1;
  double hbm_bandwidth = 1;
  double hbm_bytes = 0;  // least traffic
  double flop_count = 0;
  double output_bytes = 0;

  GemmProblem(const GemmShape& shape, Precision precision,
              const hardware::Accelerator& accelerator) {
    const double groups = static_cast<double>(shape.group_count);
    m = CeilDivide(shape.m, shape.group_count);
    n = shape.n;
    // Rows of 16 bytes feed the tensor cores; shorter remainders are padded.
    k = static_cast<double>(RoundUp(shape.k, 8));
    const double batch = static_cast<double>(shape.batch_count);
    copies = batch * groups;
    sm_count = accelerator.sm_count;
    element_bytes = hardware::BytesPerElement(precision);
    weight_bytes = hardware::BytesPerElement(shape.weight_precision);
    flop_per_second = accelerator.MatrixRate(precision);
    l2_bandwidth = accelerator.l2_bandwidth_bytes_per_second;
    hbm_bandwidth = accelerator.hbm_bandwidth_bytes_per_second;
    rows = static_cast<double>(m);
    columns = static_cast<double>(n);
    const double all_rows = static_cast<double>(shape.m) * batch;
    const double depth = static_cast<double>(shape.k);
    flop_count = 2 * all_rows * columns * depth;
    // 8-bit operands give 16-bit results; scales are 4 bytes per 128 elements.
    output_bytes = all_rows * columns * std::max(element_bytes, 2.0);
    const double scale_bytes = shape.block_scaled ? 4.0 / 128 : 0;
    hbm_bytes = all_rows * depth * (element_bytes + scale_bytes) +
                copies * columns * depth * (weight_bytes + scale_bytes / 128) + output_bytes;
  }
};

// Seconds of the kernel with the tile of `choice`, without the fixed part. O(1).
template <typename T>
T GemmKernelSeconds(const GemmProblem& problem, const GemmChoice& choice,
                    const GemmParameters<T>& p, T* compute_out, T* memory_out, T* l2_out) {
  const double tile_m = choice.tile.m;
  const double tile_n = choice.tile.n;
  const double ctas = choice.tiles * choice.split;
  // Waves: `busy` is the mean load of an SM in CTAs, `waves` the load of the fullest. Kinks.
  const double busy = ctas / problem.sm_count;
  const double waves = std::ceil(busy);
  const T load = waves <= 1 ? T(1.0) : busy + p.wave_quantisation * (waves - busy);
  constexpr double kLargestReuse = 256.0 * 128.0 / (256.0 + 128.0);
  const double reuse = tile_m * tile_n / (tile_m + tile_n);
  const T efficiency = p.peak_efficiency * (reuse / kLargestReuse) *
                       (kLargestReuse + p.tile_half_reuse) / (reuse + p.tile_half_reuse);
  const double depth = problem.k / choice.split;
  const double tile_seconds =
      2 * tile_m * tile_n * depth * problem.sm_count / problem.flop_per_second;
  const T compute = load * (tile_seconds / efficiency + p.tile_fixed_seconds);
  // Every CTA reads its operands through L2, padding not.
  const double cta_bytes = depth * (std::min(tile_m, problem.rows) * problem.element_bytes +
                                    std::min(tile_n, problem.columns) * problem.weight_bytes);
  const double l2_bytes = ctas * cta_bytes + problem.output_bytes;
  // Few SMs cannot draw the whole bandwidth. Kinks where they can.
  const double narrow_bytes = std::max(problem.sm_count, ctas) * cta_bytes;
  const T l2 = Max(l2_bytes / (problem.l2_bandwidth * p.l2_efficiency),
                   narrow_bytes / (problem.hbm_bandwidth * p.sm_bandwidth_ratio));
  const T hbm = problem.hbm_bytes / (problem.hbm_bandwidth * p.hbm_efficiency);
  const T memory = Max(hbm, l2);
  const T write = problem.output_bytes / (problem.hbm_bandwidth * p.hbm_efficiency);
  T seconds = Overlapped(compute, memory, p.overlap) + (T(1.0) - p.write_overlap) * write;
  if (choice.split > 1) {
    // Partial sums are fp32: written and read once through L2.
    seconds += p.split_seconds + 8.0 * choice.tiles * tile_m * tile_n * (choice.split - 1) /
                                     (problem.l2_bandwidth * p.l2_efficiency);
  }
  *compute_out = compute;
  *memory_out = hbm;
  *l2_out = l2;
  return seconds;
}

// The fastest (tile, split) by value. O(tile candidates).
inline GemmChoice ChooseGemmTile(const GemmProblem& problem, const GemmParameters<double>& p) {
  GemmChoice best;
  double best_seconds = HUGE_VAL;
  for (const GemmTile& tile : kGemmTiles) {
    GemmChoice choice{tile};
    choice.tiles = static_cast<double>(CeilDivide(problem.m, tile.m)) *
                   static_cast<double>(CeilDivide(problem.n, tile.n)) * problem.copies;
    double compute, memory, l2;
    double seconds = GemmKernelSeconds(problem, choice, p, &compute, &memory, &l2);
    if (seconds < best_seconds) {
      best_seconds = seconds;
      best = choice;
    }
    // Split the inner loop where the grid leaves SMs idle; parts of at least 128.
    if (2 * choice.tiles <= problem.sm_count) {
      choice.split = std::min(std::floor(problem.sm_count / choice.tiles),
                              std::max(1.0, std::floor(problem.k / 128)));
      if (choice.split > 1) {
        seconds = GemmKernelSeconds(problem, choice, p, &compute, &memory, &l2);
        if (seconds < best_seconds) {
          best_seconds = seconds;
          best = choice;
        }
      }
    }
  }
  return best;
}

template <typename T>
GemmParameters<double> ValuesOf(const GemmParameters<T>& p) {
  return {ValueOf(p.peak_efficiency),   ValueOf(p.tile_half_reuse), ValueOf(p.tile_fixed_seconds),
          ValueOf(p.wave_quantisation), ValueOf(p.hbm_efficiency),  ValueOf(p.sm_bandwidth_ratio),
          ValueOf(p.l2_efficiency),     ValueOf(p.overlap),         ValueOf(p.write_overlap),
          ValueOf(p.split_seconds),     ValueOf(p.fixed_seconds)};
}

// Seconds of one GEMM, batched or grouped. The tile is chosen on values (kink where the choice
// changes). O(tile candidates).
template <typename T>
Cost<T> GemmCost(const GemmShape& shape, Precision precision,
                 const hardware::Accelerator& accelerator, const GemmParameters<T>& p) {
  const GemmProblem problem(shape, precision, accelerator);
  const GemmChoice choice = ChooseGemmTile(problem, ValuesOf(p));
  T compute, memory, l2;
  Cost<T> cost;
  cost.seconds = p.fixed_seconds + GemmKernelSeconds(problem, choice, p, &compute, &memory, &l2);
  cost.flop_count = problem.flop_count;
  cost.hbm_bytes = problem.hbm_bytes;
  const double largest = std::max({ValueOf(compute), ValueOf(memory), ValueOf(l2)});
  cost.binding = ValueOf(p.fixed_seconds) > largest ? Binding::kLaunch
                 : ValueOf(compute) == largest      ? Binding::kMatrixRate
                 : ValueOf(memory) == largest       ? Binding::kHbmBandwidth
                                                    : Binding::kL2Bandwidth;
  ApplyRoofline(accelerator, problem.flop_per_second, cost);
  return cost;
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_GEMM_FORMULA_H_
