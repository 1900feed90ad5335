// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/calibrator.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "calibration/measurements/read_measurements.h"
#include "common/catalog/catalog.h"
#include "gtest/gtest.h"
#include "services/calibration/measurement_files.h"

namespace sextant::calibration_service {
namespace {

namespace v1 = sextant::calibration::v1;

constexpr char kDatasets[] = SEXTANT_SOURCE_DIR "/datasets";

std::string ReadText(const std::string& path) {
  std::ifstream stream(path);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

TEST(DefaultCalibrator, FitsTheShippedCollectives) {
  const auto catalog = catalog::Catalog::Open(kDatasets);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  v1::MeasurementFile file;
  file.set_file_name("collectives.csv");
  file.set_csv_text(ReadText(std::string(kDatasets) + "/measurements/collectives.csv"));
  const auto content = ReadMeasurementFile(file, *catalog);
  ASSERT_TRUE(content.ok()) << content.status();
  CalibrationInput input;
  input.initial = std::make_shared<const parameters::ParameterSet>();
  input.rows = content->rows;
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

TEST(ReadMeasurementFile, RefusesATextThatIsNoMeasurement) {
  const auto catalog = catalog::Catalog::Open(kDatasets);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  v1::MeasurementFile file;
  file.set_file_name("notes.txt");
  file.set_csv_text("dear diary\n");
  const auto content = ReadMeasurementFile(file, *catalog);
  EXPECT_EQ(content.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(content.status().message().find("notes.txt"), absl::string_view::npos)
      << content.status();
}

// The law: what is stored is what was read. Fitting stored rows is fitting the file.
TEST(ReadMeasurementFile, StoredRowsAreReadAsTheFileIs) {
  const auto catalog = catalog::Catalog::Open(kDatasets);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  for (const char* name : {"operators.csv", "collectives.csv", "training.csv", "inference.csv"}) {
    v1::MeasurementFile file;
    file.set_csv_text(ReadText(std::string(kDatasets) + "/measurements/" + name));
    calibration::Measurements direct;
    ASSERT_TRUE(calibration::ParseMeasurements(file.csv_text(), name, *catalog, &direct).ok());
    const auto content = ReadMeasurementFile(file, *catalog);
    ASSERT_TRUE(content.ok()) << content.status();
    const auto typed = TypedMeasurements(content->rows, *catalog);
    ASSERT_TRUE(typed.ok()) << typed.status();
    EXPECT_GT(typed->size(), 0u) << name;
    EXPECT_EQ(static_cast<int64_t>(typed->size()) + content->refused_count,
              static_cast<int64_t>(direct.size()))
        << name;
    for (size_t i = 0; i < std::min(typed->collectives.size(), direct.collectives.size()); ++i) {
      if (typed->collectives[i].facts.id != direct.collectives[i].facts.id) continue;
      EXPECT_EQ(typed->collectives[i].measured_seconds, direct.collectives[i].measured_seconds);
    }
  }
}

}  // namespace
}  // namespace sextant::calibration_service
