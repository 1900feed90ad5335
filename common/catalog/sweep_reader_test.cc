// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/sweep_reader.h"

#include "common/base/violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<sweep::SweepSpec> Read(const std::string& text,
                                      const std::vector<std::string>& overrides = {}) {
  const auto catalog = Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets");
  EXPECT_TRUE(catalog.ok()) << catalog.status();
  return ReadSweep(text, "sweep.yaml", overrides, *catalog);
}

constexpr char kJob[] = R"(
job:
  model: llama-3.1-70b
  cluster: dgx-h100
  gpu_count: 64
  training: {global_batch_size: 512, sequence_length: 8192}
)";

TEST(SweepReader, EveryCombinationOutsideThePlanIsAScenario) {
  const auto spec = Read(std::string(kJob) + R"(
vary:
  gpu_count: {from: 64, to: 256, times: 2}
  cluster: [dgx-h100, dgx-a100]
  plan.tensor_parallel_size: [4, 8]
  plan.schedule: [1f1b, zb-h1]
  plan.micro_batch_size: all
limits: {memory_bytes: 70e9}
rank_by: tokens_per_second_per_gpu
pareto: [total_seconds, gpu_count]
top: 3
)");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->scenarios.size(), 6u);
  EXPECT_EQ(spec->scenarios[0].job.gpu_count, 64);
  EXPECT_EQ(spec->scenarios[1].job.cluster.name, "dgx-a100");
  EXPECT_EQ(spec->scenarios[5].job.gpu_count, 256);
  EXPECT_THAT(spec->plan.tensor_parallel_size.values, ElementsAre(4, 8));
  EXPECT_TRUE(spec->plan.micro_batch_size.all);
  EXPECT_TRUE(spec->plan.zero_stage.IsFixed());
  EXPECT_EQ(spec->plan.schedule.values.size(), 2u);
  EXPECT_THAT(spec->limits, ElementsAre(sweep::Limit{sweep::Metric::kMemoryBytes, 70e9}));
  EXPECT_EQ(spec->summary.top_count, 3u);
}

// 64 -> 7 GPUs: the batch does not divide, which is no fault of the file.
TEST(SweepReader, ACountThatThePlanOfTheFileDoesNotFitIsNoError) {
  const auto spec = Read(std::string(kJob) + "vary: {plan: all, gpu_count: [7, 12, 96]}\n");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->scenarios.size(), 3u);
  EXPECT_TRUE(spec->plan.tensor_parallel_size.all);
}

TEST(SweepReader, AJobFileIsASweepOverItsPlans) {
  const auto spec = Read(
      "model: llama-2-7b\ncluster: dgx-a100\ngpu_count: 8\n"
      "training: {global_batch_size: 64, sequence_length: 4096}\n",
      {"gpu_count=16"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->scenarios.size(), 1u);
  EXPECT_EQ(spec->scenarios[0].job.gpu_count, 16);
  EXPECT_TRUE(spec->plan.zero_stage.all);
}

TEST(SweepReader, EverythingWrongIsSaidAtOnce) {
  const auto spec = Read(std::string(kJob) + R"(
vary:
  plan.tensor_parallel_size: [4, eight]
  plan.schedule: [zigzag]
  gpu_count: {from: 8, until: 64}
  cluster: [dgx-h100, dgx-h10]
limits: {time_to_first_tokn_seconds: 0.3, total_seconds: soon}
pareto: [total_seconds]
tpo: 3
)");
  ASSERT_FALSE(spec.ok());
  for (const char* part :
       {"vary.plan.tensor_parallel_size", "eight", "zigzag", "until", "time_to_first_token_seconds",
        "limits.total_seconds", "tpo", "line"}) {
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr(part));
  }
}

TEST(SweepReader, UnknownNamesAreNotFoundWithTheNearest) {
  const auto spec = Read(std::string(kJob) + "vary: {cluster: [dgx-h10, dgx-a10]}\n");
  EXPECT_TRUE(absl::IsNotFound(spec.status())) << spec.status();
  EXPECT_EQ(base::ViolationsOf(spec.status()).size(), 2u);
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr("dgx-h100"));
}

TEST(SweepReader, TooManyCombinationsAreRefusedBeforeTheyAreMade) {
  const auto spec = Read(std::string(kJob) + R"(
vary:
  gpu_count: {from: 1, to: 4000, step: 1}
  training.global_batch_size: {from: 1, to: 4000, step: 1}
)");
  EXPECT_THAT(std::string(spec.status().message()), HasSubstr("at most 100000"));
}

}  // namespace
}  // namespace sextant::catalog
