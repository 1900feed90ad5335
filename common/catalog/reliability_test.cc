// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/reliability.h"

#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

Catalog Shipped() {
  return *Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets");
}

// Llama 3 405B ran at "higher than 90 %" effective training time on 16 384 H100s (arXiv:2407.21783,
// section 3.3.4) with 419 unexpected interruptions in 54 days: one in 3.1 hours.
TEST(Reliability, GoodputAtPublishedScaleIsInThePublishedRange) {
  const auto profile = FindReliability(Shipped(), "llama-3-h100");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto g = resilience::ExpectedGoodput(
      {.profile = *profile, .gpu_count = 16384, .spare_node_count = 32});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_NEAR(g->mean_seconds_between_interruptions / 3600, 54.0 * 24 / 419, 0.01);
  EXPECT_GT(g->useful_share, 0.90);
  EXPECT_LT(g->useful_share, 0.97);
}

// 1 024-GPU jobs on RSC-1 failed every 7.9 hours (arXiv:2410.21680).
TEST(Reliability, JobsOfRsc1FailAsOftenAsMeasured) {
  const auto profile = FindReliability(Shipped(), "rsc-1-a100");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto g = resilience::ExpectedGoodput({.profile = *profile, .gpu_count = 1024});
  EXPECT_NEAR(g->mean_seconds_between_interruptions / 3600, 7.9, 0.01);
}

TEST(Reliability, EveryShippedProfileIsValidAndHasItsSources) {
  std::ifstream file(std::string(SEXTANT_SOURCE_DIR) + "/datasets/reliability/SOURCES.md");
  const std::string sources{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> names = ReliabilityNames(Shipped());
  EXPECT_GE(names.size(), 3u);
  for (const std::string& name : names) {
    EXPECT_TRUE(FindReliability(Shipped(), name).ok()) << name;
    EXPECT_THAT(sources, testing::HasSubstr("| " + name + " | interruptions"));
    EXPECT_THAT(sources, testing::HasSubstr("| " + name + " | checkpoint_seconds"));
  }
}

TEST(Reliability, UnknownNamesAreNotFoundWithTheNearest) {
  const auto profile = FindReliability(Shipped(), "llama-3-h10");
  EXPECT_TRUE(absl::IsNotFound(profile.status()));
  EXPECT_THAT(std::string(profile.status().message()), testing::HasSubstr("llama-3-h100"));
}

}  // namespace
}  // namespace sextant::catalog
