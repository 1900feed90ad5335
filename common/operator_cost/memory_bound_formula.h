// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_MEMORY_BOUND_FORMULA_H_
#define SEXTANT_COMMON_OPERATOR_COST_MEMORY_BOUND_FORMULA_H_

#include <array>

#include "common/operator_cost/formula.h"
#include "common/parameters/parameter_descriptor.h"

namespace sextant::operator_cost {

// Parameters of one class of operators that stream through memory.
template <typename T>
struct MemoryBoundParameters {
  T hbm_efficiency;
  T l2_efficiency;
  T resident_share;
  T row_bandwidth_ratio;
  T fixed_seconds;

  static MemoryBoundParameters FromArray(const T* v) { return {v[0], v[1], v[2], v[3], v[4]}; }
};

inline constexpr std::array<parameters::ParameterDescriptor, 5> kMemoryBoundDescriptors = {{
    {"hbm_efficiency", 0.85, 0.05, 1.0, "share of the HBM bandwidth reached by a large tensor"},
    {"l2_efficiency", 0.4, 0.02, 1.5, "share of the L2 bandwidth reached by a tensor held there"},
    {"resident_share", 0.5, 0.05, 2.0,
     "tensor bytes over L2 capacity up to which L2 serves them; from twice that on HBM does"},
    {"row_bandwidth_ratio", 5, 0.2, 100,
     "bandwidth that one row (one block) draws over an SM's even share of HBM"},
    {"fixed_seconds", 3e-6, 0.3e-6, 50e-6, "device-visible seconds of launching one kernel"},
}};

// Bytes moved per element of rows x columns when every operand is touched once. Weights of a norm
// and row statistics are left out.
struct MemoryBoundTraffic {
  double read_elements = 1;  // of the activation precision
  double write_elements = 1;
  double other_bytes = 0;  // fixed-precision bytes per element
  double flop_per_element = 1;
};

inline MemoryBoundTraffic TrafficOf(MemoryBoundKind kind) {
  switch (kind) {
    case MemoryBoundKind::kNorm:
      return {1, 1, 0, 6};
    case MemoryBoundKind::kNormBackward:
      return {2, 1, 0, 12};
    case MemoryBoundKind::kSoftmax:
      return {1, 1, 0, 6};
    case MemoryBoundKind::kRotary:
      return {1, 1, 0, 4};
    case MemoryBoundKind::kGatedActivation:
      return {2, 1, 0, 8};
    case MemoryBoundKind::kActivation:
      return {1, 1, 0, 8};
    case MemoryBoundKind::kActivationBackward:
      return {2, 1, 0, 12};
    case MemoryBoundKind::kAdd:
      return {2, 1, 0, 1};
    case MemoryBoundKind::kElementwise:
      return {1, 1, 0, 1};
    case MemoryBoundKind::kEmbedding:
      return {1, 1, 0, 1};
    // Logits are read for the maximum and sum, and read and written once more for the gradient.
    case MemoryBoundKind::kCrossEntropy:
      return {2, 1, 0, 10};
    // Adam with fp32 master weights: reads a gradient, master weight and two moments, writes the
    // three and the working copy.
    case MemoryBoundKind::kOptimizer:
      return {1, 1, 24, 12};
    case MemoryBoundKind::kCopy:
      return {1, 1, 0, 0};
    case MemoryBoundKind::kTranspose:
      return {1, 1, 0, 0};
  }
  return {};
}

template <typename T>
Cost<T> MemoryBoundCost(const MemoryBoundShape& shape, Precision precision,
                        const hardware::Accelerator& accelerator,
                        const MemoryBoundParameters<T>& p) {
  const MemoryBoundTraffic traffic = TrafficOf(shape.kind);
  const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  const double element_bytes = hardware::BytesPerElement(precision);
  const double bytes =
      elements *
      ((traffic.read_elements + traffic.write_elements) * element_bytes + traffic.other_bytes);
  Cost<T> cost;
  cost.flop_count = elements * traffic.flop_per_element;
  cost.hbm_bytes = bytes;
  // A tensor that the last kernel left in L2 is not read from HBM. Kinks at both ends of the ramp.
  const double fill = bytes / static_cast<double>(accelerator.l2_bytes);
  const T beyond = Min(T(1.0), Max(T(0.0), fill / p.resident_share - T(1.0)));
  const T l2 = bytes / (accelerator.l2_bandwidth_bytes_per_second * p.l2_efficiency);
  // Few rows cannot draw the whole bandwidth. Kink where they can.
  const T share = Min(T(1.0), p.row_bandwidth_ratio * (static_cast<double>(shape.rows) /
                                                       static_cast<double>(accelerator.sm_count)));
  const T hbm = bytes / (accelerator.hbm_bandwidth_bytes_per_second * p.hbm_efficiency);
  const T streaming = l2 + beyond * Max(T(0.0), hbm - l2);
  const T narrow = bytes / (accelerator.hbm_bandwidth_bytes_per_second * share);
  const T memory = Max(streaming, narrow);
  cost.seconds = p.fixed_seconds + memory;
  cost.binding = ValueOf(p.fixed_seconds) > ValueOf(memory) ? Binding::kLaunch
                 : ValueOf(beyond) > 0.5                    ? Binding::kHbmBandwidth
                                                            : Binding::kL2Bandwidth;
  ApplyRoofline(accelerator, accelerator.vector_flop_per_second, cost);
  return cost;
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_MEMORY_BOUND_FORMULA_H_
