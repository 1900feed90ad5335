// SPDX-License-Identifier: Apache-2.0
#include "common/hardware/accelerator.h"

#include <limits>

#include "common/base/violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::hardware {
namespace {

using ::testing::HasSubstr;

Accelerator ValidAccelerator() {
  Accelerator a;
  a.name = "test";
  a.sm_count = 108;
  a.boost_clock_hz = 1.41e9;
  a.matrix_flop_per_second[static_cast<size_t>(Precision::kBf16)] = 312e12;
  a.vector_flop_per_second = 19.5e12;
  a.shared_memory_bytes_per_sm = 164 * 1024;
  a.l2_bytes = 40 << 20;
  a.l2_bandwidth_bytes_per_second = 5e12;
  a.hbm_bytes = 80LL << 30;
  a.hbm_bandwidth_bytes_per_second = 2.039e12;
  a.pcie_bandwidth_bytes_per_second = 32e9;
  return a;
}

TEST(Accelerator, ValidOnePasses) {
  EXPECT_TRUE(ValidateAccelerator(ValidAccelerator()).ok());
  EXPECT_TRUE(ValidAccelerator().Supports(Precision::kBf16));
  EXPECT_FALSE(ValidAccelerator().Supports(Precision::kFp8));
}

TEST(Accelerator, NegativeAndNotANumberAreNamedTogether) {
  Accelerator a = ValidAccelerator();
  a.hbm_bandwidth_bytes_per_second = -1;
  a.boost_clock_hz = std::numeric_limits<double>::quiet_NaN();
  const absl::Status status = ValidateAccelerator(a);
  EXPECT_EQ(base::ViolationsOf(status).size(), 2u);
  EXPECT_THAT(std::string(status.message()), HasSubstr("hbm_bandwidth_bytes_per_second"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("boost_clock_hz"));
}

TEST(Accelerator, WithoutAnyMatrixRateIsRefused) {
  Accelerator a = ValidAccelerator();
  a.matrix_flop_per_second = {};
  EXPECT_THAT(std::string(ValidateAccelerator(a).message()), HasSubstr("matrix_flop_per_second"));
}

TEST(Precision, NamesRoundTrip) {
  for (const std::string& name : PrecisionNames()) {
    ASSERT_TRUE(ParsePrecision(name).ok()) << name;
    EXPECT_EQ(PrecisionName(*ParsePrecision(name)), name);
  }
  EXPECT_THAT(std::string(ParsePrecision("fp17").status().message()), HasSubstr("fp16"));
}

}  // namespace
}  // namespace sextant::hardware
