// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_TEST_ACCELERATORS_H_
#define SEXTANT_COMMON_OPERATOR_COST_TEST_ACCELERATORS_H_

#include "common/hardware/accelerator.h"

// Accelerators for tests and benchmarks, rounded from the datasheets so that goldens can be
// derived in one's head.
namespace sextant::operator_cost {

inline hardware::Accelerator TestAccelerator(const char* name, const char* architecture) {
  hardware::Accelerator a;
  a.name = name;
  a.architecture = architecture;
  a.pcie_bandwidth_bytes_per_second = 32e9;
  return a;
}

inline void SetRate(hardware::Accelerator& a, hardware::Precision precision, double rate) {
  a.matrix_flop_per_second[static_cast<size_t>(precision)] = rate;
}

inline hardware::Accelerator TestA100() {
  using hardware::Precision;
  hardware::Accelerator a = TestAccelerator("test-a100", "ampere");
  a.sm_count = 108;
  a.boost_clock_hz = 1.41e9;
  SetRate(a, Precision::kFp32, 19.5e12);
  SetRate(a, Precision::kTf32, 156e12);
  SetRate(a, Precision::kFp16, 312e12);
  SetRate(a, Precision::kBf16, 312e12);
  SetRate(a, Precision::kInt8, 624e12);
  a.vector_flop_per_second = 19.5e12;
  a.shared_memory_bytes_per_sm = 164 << 10;
  a.l2_bytes = 40 << 20;
  a.l2_bandwidth_bytes_per_second = 5e12;
  a.hbm_bytes = 80LL << 30;
  a.hbm_bandwidth_bytes_per_second = 2e12;
  return a;
}

inline hardware::Accelerator TestH100() {
  using hardware::Precision;
  hardware::Accelerator a = TestAccelerator("test-h100", "hopper");
  a.sm_count = 132;
  a.boost_clock_hz = 1.83e9;
  SetRate(a, Precision::kFp32, 67e12);
  SetRate(a, Precision::kTf32, 495e12);
  SetRate(a, Precision::kFp16, 990e12);
  SetRate(a, Precision::kBf16, 990e12);
  SetRate(a, Precision::kFp8, 1980e12);
  SetRate(a, Precision::kInt8, 1980e12);
  a.vector_flop_per_second = 67e12;
  a.shared_memory_bytes_per_sm = 228 << 10;
  a.l2_bytes = 50 << 20;
  a.l2_bandwidth_bytes_per_second = 5.5e12;
  a.hbm_bytes = 80LL << 30;
  a.hbm_bandwidth_bytes_per_second = 3.35e12;
  return a;
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_TEST_ACCELERATORS_H_
