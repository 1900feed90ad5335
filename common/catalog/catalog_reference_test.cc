// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/catalog/catalog.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

// The first column of every line of the reference file `name`; empty where there is no reference.
std::vector<std::string> FirstColumn(const std::string& name) {
  std::vector<std::string> values;
  const char* folder = std::getenv("SEXTANT_REFERENCE_DIR");
  if (folder == nullptr) return values;
  const auto text = ReadTextFile(absl::StrCat(folder, "/measurements/", name));
  EXPECT_TRUE(text.ok()) << text.status().message();
  if (!text.ok()) return values;
  for (absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    values.emplace_back(line.substr(0, line.find(',')));
  }
  return values;
}

TEST(CatalogReference, EveryClusterOfTheMeasurementsIsKnown) {
  const std::vector<std::string> ids = FirstColumn("clusters.csv");
  if (ids.empty()) GTEST_SKIP() << "SEXTANT_REFERENCE_DIR is not set: no measured clusters";
  const Catalog catalog = *Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  for (size_t i = 1; i < ids.size(); ++i) {
    EXPECT_TRUE(catalog.FindCluster(ids[i]).ok()) << ids[i];
  }
}

TEST(CatalogReference, MostModelsOfTheMeasurementsAreKnown) {
  const std::vector<std::string> names = FirstColumn("models.txt");
  if (names.empty()) GTEST_SKIP() << "SEXTANT_REFERENCE_DIR is not set: no measured models";
  const Catalog catalog = *Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  int known = 0;
  int total = 0;
  std::string unknown;
  for (const std::string& name : names) {
    if (name[0] == '#') continue;
    ++total;
    if (catalog.FindModel(name).ok()) {
      ++known;
    } else {
      absl::StrAppend(&unknown, name, "; ");
    }
  }
  RecordProperty("unknown_models", unknown);
  EXPECT_GE(known, total * 6 / 10) << "refused by name: " << unknown;
}

}  // namespace
}  // namespace sextant::catalog
