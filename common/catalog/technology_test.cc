// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/technology.h"

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

TEST(Technology, ShippedTablesNameKnownAcceleratorsAndTheirSources) {
  const auto catalog = Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets");
  const auto t = DefaultTechnologies(*catalog);
  ASSERT_TRUE(t.ok()) << t.status();
  for (const auto& [name, count] : t->stacks_of_accelerator) {
    const auto found = catalog->FindAccelerator(name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(t->logic_of_architecture.count(found->architecture), 1u) << name;
  }
  std::stringstream sources;
  sources << std::ifstream(std::string(SEXTANT_SOURCE_DIR) + "/datasets/technology/SOURCES.md")
                 .rdbuf();
  for (const char* table : {"logic_rate", "logic_of_architecture", "memory",
                            "stacks_of_accelerator", "node_fabric", "network"}) {
    EXPECT_THAT(sources.str(), testing::HasSubstr(std::string("**") + table));
  }
}

// A later generation is never slower; stacks at their standard's rate exceed the products' by no
// more than half.
TEST(Technology, GenerationsGrow) {
  const auto catalog = Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets");
  const hardware::Technologies t = *DefaultTechnologies(*catalog);
  const auto grows = [](const auto& table, const std::vector<const char*>& names) {
    for (size_t i = 1; i < names.size(); ++i) {
      EXPECT_GT(table.find(names[i])->second, table.find(names[i - 1])->second) << names[i];
    }
  };
  grows(t.logic_rate, {"n16", "n12", "n10", "n7", "n5", "n3", "n2", "a16", "a14", "n1"});
  grows(t.node_fabric_bytes_per_second, {"nvlink2", "nvlink3", "nvlink4", "nvlink5", "nvlink6"});
  grows(t.network_bytes_per_second, {"edr", "hdr", "ndr", "xdr", "gdr"});
  const double h100 = 5 * t.memory.find("hbm3")->second.bandwidth_bytes_per_second /
                      catalog->FindAccelerator("h100-sxm5-80gb")->hbm_bandwidth_bytes_per_second;
  EXPECT_GE(h100, 1);
  EXPECT_LT(h100, 1.5);
}

}  // namespace
}  // namespace sextant::catalog
