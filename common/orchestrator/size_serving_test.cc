// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/size_serving.h"

#include <memory>

#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::orchestrator {
namespace {

using ::testing::HasSubstr;
using workload::Job;

const auto kSet = std::make_shared<const parameters::ParameterSet>();

absl::StatusOr<ServingSize> Size(const Job& job, int64_t max_gpu_count) {
  LocalOperatorCost operators(kSet);
  LocalNetworkTime network(kSet);
  return SizeServing(job, max_gpu_count, operators, network);
}

Job Served(double requests_per_second) {
  Job job = LlamaServing();
  job.serving = serving::ServingLoad{.arrival = serving::Arrival::kPoisson,
                                     .requests_per_second = requests_per_second,
                                     .request_count = 200,
                                     .time_to_first_token_limit_seconds = 1,
                                     .inter_token_latency_limit_seconds = 0.05};
  return job;
}

// What is said to be enough is within its limits, and one replica fewer of it is not.
TEST(SizeServing, IsTheFewestThatMeetTheLimits) {
  for (const double rate : {1.0, 20.0, 60.0}) {
    const auto size = Size(Served(rate), 64);
    ASSERT_TRUE(size.ok()) << size.status();
    ASSERT_TRUE(size->meets_limits) << rate << ": " << size->reason;
    EXPECT_EQ(size->reason, "");
    const serving::ServingReport& report = *size->prediction.serving;
    EXPECT_LE(report.time_to_first_token_seconds.p90, 1);
    EXPECT_LE(report.inter_token_latency_seconds.p90, 0.05);
    EXPECT_FALSE(report.saturated);
    Job fewer = size->job;
    if (--fewer.plan.data_parallel_size == 0) continue;
    fewer.gpu_count -= size->job.gpu_count / size->job.plan.data_parallel_size;
    LocalOperatorCost operators(kSet);
    LocalNetworkTime network(kSet);
    const auto p = Predict(fewer, operators, network);
    ASSERT_TRUE(p.ok());
    EXPECT_TRUE(p->serving->saturated || p->serving->time_to_first_token_seconds.p90 > 1 ||
                p->serving->inter_token_latency_seconds.p90 > 0.05)
        << rate;
  }
}

TEST(SizeServing, MoreLoadNeedsNoFewerGpus) {
  int64_t before = 0;
  for (const double rate : {1.0, 10.0, 40.0, 80.0}) {
    const auto size = Size(Served(rate), 64);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_GE(size->job.gpu_count, before);
    before = size->job.gpu_count;
  }
}

// Nothing reads 13.5 GB of weights in 0.1 ms: the nearest is given, and said to miss.
TEST(SizeServing, WhatIsImpossibleIsSaidWithTheNearest) {
  Job job = Served(5);
  job.serving->inter_token_latency_limit_seconds = 1e-4;
  const auto size = Size(job, 8);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_FALSE(size->meets_limits);
  EXPECT_THAT(size->reason, HasSubstr("times the limit of 0.0001 s"));
  EXPECT_TRUE(size->prediction.memory.fits);
  EXPECT_EQ(size->job.plan.tensor_parallel_size, 8);  // the fastest token
}

TEST(SizeServing, AModelThatNoReplicaHoldsIsRefusedAsThat) {
  Job job = Served(5);
  job.model = LlamaModel(16384, 126, 128, 8, 53248);  // 810 GB in 16 bits
  const absl::Status status = Size(job, 8).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no replica of at most 8 GPUs"));
}

TEST(SizeServing, NeedsARate) {
  Job job = Served(5);
  job.serving->arrival = serving::Arrival::kClosedLoop;
  EXPECT_EQ(Size(job, 8).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Size(Served(5), 0).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sextant::orchestrator
