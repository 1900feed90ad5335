// SPDX-License-Identifier: Apache-2.0
#include "services/parameter_store/parameter_store.h"

#include <cstdlib>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/base/violations.h"
#include "gtest/gtest.h"

namespace sextant::parameter_store {
namespace {

using parameters::AcceleratorParameters;
using parameters::ParameterSet;
using parameters::Provenance;

// A fresh directory for one test, removed with it.
class StoredSets : public testing::Test {
 protected:
  StoredSets() { EXPECT_NE(mkdtemp(directory_.data()), nullptr); }
  ~StoredSets() override { std::filesystem::remove_all(directory_); }

  std::string directory_ =
      (std::filesystem::temp_directory_path() / "sextant_store_XXXXXX").string();
};

SharedSet Uncalibrated() { return std::make_shared<const ParameterSet>(); }

// A legal set; sets of different names have different values, hence versions.
SharedSet Named(const std::string& name) {
  const parameters::KeyedDescriptor& first = AllDescriptors().front();
  AcceleratorParameters values;
  const double share = name == "one" ? 0.25 : 0.75;
  values.shared[first.key] = {.value = first.descriptor.lower +
                                       share * (first.descriptor.upper - first.descriptor.lower)};
  return std::make_shared<const ParameterSet>(
      Provenance{.name = name},
      std::map<std::string, AcceleratorParameters, std::less<>>{{"a100-sxm4-80gb", values}});
}

TEST(ParameterStore, ServesTheInitialSetUntilOneIsPushed) {
  const auto store = ParameterStore::Open(Uncalibrated(), "");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Active()->version(), Uncalibrated()->version());
  const SharedSet one = Named("one");
  ASSERT_TRUE((*store)->Push(one, false).ok());
  EXPECT_EQ((*store)->Active(), one);
  EXPECT_EQ((*store)->Preferred(Uncalibrated()->version())->version(), Uncalibrated()->version());
  EXPECT_EQ((*store)->Preferred("ffffffffffffffff"), one);
}

TEST_F(StoredSets, APushedSetAndTheOneBeforeSurviveARestart) {
  const SharedSet one = Named("one");
  const SharedSet two = Named("two");
  {
    const auto store = ParameterStore::Open(Uncalibrated(), directory_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Push(one, false).ok());
    ASSERT_TRUE((*store)->Push(two, false).ok());
  }
  const auto reopened = ParameterStore::Open(Uncalibrated(), directory_);
  ASSERT_TRUE(reopened.ok()) << reopened.status();
  EXPECT_EQ((*reopened)->Active()->version(), two->version());
  EXPECT_EQ((*reopened)->Active()->accelerators(), two->accelerators());
  ASSERT_TRUE((*reopened)->Rollback().ok());
  EXPECT_EQ((*reopened)->Active()->version(), one->version());
  EXPECT_EQ((*reopened)->Rollback().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ParameterStore, PushingTheSetInServiceAgainKeepsTheOneBefore) {
  const auto store = ParameterStore::Open(Uncalibrated(), "");
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE((*store)->Push(Named("one"), false).ok());
  ASSERT_TRUE((*store)->Push(Named("one"), false).ok());
  ASSERT_NE((*store)->Previous(), nullptr);
  EXPECT_EQ((*store)->Previous()->version(), Uncalibrated()->version());
}

TEST(ParameterStore, AnUnphysicalSetIsRefusedByNameAndChangesNothing) {
  const auto store = ParameterStore::Open(Uncalibrated(), "");
  ASSERT_TRUE(store.ok());
  AcceleratorParameters values;
  values.shared["gemm.16bit.peak_efficiency"] = {.value = 1.5};
  values.shared["gemm.16bit.fixed_seconds"] = {.value = std::numeric_limits<double>::quiet_NaN()};
  values.shared["no.such.parameter"] = {.value = 1};
  const auto bad = std::make_shared<const ParameterSet>(
      Provenance{.name = "bad"},
      std::map<std::string, AcceleratorParameters, std::less<>>{{"a100-sxm4-80gb", values}});
  const absl::Status refused = (*store)->Push(bad, false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::ViolationsOf(refused).size(), 3u) << refused;
  EXPECT_NE(refused.message().find("gemm.16bit.peak_efficiency"), absl::string_view::npos);
  EXPECT_EQ((*store)->Active()->version(), Uncalibrated()->version());
}

TEST(ParameterStore, ValidateOnlyChangesNothing) {
  const auto store = ParameterStore::Open(Uncalibrated(), "");
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE((*store)->Push(Named("one"), true).ok());
  EXPECT_EQ((*store)->Active()->version(), Uncalibrated()->version());
}

TEST_F(StoredSets, HalfAWriteIsNeverRead) {
  {
    const auto store = ParameterStore::Open(Uncalibrated(), directory_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->Push(Named("one"), false).ok());
  }
  // What a kill in the middle of the next push leaves behind.
  std::ofstream(directory_ + "/0123456789abcdef.json.17.new") << "{\"version\": \"01";
  const auto reopened = ParameterStore::Open(Uncalibrated(), directory_);
  ASSERT_TRUE(reopened.ok()) << reopened.status();
  EXPECT_EQ((*reopened)->Active()->version(), Named("one")->version());
}

TEST_F(StoredSets, TheAgeOfASetSurvivesARestart) {
  double pushed = 0;
  {
    const auto store = ParameterStore::Open(Uncalibrated(), directory_);
    ASSERT_TRUE(store.ok());
    const double started = (*store)->InServiceSinceSeconds();
    ASSERT_TRUE((*store)->Push(Named("one"), false).ok());
    pushed = (*store)->InServiceSinceSeconds();
    EXPECT_GE(pushed, started);
  }
  // As if the push had been a day ago.
  const auto file = std::filesystem::path(directory_) / "in_service";
  ASSERT_TRUE(std::filesystem::exists(file));
  std::filesystem::last_write_time(file,
                                   std::filesystem::last_write_time(file) - std::chrono::hours(24));
  const auto reopened = ParameterStore::Open(Uncalibrated(), directory_);
  ASSERT_TRUE(reopened.ok()) << reopened.status();
  EXPECT_NEAR((*reopened)->InServiceSinceSeconds(), pushed - 86400, 2);
}

TEST_F(StoredSets, ADamagedFileIsRefusedByItsPath) {
  {
    const auto store = ParameterStore::Open(Uncalibrated(), directory_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->Push(Named("one"), false).ok());
  }
  const std::string path = directory_ + "/" + Named("one")->version() + ".json";
  std::ofstream(path) << "{\"version\": \"0123456789abcdef\"}";
  const auto reopened = ParameterStore::Open(Uncalibrated(), directory_);
  ASSERT_FALSE(reopened.ok());
  EXPECT_EQ(reopened.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(reopened.status().message().find(path), absl::string_view::npos);
}

}  // namespace
}  // namespace sextant::parameter_store
