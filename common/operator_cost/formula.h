// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_FORMULA_H_
#define SEXTANT_COMMON_OPERATOR_COST_FORMULA_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/hardware/accelerator.h"
#include "common/operator_cost/operator.h"

// What the formulas of all operator families share. A formula is one template on the scalar T of
// its fitted parameters: double serves, an autodiff type fits. Choices (tile, split, roofline
// side) are made on values and marked "kink".
namespace sextant::operator_cost {

// Value of a scalar: itself, or the real part of an autodiff type with a member `a`.
template <typename T>
double ValueOf(const T& x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return x.a;
  }
}

// Answer of a family's formula.
template <typename T>
struct Cost {
  T seconds;
  Binding binding = Binding::kMatrixRate;
  double flop_count = 0;
  double hbm_bytes = 0;  // least traffic
  double roofline_seconds = 0;
};

// The larger of two values. Kink where they meet.
template <typename T>
T Max(const T& a, const T& b) {
  return ValueOf(a) < ValueOf(b) ? b : a;
}
template <typename T>
T Min(const T& a, const T& b) {
  return ValueOf(b) < ValueOf(a) ? b : a;
}

// Two resources used side by side: `overlap` 1 hides the shorter one fully, 0 not at all.
template <typename T>
T Overlapped(const T& a, const T& b, const T& overlap) {
  return Max(a, b) + (T(1.0) - overlap) * Min(a, b);
}

inline int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
inline int64_t RoundUp(int64_t a, int64_t b) { return CeilDivide(a, b) * b; }

// Raises `cost.seconds` to the roofline where parameters would beat it. Kink.
template <typename T>
void ApplyRoofline(const hardware::Accelerator& accelerator, double flop_per_second,
                   Cost<T>& cost) {
  cost.roofline_seconds = std::max(cost.flop_count / flop_per_second,
                                   cost.hbm_bytes / accelerator.hbm_bandwidth_bytes_per_second);
  if (ValueOf(cost.seconds) < cost.roofline_seconds) cost.seconds = T(cost.roofline_seconds);
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_FORMULA_H_
