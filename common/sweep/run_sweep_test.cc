// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/run_sweep.h"

#include <cmath>
#include <cstring>

#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/sweep/test_sweeps.h"
#include "gtest/gtest.h"

namespace sextant::sweep {
namespace {

bool SameBits(const Metrics& a, const Metrics& b) {
  return std::memcmp(a.values.data(), b.values.data(), sizeof a.values) == 0;
}

void ExpectSamePoints(const std::vector<Point>& a, const std::vector<Point>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].id, b[i].id);
    EXPECT_EQ(a[i].layout, b[i].layout);
    EXPECT_TRUE(SameBits(a[i].metrics, b[i].metrics));
  }
}

void ExpectSameSummaries(const Summary& a, const Summary& b) {
  ExpectSamePoints(a.Top(), b.Top());
  ExpectSamePoints(a.Pareto(), b.Pareto());
  ExpectSamePoints(a.Sample(), b.Sample());
  EXPECT_EQ(a.counts().candidate_count, b.counts().candidate_count);
  EXPECT_EQ(a.counts().predicted_count, b.counts().predicted_count);
  EXPECT_EQ(a.counts().accepted_count, b.counts().accepted_count);
  EXPECT_EQ(a.counts().rejected, b.counts().rejected);
  ASSERT_EQ(a.NearMisses().size(), b.NearMisses().size());
  for (size_t i = 0; i < a.NearMisses().size(); ++i) {
    EXPECT_EQ(a.NearMisses()[i].point.id, b.NearMisses()[i].point.id);
  }
}

SweepResult RunOk(const SweepSpec& spec, const RunOptions& options = {}) {
  absl::StatusOr<SweepResult> result = RunSweep(spec, NoParameters(), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

SweepSpec SmallSweep() {
  SweepSpec spec = TrainingSweep(32, 64);
  spec.summary.sample_count = 30;
  Scenario more = spec.scenarios[0];
  more.job.gpu_count = 48;
  more.job.workload = workload::TrainingWorkload{.global_batch_size = 96, .sequence_length = 4096};
  more.settings = {{"gpu_count", "48"}};
  spec.scenarios.push_back(more);
  return spec;
}

TEST(RunSweep, IsTheSameOnAnyNumberOfThreads) {
  const SweepSpec spec = SmallSweep();
  const SweepResult one = RunOk(spec, {.thread_count = 1});
  EXPECT_GT(one.summary.counts().predicted_count, 100);
  for (const int threads : {2, 5}) {
    ExpectSameSummaries(one.summary, RunOk(spec, {.thread_count = threads}).summary);
  }
}

TEST(RunSweep, ShardsMergedAreTheWhole) {
  const SweepSpec spec = SmallSweep();
  const SweepResult whole = RunOk(spec);
  for (const int64_t count : {2, 7}) {
    Summary merged(spec.summary);
    for (int64_t i = count - 1; i >= 0; --i) {
      merged.Merge(RunOk(spec, {.shard = {.index = i, .count = count}}).summary);
    }
    ExpectSameSummaries(whole.summary, merged);
  }
}

TEST(RunSweep, PredictOfAnyRowGivesTheSameNumbers) {
  const SweepSpec spec = SmallSweep();
  const SweepResult result = RunOk(spec);
  orchestrator::LocalOperatorCost operator_cost(NoParameters());
  orchestrator::LocalNetworkTime network_time(NoParameters());
  std::vector<Point> points = result.summary.Top();
  for (const Point& point : result.summary.Pareto()) points.push_back(point);
  for (const Point& point : result.summary.Sample()) points.push_back(point);
  const auto rows = PredictPoints(spec, points, NoParameters());
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (size_t i = 0; i < points.size(); ++i) {
    const workload::Job job = JobOf(spec, points[i]);
    const auto prediction = orchestrator::Predict(job, operator_cost, network_time);
    ASSERT_TRUE(prediction.ok()) << prediction.status();
    EXPECT_TRUE(SameBits(points[i].metrics, MetricsOf(job, *prediction, spec.economics)));
    EXPECT_EQ((*rows)[i].prediction, *prediction);
    EXPECT_TRUE(prediction->memory.fits);
  }
}

TEST(RunSweep, EveryCandidateIsAcceptedOrTurnedDownOnce) {
  SweepSpec spec = SmallSweep();
  spec.limits = {{Metric::kTotalSeconds, 30}, {Metric::kModelFlopsUtilization, 0.3}};
  const Counts counts = RunOk(spec).summary.counts();
  int64_t sum = counts.accepted_count;
  for (const auto& [reason, count] : counts.rejected) sum += count;
  EXPECT_EQ(sum, counts.candidate_count);
  EXPECT_GT(counts.rejected.at("does_not_fit"), 0);
}

// INPUTS.md 56: a limit holds for every row that comes back.
TEST(RunSweep, NoRowIsAboveALimit) {
  SweepSpec spec;
  Scenario scenario;
  scenario.job = orchestrator::LlamaServing();
  scenario.job.gpu_count = 8;
  for (const int64_t batch : {1, 8, 64, 512}) {
    std::get<workload::InferenceWorkload>(scenario.job.workload).batch_size = batch;
    spec.scenarios.push_back(scenario);
  }
  spec.plan = WholePlanSpace();
  spec.economics = TestEconomics();
  spec.summary.top_count = 1000;
  const std::vector<Point> free = RunOk(spec).summary.Top();
  spec.limits = {{Metric::kTimeToFirstTokenSeconds, 0.3},
                 {Metric::kInterTokenLatencySeconds, 0.01}};
  const SweepResult limited = RunOk(spec);
  const std::vector<Point> kept = limited.summary.Top();
  EXPECT_GT(kept.size(), 0u);
  EXPECT_LT(kept.size(), free.size());
  for (const Point& point : kept) {
    EXPECT_LE(point.metrics[Metric::kTimeToFirstTokenSeconds], 0.3);
    EXPECT_LE(point.metrics[Metric::kInterTokenLatencySeconds], 0.01);
  }
  for (const Point& point : limited.summary.Pareto()) {
    EXPECT_LE(point.metrics[Metric::kTimeToFirstTokenSeconds], 0.3);
  }
}

TEST(RunSweep, WhereNothingMeetsTheLimitsTheNearestIsNamed) {
  SweepSpec spec = SmallSweep();
  const double best = RunOk(spec).summary.Top()[0].metrics[Metric::kTokensPerSecond];
  spec.limits = {{Metric::kTokensPerSecond, 2 * best}};
  const SweepResult result = RunOk(spec);
  EXPECT_TRUE(result.summary.Top().empty());
  ASSERT_FALSE(result.summary.NearMisses().empty());
  const NearMiss& nearest = result.summary.NearMisses()[0];
  EXPECT_TRUE(nearest.fits);
  EXPECT_DOUBLE_EQ(nearest.point.metrics[Metric::kTokensPerSecond], best);
  EXPECT_DOUBLE_EQ(nearest.excess, 0.5);
}

// Memory decides alike in a sweep and in a prediction (INPUTS.md 49).
TEST(RunSweep, WhatDoesNotFitIsExactlyWhatPredictSaysDoesNotFit) {
  SweepSpec spec = SmallSweep();
  const int64_t turned_down = RunOk(spec).summary.counts().rejected.at("does_not_fit");
  spec.require_fit = false;
  spec.summary.top_count = 1'000'000;
  int64_t without_room = 0;
  const std::vector<Point> all = RunOk(spec).summary.Top();
  const auto rows = PredictPoints(spec, all, NoParameters());
  ASSERT_TRUE(rows.ok());
  for (const Row& row : *rows) without_room += row.prediction.memory.fits ? 0 : 1;
  EXPECT_EQ(turned_down, without_room);
}

TEST(RunSweep, StoppedHalfWayKeepsWhatIsDone) {
  const SweepSpec spec = SmallSweep();
  int64_t reported = 0;
  int improved = 0;
  const SweepResult result = RunOk(spec, {.thread_count = 2, .on_progress = [&](const Progress& p) {
                                          reported = p.done_count;
                                          improved += p.improved != nullptr ? 1 : 0;
                                          return p.done_count * 2 < p.candidate_count;
                                        }});
  EXPECT_FALSE(result.complete);
  EXPECT_GT(improved, 0);
  EXPECT_FALSE(result.summary.Top().empty());
  EXPECT_GE(result.summary.counts().candidate_count, reported);
}

TEST(RunSweep, WrongSpecsAreRefusedWithEverything) {
  SweepSpec spec = SmallSweep();
  spec.plan.tensor_parallel_size = {.values = {0}};
  spec.limits = {{Metric::kTotalSeconds, std::nan("")}};
  spec.summary.pareto = {Metric::kTotalSeconds};
  const auto result = RunSweep(spec, NoParameters());
  ASSERT_FALSE(result.ok());
  for (const char* field : {"tensor_parallel_size", "limits.total_seconds", "pareto"}) {
    EXPECT_NE(result.status().message().find(field), std::string::npos) << result.status();
  }
  EXPECT_FALSE(RunSweep(SmallSweep(), NoParameters(), {.shard = {.index = 2, .count = 2}}).ok());
}

TEST(RunSweep, OneGpuIsOneLayout) {
  SweepSpec spec;
  Scenario scenario;
  scenario.job = orchestrator::LlamaServing();
  spec.scenarios = {scenario};
  spec.plan = WholePlanSpace();
  spec.economics = TestEconomics();
  const std::vector<Point> top = RunOk(spec).summary.Top();
  // One GPU; recomputation and ZeRO say nothing about inference, but recompute has three words.
  ASSERT_FALSE(top.empty());
  EXPECT_EQ(top[0].layout.tensor, 1);
}

}  // namespace
}  // namespace sextant::sweep
