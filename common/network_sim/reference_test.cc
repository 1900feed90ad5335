// SPDX-License-Identifier: Apache-2.0
// Compares with the packet-level reference; see reference_cases/SOURCES.md.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/network_sim/case_reader.h"
#include "common/network_sim/simulate.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Fields of one CSV line; quotes only protect commas.
std::vector<std::string> SplitFields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// Column `name` of a CSV file by its first column.
std::map<std::string, double> ReadColumn(const std::string& path, const std::string& name) {
  std::map<std::string, double> values;
  size_t column = 0;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = SplitFields(line);
    if (column == 0) {
      while (column < fields.size() && fields[column] != name) ++column;
      EXPECT_LT(column, fields.size()) << path << " lacks " << name;
      continue;
    }
    double value = 0;
    if (column < fields.size() && absl::SimpleAtod(fields[column], &value)) {
      values[fields[0]] = value;
    }
  }
  return values;
}

struct Errors {
  double mean_percent = 0;
  double largest_percent = 0;
  int count = 0;
};

Errors Compare(const std::string& directory, const std::map<std::string, double>& expected,
               Fidelity fidelity) {
  Errors errors;
  for (const auto& [id, seconds] : expected) {
    const std::string path = absl::StrCat(directory, "/", id, ".json");
    const absl::StatusOr<NetworkCase> network_case = ParseNetworkCase(ReadFile(path), path);
    EXPECT_TRUE(network_case.ok()) << network_case.status();
    if (!network_case.ok()) continue;
    const absl::StatusOr<NetworkResult> result = SimulateNetworkCase(*network_case, fidelity);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok() || result->status != NetworkStatus::kOk) continue;
    const double error = 100 * std::abs(result->total_seconds / seconds - 1);
    EXPECT_LT(error, 8) << id << ": " << result->total_seconds << " against " << seconds;
    errors.mean_percent += error;
    errors.largest_percent = std::max(errors.largest_percent, error);
    ++errors.count;
  }
  errors.mean_percent /= std::max(1, errors.count);
  return errors;
}

TEST(ReferenceCases, FlowsAgreeWithPackets) {
  const std::string directory = SEXTANT_SOURCE_DIR "/common/network_sim/reference_cases";
  const Errors errors =
      Compare(directory, ReadColumn(directory + "/expected.csv", "seconds"), Fidelity::kFlow);
  EXPECT_EQ(errors.count, 28);
  EXPECT_LT(errors.mean_percent, 0.2);
  EXPECT_LT(errors.largest_percent, 1);
}

TEST(ReferenceCases, ClosedFormsAgreeWithPacketsWhereTheyApply) {
  const std::string directory = SEXTANT_SOURCE_DIR "/common/network_sim/reference_cases";
  const Errors errors =
      Compare(directory, ReadColumn(directory + "/expected.csv", "seconds"), Fidelity::kAnalytic);
  EXPECT_GE(errors.count, 10);
  EXPECT_LT(errors.largest_percent, 1);
}

TEST(ReferenceCases, FlowsAgreeWithPacketsOnTheWholeSet) {
  const char* root = std::getenv("SEXTANT_REFERENCE_DIR");
  if (root == nullptr) GTEST_SKIP() << "set SEXTANT_REFERENCE_DIR to the folder of reference data";
  const std::string network = absl::StrCat(root, "/network");
  const Errors errors = Compare(
      network + "/cases", ReadColumn(network + "/results.csv", "seconds_fair"), Fidelity::kFlow);
  EXPECT_GE(errors.count, 80);
  EXPECT_LT(errors.mean_percent, 1);
}

}  // namespace
}  // namespace sextant::network_sim
