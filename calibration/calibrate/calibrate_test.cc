// SPDX-License-Identifier: Apache-2.0
#include "calibration/calibrate/calibrate.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "calibration/evaluate/validate.h"
#include "calibration/measurements/read_measurements.h"
#include "common/collectives/collective_parameters.h"
#include "common/operator_cost/operator_cost.h"
#include "common/operator_cost/operator_parameters.h"
#include "common/orchestrator/framework_parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

using ::testing::HasSubstr;

const catalog::Catalog& Catalog() {
  static const auto& catalog =
      *new auto(catalog::Catalog::Open(absl::StrCat(SEXTANT_SOURCE_DIR, "/datasets")));
  return catalog.value();
}

// GEMM rows whose times are the model's own under a set that differs from the initial values.
Measurements SyntheticGemms(double peak_efficiency, absl::string_view role) {
  const auto accelerator = std::make_shared<const hardware::Accelerator>(
      Catalog().FindAccelerator("a100-sxm4-80gb").value());
  parameters::AcceleratorParameters truth;
  truth.shared["gemm.16bit.peak_efficiency"] = {peak_efficiency, std::nullopt};
  const parameters::ParameterSet set({.name = "truth"}, {{accelerator->name, truth}});
  const auto parameters = operator_cost::ResolveOperatorParameters(set, *accelerator, "");
  Measurements measurements;
  int id = 0;
  for (const int64_t m : {256, 512, 1024, 2048, 4096, 8192}) {
    for (const int64_t n : {1024, 2048, 4096, 8192, 12288}) {
      for (const int64_t k : {1024, 4096, 8192}) {
        OperatorRow row;
        row.facts.id = absl::StrCat("r", ++id);
        row.facts.suite = "synthetic";
        row.facts.family = "gemm";
        row.facts.accelerator = accelerator->name;
        row.facts.may_fit = role == "fit";
        row.accelerator = accelerator;
        row.op.shape = operator_cost::GemmShape{.m = m, .n = n, .k = k};
        row.measured_seconds =
            operator_cost::EstimateOperator(row.op, *accelerator, parameters).seconds;
        measurements.operators.push_back(row);
      }
    }
  }
  return measurements;
}

TEST(Calibrate, RecoversAKnownEfficiencyWithinTwoPercentAndImprovesHeldOutShapes) {
  const auto result = Calibrate(SyntheticGemms(0.70, "fit"), parameters::ParameterSet());
  ASSERT_TRUE(result.ok()) << result.status();
  const auto fitted =
      result->set->Find("a100-sxm4-80gb", "", "gemm.16bit.peak_efficiency").value_or(0);
  EXPECT_NEAR(fitted / 0.70, 1, 0.02);
  ASSERT_TRUE(result->report.held_out_mape_percent.has_value());
  EXPECT_LT(*result->report.held_out_mape_percent, *result->report.initial_mape_percent);
  EXPECT_TRUE(result->report.improved);
}

TEST(Calibrate, IsDeterministicAndRemembersItsParent) {
  const Measurements rows = SyntheticGemms(0.75, "fit");
  const parameters::ParameterSet initial;
  const auto one = Calibrate(rows, initial, {.fold_count = 0});
  const auto two = Calibrate(rows, initial, {.fold_count = 0});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->set->version(), two->set->version());
  EXPECT_THAT(one->set->provenance().parents, testing::ElementsAre(initial.version()));
  EXPECT_THAT(one->set->provenance().measurements,
              testing::ElementsAre("synthetic operators: 90 rows"));
}

TEST(Calibrate, NeverFitsRowsThatAreForValidation) {
  const auto result = Calibrate(SyntheticGemms(0.70, "validate"), parameters::ParameterSet());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Calibrate, RefusesRowsThatBeatPhysicsAndDuplicates) {
  Measurements rows = SyntheticGemms(0.70, "fit");
  rows.operators[0].measured_seconds = 1e-12;
  rows.operators.push_back(rows.operators[1]);
  const auto result = Calibrate(rows, parameters::ParameterSet(), {.fold_count = 0});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->report.refused.size(), 2u);
  EXPECT_THAT(result->report.refused[0].reason, HasSubstr("beats physics"));
  EXPECT_THAT(result->report.refused[1].reason, HasSubstr("duplicate"));
  EXPECT_THAT(CalibrationReportText(result->report), HasSubstr("beats physics"));
  EXPECT_THAT(CalibrationReportJson(result->report), HasSubstr("\"held_out_mape_percent\": null"));
}

TEST(DefaultParameterSet, IsPhysicalAndKnowsEveryKey) {
  const auto set = Catalog().FindParameterSet("default");
  ASSERT_TRUE(set.ok()) << set.status();
  std::vector<parameters::KeyedDescriptor> descriptors = operator_cost::OperatorDescriptors();
  for (const auto& more :
       {collectives::CollectiveDescriptors(), orchestrator::FrameworkDescriptors()}) {
    descriptors.insert(descriptors.end(), more.begin(), more.end());
  }
  EXPECT_TRUE(parameters::ValidateParameterSet(*set, descriptors).ok())
      << parameters::ValidateParameterSet(*set, descriptors);
}

}  // namespace
}  // namespace sextant::calibration
