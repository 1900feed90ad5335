// SPDX-License-Identifier: Apache-2.0
#include "common/parameters/parameter_set.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::parameters {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ParameterDescriptor kDescriptors[] = {
    {"peak_efficiency", 0.8, 0.05, 1, "share of the peak matrix rate"},
    {"launch_seconds", 5e-6, 0, 1e-3, "fixed time per kernel"},
};

std::vector<KeyedDescriptor> Keyed() {
  return {{"gemm.peak_efficiency", kDescriptors[0]}, {"gemm.launch_seconds", kDescriptors[1]}};
}

ParameterSet SetWith(double efficiency, double override_efficiency) {
  AcceleratorParameters a100;
  a100.shared["gemm.peak_efficiency"] = {.value = efficiency};
  a100.profiles["cublas"]["gemm.peak_efficiency"] = {.value = override_efficiency};
  return ParameterSet({.name = "test"}, {{"a100", a100}});
}

TEST(ParameterSet, ProfileOverridesSharedAndUnknownProfileIsShared) {
  const ParameterSet set = SetWith(0.7, 0.9);
  EXPECT_EQ(set.Find("a100", "cublas", "gemm.peak_efficiency"), 0.9);
  EXPECT_EQ(set.Find("a100", "", "gemm.peak_efficiency"), 0.7);
  EXPECT_EQ(set.Find("a100", "triton", "gemm.peak_efficiency"), 0.7);
  EXPECT_EQ(set.Find("h100", "", "gemm.peak_efficiency"), std::nullopt);
  EXPECT_THAT(set.Profiles("a100"), ElementsAre("cublas"));
}

TEST(ParameterSet, BlockValuesFallToInitial) {
  const ParameterSet set = SetWith(0.7, 0.9);
  const ParameterSource source = ResolveSource(set, "a100", "");
  EXPECT_THAT(BlockValues(set, source, "cublas", "gemm", kDescriptors, 2), ElementsAre(0.9, 5e-6));
}

TEST(ParameterSet, VersionIsAHashOfTheContent) {
  EXPECT_EQ(SetWith(0.7, 0.9).version(), SetWith(0.7, 0.9).version());
  EXPECT_NE(SetWith(0.7, 0.9).version(), SetWith(0.7, 0.91).version());
  EXPECT_EQ(SetWith(0.7, 0.9).version().size(), 16u);
}

TEST(ParameterSet, UnfittedAcceleratorBorrowsFromItsDonor) {
  const ParameterSet set = SetWith(0.7, 0.9);
  EXPECT_EQ(ResolveSource(set, "a100-pcie", "a100").accelerator, "a100");
  EXPECT_TRUE(ResolveSource(set, "a100-pcie", "a100").transferred);
  EXPECT_FALSE(ResolveSource(set, "a100", "").transferred);
}

TEST(ValidateParameterSet, UnphysicalValuesAreRefusedByName) {
  EXPECT_TRUE(ValidateParameterSet(SetWith(0.7, 0.9), Keyed()).ok());
  const std::string above(ValidateParameterSet(SetWith(1.2, 0.0), Keyed()).message());
  EXPECT_THAT(above, HasSubstr("accelerators.a100.shared.gemm.peak_efficiency: is 1.2"));
  EXPECT_THAT(above, HasSubstr("profiles.cublas.gemm.peak_efficiency: is 0"));
  EXPECT_FALSE(
      ValidateParameterSet(SetWith(std::numeric_limits<double>::quiet_NaN(), 0.9), Keyed()).ok());
}

TEST(ValidateParameterSet, UnknownKeysAreRefused) {
  AcceleratorParameters a100;
  a100.shared["gemm.magic"] = {.value = 1};
  EXPECT_THAT(
      std::string(ValidateParameterSet(ParameterSet({}, {{"a100", a100}}), Keyed()).message()),
      HasSubstr("gemm.magic"));
}

// A version without values of its own is answered by what holds for its software, then by what all
// share; a name without a version likewise.
TEST(ParameterSet, AProfileFallsToItsFamilyThenToShared) {
  AcceleratorParameters values;
  values.shared["a"] = {.value = 1};
  values.profiles["engine-*"]["a"] = {.value = 2};
  values.profiles["engine-1.5"]["a"] = {.value = 3};
  const ParameterSet set({}, {{"chip", values}});
  EXPECT_EQ(set.Find("chip", "engine-1.5", "a"), 3);
  EXPECT_EQ(set.Find("chip", "engine-2.0rc1", "a"), 2);
  EXPECT_EQ(set.Find("chip", "engine", "a"), 2);
  EXPECT_EQ(set.Find("chip", "other-2.0", "a"), 1);
  EXPECT_EQ(set.Find("chip", "", "a"), 1);
  EXPECT_FALSE(set.HasProfile("chip", "engine-2.0rc1"));
}

}  // namespace
}  // namespace sextant::parameters
