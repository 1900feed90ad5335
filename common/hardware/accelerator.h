// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_HARDWARE_ACCELERATOR_H_
#define SEXTANT_COMMON_HARDWARE_ACCELERATOR_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/hardware/precision.h"

namespace sextant::hardware {

// What a datasheet says of one accelerator (a GPU). Facts only: fitted numbers live in a
// ParameterSet. Rates are dense (no sparsity), at boost clock; bandwidths per direction.
struct Accelerator {
  std::string name;          // catalog id, for example "a100-sxm4-80gb"
  std::string architecture;  // "ampere", "hopper", ...
  // Accelerator whose fitted parameters apply where none were fitted for this one; empty: none.
  std::string parameter_donor;

  int sm_count = 0;
  double boost_clock_hz = 0;
  // Dense matrix rate per precision, multiply and add counted as two; 0 where it is lacking.
  std::array<double, kPrecisionCount> matrix_flop_per_second{};
  double vector_flop_per_second = 0;  // fp32, CUDA cores

  int64_t shared_memory_bytes_per_sm = 0;
  int64_t l2_bytes = 0;
  double l2_bandwidth_bytes_per_second = 0;
  int64_t hbm_bytes = 0;
  double hbm_bandwidth_bytes_per_second = 0;

  double nvlink_bandwidth_bytes_per_second = 0;  // all links of one GPU, per direction; 0: none
  double pcie_bandwidth_bytes_per_second = 0;    // per direction
  double power_watts = 0;                        // board limit

  double MatrixRate(Precision precision) const {
    return matrix_flop_per_second[static_cast<size_t>(precision)];
  }
  bool Supports(Precision precision) const { return MatrixRate(precision) > 0; }

  friend bool operator==(const Accelerator&, const Accelerator&) = default;
};

// Every rule that `accelerator` breaks: positive finite rates, at least one matrix rate, a name.
// Field paths are those of this struct.
absl::Status ValidateAccelerator(const Accelerator& accelerator);

}  // namespace sextant::hardware

#endif  // SEXTANT_COMMON_HARDWARE_ACCELERATOR_H_
