// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/operator_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ceres/jet.h"
#include "common/operator_cost/operator_cost.h"
#include "common/operator_cost/operator_formula.h"
#include "common/operator_cost/random_operators.h"
#include "common/operator_cost/test_accelerators.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

using operator_cost::Block;
using operator_cost::BlockCost;
using operator_cost::BlockDescriptors;
using operator_cost::BlockOf;
using operator_cost::Operator;
using operator_cost::OperatorParameters;
using operator_cost::Precision;
using operator_cost::RandomOperators;
using parameters::ParameterSet;
using Jet = ceres::Jet<double, 12>;

OperatorParameters<double> Initial(const hardware::Accelerator& accelerator) {
  return operator_cost::ResolveOperatorParameters(ParameterSet(), accelerator, "");
}

std::vector<double> InitialValues(Block block) {
  std::vector<double> values;
  for (const auto& d : BlockDescriptors(block)) values.push_back(d.initial);
  return values;
}

Jet JetSeconds(const Operator& op, const std::vector<double>& values,
               const hardware::Accelerator& accelerator, const OperatorParameters<double>& others) {
  Jet jets[12];
  for (size_t i = 0; i < values.size(); ++i) jets[i] = Jet(values[i], static_cast<int>(i));
  return BlockCost(BlockOf(op), op, accelerator, static_cast<const Jet*>(jets), others).seconds;
}

// One formula, two scalars.
TEST(OperatorFormula, GivesTheSameSecondsWhetherServedOrFitted) {
  RandomOperators random(11);
  const hardware::Accelerator accelerator = operator_cost::TestH100();
  const OperatorParameters<double> parameters = Initial(accelerator);
  for (int i = 0; i < 5000; ++i) {
    const Operator op = random.Any();
    const double served = EstimateOperator(op, accelerator, parameters).seconds;
    const Jet fitted = JetSeconds(op, InitialValues(BlockOf(op)), accelerator, parameters);
    ASSERT_NEAR(fitted.a, served, 1e-12 * served);
  }
}

// Away from kinks (where the two one-sided differences disagree) the derivative is the difference
// quotient.
TEST(OperatorFormula, HasTheDerivativeOfItsDifferences) {
  RandomOperators random(12);
  const hardware::Accelerator accelerator = operator_cost::TestA100();
  const OperatorParameters<double> parameters = Initial(accelerator);
  int compared = 0;
  for (int i = 0; i < 2000; ++i) {
    const Operator op = random.Any();
    const Block block = BlockOf(op);
    const std::vector<double> values = InitialValues(block);
    const Jet at = JetSeconds(op, values, accelerator, parameters);
    for (size_t j = 0; j < values.size(); ++j) {
      const double step = 1e-5 * values[j];
      const auto moved = [&](double by) {
        std::vector<double> v = values;
        v[j] += by;
        return BlockCost(block, op, accelerator, v.data(), parameters).seconds;
      };
      const double up = (moved(step) - at.a) / step;
      const double down = (at.a - moved(-step)) / step;
      const double size = std::max({std::abs(up), std::abs(down), 1e-4 * at.a / values[j]});
      if (std::abs(up - down) > 1e-3 * size) continue;
      ++compared;
      ASSERT_NEAR(at.v[static_cast<int>(j)], (up + down) / 2, 2e-3 * size)
          << operator_cost::BlockName(block) << " " << BlockDescriptors(block)[j].name;
    }
  }
  EXPECT_GT(compared, 8000);
}

std::map<std::string, double> HiddenValues() {
  return {{"gemm.16bit.peak_efficiency", 0.72},
          {"gemm.16bit.hbm_efficiency", 0.75},
          {"gemm.16bit.fixed_seconds", 4.5e-6},
          {"memory_bound.elementwise.hbm_efficiency", 0.7},
          {"memory_bound.elementwise.fixed_seconds", 4e-6}};
}

ParameterSet HiddenSet() {
  parameters::AcceleratorParameters hidden;
  for (const auto& [key, value] : HiddenValues()) hidden.shared[key] = {value, std::nullopt};
  return ParameterSet({.name = "hidden"}, {{"test-a100", hidden}});
}

std::vector<OperatorFitRow> SyntheticRows(const ParameterSet& truth, const std::string& profile,
                                          uint32_t seed) {
  RandomOperators random(seed);
  const hardware::Accelerator accelerator = operator_cost::TestA100();
  const auto parameters = operator_cost::ResolveOperatorParameters(truth, accelerator, profile);
  std::vector<OperatorFitRow> rows;
  for (int i = 0; i < 800; ++i) {
    OperatorFitRow row;
    row.op = random.Gemm();
    if (i % 4 == 0) {
      row.op = {operator_cost::MemoryBoundShape{.kind = operator_cost::MemoryBoundKind::kAdd,
                                                .rows = random.Size(1, 65536),
                                                .columns = random.Size(128, 16384)},
                Precision::kBf16};
    }
    row.accelerator = accelerator;
    row.profile = profile;
    row.suite = "synthetic";
    row.measured_seconds = EstimateOperator(row.op, accelerator, parameters).seconds;
    rows.push_back(row);
  }
  return rows;
}

TEST(FitOperators, RecoversASyntheticSetWithinTwoPercent) {
  const auto fit =
      FitOperators(SyntheticRows(HiddenSet(), "", 21), operator_cost::TestA100(), ParameterSet());
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (const auto& [key, value] : HiddenValues()) {
    EXPECT_NEAR(fit->parameters.shared.at(key).value / value, 1, 0.02) << key;
  }
  for (const OperatorBlockFit& block : fit->blocks) {
    EXPECT_LT(block.mape_percent, 1) << block.block;
    EXPECT_EQ(block.refused_count, 0) << block.block;
  }
  const ParameterSet fitted({.name = "fitted"}, {{"test-a100", fit->parameters}});
  EXPECT_TRUE(ValidateParameterSet(fitted, operator_cost::OperatorDescriptors()).ok());
}

TEST(FitOperators, GivesAProfileItsOwnEfficiency) {
  parameters::AcceleratorParameters hidden;
  hidden.profiles["fast"]["gemm.16bit.peak_efficiency"] = {0.9, std::nullopt};
  hidden.profiles["slow"]["gemm.16bit.peak_efficiency"] = {0.6, std::nullopt};
  const ParameterSet truth({.name = "hidden"}, {{"test-a100", hidden}});
  std::vector<OperatorFitRow> rows = SyntheticRows(truth, "fast", 31);
  for (OperatorFitRow& row : SyntheticRows(truth, "slow", 32)) rows.push_back(row);
  const auto fit = FitOperators(rows, operator_cost::TestA100(), ParameterSet());
  ASSERT_TRUE(fit.ok()) << fit.status();
  const std::string key = "gemm.16bit.peak_efficiency";
  EXPECT_NEAR(fit->parameters.profiles.at("fast").at(key).value, 0.9, 0.02);
  EXPECT_NEAR(fit->parameters.profiles.at("slow").at(key).value, 0.6, 0.02);
}

TEST(FitOperators, RefusesRowsThatBeatPhysicsAndTellsTheDomain) {
  std::vector<OperatorFitRow> rows = SyntheticRows(HiddenSet(), "", 41);
  rows[1].measured_seconds = 1e-9;  // 16 multiply-adds of any shape take longer
  rows[2].measured_seconds = std::nan("");
  std::get<operator_cost::GemmShape>(rows[3].op.shape).m = 0;
  std::get<operator_cost::GemmShape>(rows[1].op.shape) = {.m = 4096, .n = 4096, .k = 4096};
  const auto fit = FitOperators(rows, operator_cost::TestA100(), ParameterSet());
  ASSERT_TRUE(fit.ok()) << fit.status();
  int refused = 0;
  for (const OperatorBlockFit& block : fit->blocks) refused += block.refused_count;
  EXPECT_EQ(refused, 3);
  const auto& domain = fit->parameters.domain;
  EXPECT_TRUE(std::any_of(domain.begin(), domain.end(), [](const parameters::DomainRange& r) {
    return r.block == "gemm.16bit" && r.dimension == "k" && r.minimum >= 1 && r.maximum <= 65536;
  }));
}

TEST(FitOperators, WithoutAUsableRowIsAnError) {
  EXPECT_FALSE(FitOperators({}, operator_cost::TestA100(), ParameterSet()).ok());
}

}  // namespace
}  // namespace sextant::calibration
