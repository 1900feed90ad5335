// SPDX-License-Identifier: Apache-2.0
#include "common/advise/advise.h"

#include <cmath>

#include "common/base/violations.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"
#include "common/sweep/test_sweeps.h"
#include "gtest/gtest.h"

namespace sextant::advise {
namespace {

using workload::Job;

using sweep::NoParameters;

Advice AdviseOk(const Job& job, const AdviceOptions& options) {
  absl::StatusOr<Advice> advice = Advise(job, options, NoParameters());
  EXPECT_TRUE(advice.ok()) << advice.status();
  return advice.ok() ? *std::move(advice) : Advice{};
}
// 192 sequences divide over every power of two of ranks, and over 12.
Job Training() {
  Job job = orchestrator::LlamaTraining();
  job.workload = workload::TrainingWorkload{.global_batch_size = 192, .sequence_length = 2048};
  return job;
}

// 6.7 billion parameters in mixed precision Adam are 18 bytes each: 121 GB hold on two GPUs of
// 80 GB at best, never on one.
TEST(Advise, TrainingTakesTheFewestGpusThatFit) {
  const Advice advice = AdviseOk(Training(), {.max_gpu_count = 16, .step_count = 1000});
  ASSERT_TRUE(advice.feasible) << advice.reason;
  EXPECT_GE(advice.gpu_count, 2);
  EXPECT_TRUE(advice.prediction.memory.fits);
  EXPECT_GT(advice.memory_headroom_bytes, 0);
  ASSERT_GE(advice.curve.size(), 2u);
  EXPECT_EQ(advice.curve.front().gpu_count, advice.gpu_count);
  EXPECT_EQ(advice.curve.back().gpu_count, 16);
  for (size_t i = 1; i < advice.curve.size(); ++i) {
    EXPECT_GT(advice.curve[i].gpu_count, advice.curve[i - 1].gpu_count);
    EXPECT_GT(advice.curve[i].speed_up, 1);
  }
  // One GPU fewer in the search: nothing, and said with the bytes that lack.
  const Advice less = AdviseOk(Training(), {.max_gpu_count = 1});
  EXPECT_FALSE(less.feasible);
  EXPECT_GT(less.prediction.memory.shortfall_bytes, 0);
  EXPECT_NE(less.reason, "");
  EXPECT_TRUE(less.curve.empty());
}

TEST(Advise, AnExactCountIsKeptWhateverItIs) {
  const Advice advice = AdviseOk(Training(), {.max_gpu_count = 12, .min_gpu_count = 12});
  EXPECT_TRUE(advice.feasible) << advice.reason;
  EXPECT_EQ(advice.gpu_count, 12);
  EXPECT_EQ(advice.curve.size(), 1u);
  EXPECT_EQ(AdviseOk(Training(), {.max_gpu_count = 16, .min_gpu_count = 8}).gpu_count, 8);
}

TEST(Advise, IsWhatPredictSaysOfTheAdvisedJob) {
  const Advice advice = AdviseOk(Training(), {.max_gpu_count = 8});
  orchestrator::LocalOperatorCost operators(NoParameters());
  orchestrator::LocalNetworkTime network(NoParameters());
  const auto prediction = orchestrator::Predict(AdvisedJob(Training(), advice), operators, network);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_EQ(prediction->total_seconds, advice.prediction.total_seconds);
  EXPECT_EQ(prediction->memory.total_bytes, advice.prediction.memory.total_bytes);
  EXPECT_EQ(advice.run_seconds, 0) << "no step count was given";
  EXPECT_EQ(advice.suggested_time_limit_seconds, 0);
}

TEST(Advise, TheTimeLimitCoversTheIntervalAndItsMarginInWholeMinutes) {
  const Advice advice =
      AdviseOk(Training(), {.max_gpu_count = 8, .step_count = 500, .time_limit_margin = 0.25});
  EXPECT_DOUBLE_EQ(advice.run_seconds, 500 * advice.prediction.total_seconds);
  EXPECT_LT(advice.run_low_seconds, advice.run_seconds);
  const double wanted = 1.25 * 500 * advice.prediction.interval_high_seconds;
  EXPECT_GE(static_cast<double>(advice.suggested_time_limit_seconds), wanted);
  EXPECT_LT(static_cast<double>(advice.suggested_time_limit_seconds), wanted + 60);
  EXPECT_EQ(advice.suggested_time_limit_seconds % 60, 0);
}

// 13.5 GB of weights and a cache of four sequences lie on one GPU.
TEST(Advise, ASmallBatchOfRequestsNeedsOneGpu) {
  const Advice advice = AdviseOk(orchestrator::LlamaServing(), {.max_gpu_count = 8});
  ASSERT_TRUE(advice.feasible);
  EXPECT_EQ(advice.gpu_count, 1);
  EXPECT_EQ(advice.curve.front().speed_up, 1);
}

TEST(Advise, AServedRateIsSized) {
  Job job = orchestrator::LlamaServing();
  job.serving = serving::ServingLoad{.arrival = serving::Arrival::kPoisson,
                                     .requests_per_second = 1,
                                     .request_count = 64,
                                     .time_to_first_token_limit_seconds = 5,
                                     .inter_token_latency_limit_seconds = 1};
  const Advice advice = AdviseOk(job, {.max_gpu_count = 8});
  EXPECT_TRUE(advice.feasible) << advice.reason;
  EXPECT_TRUE(advice.prediction.serving.has_value());
  // 13.5 GB of weights on a card of 10 GB.
  job.cluster.accelerator.hbm_bytes = 10'000'000'000;
  const Advice none = AdviseOk(job, {.max_gpu_count = 1});
  EXPECT_FALSE(none.feasible);
  EXPECT_NE(none.reason, "");
  EXPECT_EQ(none.gpu_count, 0);
}

TEST(Advise, EnergyAndCostAreThoseOfEveryStep) {
  AdviceOptions options{.max_gpu_count = 8, .economics = sweep::TestEconomics()};
  const Advice step = AdviseOk(Training(), options);
  ASSERT_TRUE(step.energy_joules.has_value() && step.cost_dollars.has_value());
  // 2 $ an hour for each GPU.
  EXPECT_DOUBLE_EQ(step.cost_dollars->value, 2 * static_cast<double>(step.gpu_count) *
                                                 step.prediction.total_seconds / 3600);
  options.step_count = 50;
  const Advice run = AdviseOk(Training(), options);
  EXPECT_DOUBLE_EQ(run.energy_joules->value, 50 * step.energy_joules->value);
  EXPECT_DOUBLE_EQ(run.cost_dollars->high, 50 * step.cost_dollars->high);
  EXPECT_FALSE(AdviseOk(Training(), {.max_gpu_count = 8}).cost_dollars.has_value());
}

TEST(Advise, AStoppedSearchIsNoAnswer) {
  const auto advice = Advise(Training(), {.max_gpu_count = 64}, NoParameters(),
                             {.thread_count = 1, .keep_going = [] { return false; }});
  EXPECT_TRUE(absl::IsCancelled(advice.status())) << advice.status();
}

TEST(Advise, WrongOptionsAreAllNamed) {
  const auto advice =
      Advise(Training(), {.max_gpu_count = -1, .min_gpu_count = -1, .step_count = -1, .time_limit_margin = NAN},
             NoParameters());
  EXPECT_EQ(advice.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::ViolationsOf(advice.status()).size(), 4u);
}

}  // namespace
}  // namespace sextant::advise
