// SPDX-License-Identifier: Apache-2.0
#include "common/operator_cost/operator_parameters.h"

#include <set>
#include <string>

#include "common/operator_cost/operator_cost.h"
#include "common/operator_cost/test_accelerators.h"
#include "gtest/gtest.h"

namespace sextant::operator_cost {
namespace {

using parameters::AcceleratorParameters;
using parameters::ParameterSet;

ParameterSet SetOfA100() {
  AcceleratorParameters a100;
  a100.shared["gemm.16bit.peak_efficiency"] = {0.5, 0.01};
  a100.profiles["slow"]["gemm.16bit.peak_efficiency"] = {0.25, 0.01};
  a100.domain = {{"gemm.16bit", "m", 1, 1000}, {"gemm.16bit", "n", 1, 1000}};
  return ParameterSet({.name = "test"}, {{"test-a100", a100}});
}

TEST(OperatorDescriptors, AreUniqueAndTheirInitialValuesPhysical) {
  std::set<std::string> keys;
  for (const parameters::KeyedDescriptor& keyed : OperatorDescriptors()) {
    EXPECT_TRUE(keys.insert(keyed.key).second) << keyed.key;
    EXPECT_LE(keyed.descriptor.lower, keyed.descriptor.initial) << keyed.key;
    EXPECT_GE(keyed.descriptor.upper, keyed.descriptor.initial) << keyed.key;
  }
}

TEST(OperatorDescriptors, OfAFamilyAreAtMostTwelve) {
  for (int i = 0; i < kBlockCount; ++i) {
    EXPECT_LE(BlockDescriptors(static_cast<Block>(i)).size(), 12u);
  }
}

TEST(BlockProfileParameters, ExistInTheirBlock) {
  for (int i = 0; i < kBlockCount; ++i) {
    const Block block = static_cast<Block>(i);
    for (const absl::string_view name : BlockProfileParameters(block)) {
      bool found = false;
      for (const auto& d : BlockDescriptors(block)) found = found || d.name == name;
      EXPECT_TRUE(found) << BlockName(block) << "." << name;
    }
  }
}

TEST(ResolveOperatorParameters, TakesTheProfilesValueThenTheSharedThenTheInitial) {
  const auto index = static_cast<size_t>(Block::kGemm16Bit);
  const ParameterSet set = SetOfA100();
  EXPECT_EQ(ResolveOperatorParameters(set, TestA100(), "slow").gemm[index].peak_efficiency, 0.25);
  EXPECT_EQ(ResolveOperatorParameters(set, TestA100(), "else").gemm[index].peak_efficiency, 0.5);
  EXPECT_EQ(ResolveOperatorParameters(set, TestA100(), "").gemm[index].overlap,
            kGemmDescriptors[7].initial);
}

TEST(ResolveOperatorParameters, OfABlockWithoutValuesAreTheNearestOfItsFormula) {
  AcceleratorParameters a100;
  a100.shared["attention.decode.16bit.hbm_efficiency"] = {0.6, 0.01};
  a100.shared["attention.decode.wide.hbm_efficiency"] = {0.4, 0.01};
  const OperatorParameters<double> p = ResolveOperatorParameters(
      ParameterSet({.name = "test"}, {{"test-a100", a100}}), TestA100(), "");
  const auto efficiency = [&p](Block block) {
    return p.decode[static_cast<size_t>(block) - static_cast<size_t>(Block::kDecode)]
        .hbm_efficiency;
  };
  EXPECT_EQ(efficiency(Block::kUngroupedDecode), 0.6);
  EXPECT_EQ(efficiency(Block::kDecode8Bit), 0.6);
  EXPECT_EQ(efficiency(Block::kWideDecode), 0.4);
  // A latent is read by a formula's other branch: it has no nearest.
  EXPECT_EQ(efficiency(Block::kLatentDecode), kDecodeDescriptors[0].initial);
}

TEST(ResolveOperatorParameters, OfAnotherAcceleratorAreTransferredFromItsDonor) {
  hardware::Accelerator other = TestH100();
  other.parameter_donor = "test-a100";
  const auto p = ResolveOperatorParameters(SetOfA100(), other, "");
  EXPECT_TRUE(p.domain[static_cast<size_t>(Block::kGemm16Bit)].transferred);
  EXPECT_EQ(p.gemm[static_cast<size_t>(Block::kGemm16Bit)].peak_efficiency, 0.5);
  const auto own = ResolveOperatorParameters(SetOfA100(), TestA100(), "");
  EXPECT_FALSE(own.domain[static_cast<size_t>(Block::kGemm16Bit)].transferred);
}

TEST(OperatorEstimate, OutsideTheFittedDomainIsExtrapolated) {
  const auto p = ResolveOperatorParameters(SetOfA100(), TestA100(), "");
  Operator op{GemmShape{.m = 1000, .n = 10, .k = 10}, Precision::kBf16};
  EXPECT_FALSE(EstimateOperator(op, TestA100(), p).extrapolated);
  std::get<GemmShape>(op.shape).m = 1001;
  EXPECT_TRUE(EstimateOperator(op, TestA100(), p).extrapolated);
  op.precision = Precision::kTf32;  // a block without any fitted range
  EXPECT_TRUE(EstimateOperator(op, TestA100(), p).extrapolated);
}

}  // namespace
}  // namespace sextant::operator_cost
