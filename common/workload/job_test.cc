// SPDX-License-Identifier: Apache-2.0
#include "common/workload/job.h"

#include "common/base/violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job ValidTrainingJob() {
  Job job;
  job.model.name = "tiny";
  job.model.hidden_size = 1024;
  job.model.layer_count = 8;
  job.model.attention_head_count = job.model.kv_head_count = 16;
  job.model.head_size = 64;
  job.model.ffn_size = 4096;
  job.model.vocabulary_size = 50304;
  hardware::Accelerator& a = job.cluster.accelerator;
  a.name = "test";
  a.sm_count = 108;
  a.boost_clock_hz = 1.41e9;
  a.matrix_flop_per_second[static_cast<size_t>(hardware::Precision::kBf16)] = 312e12;
  a.vector_flop_per_second = 19.5e12;
  a.shared_memory_bytes_per_sm = 164 * 1024;
  a.l2_bytes = 40 << 20;
  a.l2_bandwidth_bytes_per_second = 5e12;
  a.hbm_bytes = 80LL << 30;
  a.hbm_bandwidth_bytes_per_second = 2.039e12;
  a.pcie_bandwidth_bytes_per_second = 32e9;
  job.cluster.name = "test";
  job.cluster.node_bandwidth_bytes_per_second = 300e9;
  job.cluster.network_bandwidth_bytes_per_second = 200e9;
  job.gpu_count = 8;
  job.plan.tensor_parallel_size = 4;
  job.plan.data_parallel_size = 2;
  job.workload = TrainingWorkload{.global_batch_size = 16, .sequence_length = 2048};
  return job;
}

std::string MessageOf(const Job& job) { return std::string(ValidateJob(job).message()); }

TEST(ValidateJob, ValidJobPasses) { EXPECT_EQ(ValidateJob(ValidTrainingJob()), absl::OkStatus()); }

TEST(ValidateJob, TensorSizeThatDoesNotDivideHeadsOffersTheOnesThatDo) {
  Job job = ValidTrainingJob();
  job.plan.tensor_parallel_size = 3;
  EXPECT_THAT(MessageOf(job),
              HasSubstr("plan.tensor_parallel_size: is 3 but must divide attention_head_count 16; "
                        "use 1, 2, 4, 8, 16"));
  // 3 x 2 is not 8 either: both are said at once.
  EXPECT_THAT(MessageOf(job), HasSubstr("gpu_count: is 8 but"));
}

TEST(ValidateJob, BatchThatDoesNotDivideNamesTheProduct) {
  Job job = ValidTrainingJob();
  job.plan.micro_batch_size = 3;
  EXPECT_THAT(MessageOf(job), HasSubstr("training.global_batch_size: is 16 but must be a multiple "
                                        "of micro_batch_size 3 x data_parallel_size 2 = 6"));
}

TEST(ValidateJob, KvHeadsAreReplicatedButNotSplitUnevenly) {
  Job job = ValidTrainingJob();
  job.model.kv_head_count = 2;
  EXPECT_TRUE(ValidateJob(job).ok());  // 4 ranks share 2 KV heads, each twice
  job.model.attention_head_count = 24;
  job.model.kv_head_count = 3;
  EXPECT_THAT(MessageOf(job), HasSubstr("kv_head_count 3"));
}

TEST(ValidateJob, OverflowingAndNegativeSizesAreRefusedNotComputed) {
  Job job = ValidTrainingJob();
  job.gpu_count = 0;
  job.plan.micro_batch_size = int64_t{1} << 40;
  job.plan.data_parallel_size = -4;
  std::get<TrainingWorkload>(job.workload).sequence_length = int64_t{1} << 40;
  EXPECT_EQ(base::ViolationsOf(ValidateJob(job)).size(), 4u);
}

TEST(ValidateJob, MorePipelineChunksThanLayersIsRefused) {
  Job job = ValidTrainingJob();
  job.plan = {.pipeline_parallel_size = 4, .virtual_pipeline_size = 3, .data_parallel_size = 2};
  EXPECT_THAT(MessageOf(job), HasSubstr("layer_count 8"));
}

TEST(ValidateJob, PrecisionThatTheAcceleratorLacksIsRefused) {
  Job job = ValidTrainingJob();
  job.precision = hardware::Precision::kFp8;
  EXPECT_THAT(MessageOf(job), HasSubstr("precision: is fp8 but test has no matrix rate"));
}

TEST(ValidateJob, ExpertsOnADenseModelAreRefused) {
  Job job = ValidTrainingJob();
  job.plan.expert_parallel_size = 2;
  EXPECT_THAT(MessageOf(job), HasSubstr("has no experts"));
}

TEST(Divisors, AreSortedAndComplete) {
  EXPECT_THAT(Divisors(12), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(Divisors(1), ElementsAre(1));
  EXPECT_THAT(Divisors(49), ElementsAre(1, 7, 49));
}

TEST(Words, RoundTrip) {
  EXPECT_EQ(*ParsePipelineSchedule("1f1b"), PipelineSchedule::k1f1b);
  EXPECT_EQ(*ParseRecompute("selective"), Recompute::kSelective);
  EXPECT_EQ(*ParseOptimizer("adam"), Optimizer::kAdam);
  EXPECT_THAT(std::string(ParseRecompute("some").status().message()),
              HasSubstr("none, selective, full"));
}

}  // namespace
}  // namespace sextant::workload
