// SPDX-License-Identifier: Apache-2.0
#include "common/resilience/checkpoint.h"

#include "common/orchestrator/test_jobs.h"
#include "gtest/gtest.h"

namespace sextant::resilience {
namespace {

workload::Job Training() { return orchestrator::LlamaTraining(); }

TEST(Checkpoint, HoldsFourteenBytesOfEachParameterForAdamAndTenForSgd) {
  workload::Job job = Training();
  const double parameters = static_cast<double>(workload::CountParameters(job.model).Total());
  EXPECT_NEAR(CheckpointBytes(job) / (14 * parameters), 1, 0.01);  // tables are padded
  std::get<workload::TrainingWorkload>(job.workload).optimizer = workload::Optimizer::kSgd;
  EXPECT_NEAR(CheckpointBytes(job) / (10 * parameters), 1, 0.01);
}

TEST(Checkpoint, OfAdaptersIsSmallAndDoesNotDependOnThePlan) {
  workload::Job job = Training();
  const double all = CheckpointBytes(job);
  std::get<workload::TrainingWorkload>(job.workload).lora_rank = 8;
  EXPECT_LT(CheckpointBytes(job), 0.05 * all);
  job = Training();
  job.plan.data_parallel_size *= 2;
  job.gpu_count *= 2;
  job.plan.zero_stage = 3;
  EXPECT_EQ(CheckpointBytes(job), all);
}

TEST(Checkpoint, TakesTheBytesOverWhatAllGpusWriteOrTheProfilesSeconds) {
  const workload::Job job = Training();
  ReliabilityProfile profile{.checkpoint_seconds = 33};
  EXPECT_EQ(CheckpointSeconds(job, profile), 33);
  profile.checkpoint_bytes_per_second_per_gpu = 1e8;
  EXPECT_DOUBLE_EQ(CheckpointSeconds(job, profile),
                   CheckpointBytes(job) / (1e8 * static_cast<double>(job.gpu_count)));
}

}  // namespace
}  // namespace sextant::resilience
