// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/economics.h"

#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

TEST(Economics, PricesAreOfKnownAcceleratorsAndHaveTheirSources) {
  const auto catalog = Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets");
  ASSERT_TRUE(catalog.ok());
  const auto economics = DefaultEconomics(*catalog);
  ASSERT_TRUE(economics.ok()) << economics.status();
  std::ifstream file(std::string(SEXTANT_SOURCE_DIR) + "/datasets/economics/SOURCES.md");
  const std::string sources{std::istreambuf_iterator<char>(file), {}};
  EXPECT_GE(economics->dollars_per_gpu_hour.size(), 5u);
  for (const auto& [accelerator, price] : economics->dollars_per_gpu_hour) {
    const auto found = catalog->FindAccelerator(accelerator);
    ASSERT_TRUE(found.ok()) << accelerator;
    EXPECT_EQ(found->name, accelerator);
    EXPECT_THAT(sources, testing::HasSubstr(accelerator));
  }
  // Idle below communication below memory below compute: the order of every published trace.
  const energy::PowerProfile& p = economics->power;
  EXPECT_TRUE(p.IsKnown());
  EXPECT_LT(p.idle.value, p.communication.value);
  EXPECT_LT(p.communication.value, p.memory.value);
  EXPECT_LT(p.memory.value, p.compute.value);
}

}  // namespace
}  // namespace sextant::catalog
