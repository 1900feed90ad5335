// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/quantity.h"

#include <cmath>

#include "gtest/gtest.h"

namespace sextant::cli {
namespace {

TEST(FormatSeconds, ChoosesTheUnitThatKeepsFourDigits) {
  EXPECT_EQ(FormatSeconds(18.13), "18.13 s");
  EXPECT_EQ(FormatSeconds(0.0262), "26.20 ms");
  EXPECT_EQ(FormatSeconds(5.31e-6), "5.310 us");
  EXPECT_EQ(FormatSeconds(2e-12), "0.002 ns");
  EXPECT_EQ(FormatSeconds(0), "0 s");
}

TEST(FormatSeconds, RoundsUpIntoTheNextUnit) { EXPECT_EQ(FormatSeconds(0.99999), "1.000 s"); }

TEST(FormatSeconds, WhatIsNoTimeIsADash) { EXPECT_EQ(FormatSeconds(std::nan("")), "-"); }

TEST(FormatBytes, UsesBinaryUnits) {
  EXPECT_EQ(FormatBytes(85899345920), "80.00 GiB");  // 80 x 2^30
  EXPECT_EQ(FormatBytes(512), "512 B");
}

TEST(FormatPercent, IsSigned) {
  EXPECT_EQ(FormatPercent(4.24), "+4.2 %");
  EXPECT_EQ(FormatPercent(-0.5), "-0.5 %");
}

}  // namespace
}  // namespace sextant::cli
