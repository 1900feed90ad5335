// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/calibrator.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace sextant::calibration_service {
namespace {

constexpr char kDatasets[] = SEXTANT_SOURCE_DIR "/datasets";

std::string ReadText(const std::string& path) {
  std::ifstream stream(path);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

TEST(DefaultCalibrator, FitsTheShippedCollectives) {
  CalibrationInput input;
  input.initial = std::make_shared<const parameters::ParameterSet>();
  input.measurements.push_back(
      {"collectives.csv", ReadText(std::string(kDatasets) + "/measurements/collectives.csv")});
  const auto outcome = DefaultCalibrator(kDatasets)(input);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_NE(outcome->set->version(), input.initial->version());
  EXPECT_GT(outcome->used_row_count, 0);
  ASSERT_TRUE(outcome->held_out_mape_percent.has_value());
  ASSERT_TRUE(outcome->initial_held_out_mape_percent.has_value());
  EXPECT_EQ(outcome->publish,
            *outcome->held_out_mape_percent <= *outcome->initial_held_out_mape_percent);
  EXPECT_FALSE(outcome->report.empty());
}

TEST(DefaultCalibrator, RefusesATextThatIsNoMeasurement) {
  CalibrationInput input;
  input.initial = std::make_shared<const parameters::ParameterSet>();
  input.measurements.push_back({"notes.txt", "dear diary\n"});
  const auto outcome = DefaultCalibrator(kDatasets)(input);
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(outcome.status().message().find("notes.txt"), absl::string_view::npos)
      << outcome.status();
}

}  // namespace
}  // namespace sextant::calibration_service
