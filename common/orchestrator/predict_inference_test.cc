// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"
#include "common/orchestrator/trace.h"
#include "gtest/gtest.h"

// What a job says of its engine's steps: drafts, captured graphs, a job beside it.
namespace sextant::orchestrator {
namespace {

using workload::InferenceWorkload;
using workload::Job;

std::shared_ptr<const parameters::ParameterSet> Uncalibrated() {
  return std::make_shared<const parameters::ParameterSet>();
}

Prediction PredictOrDie(const Job& job) {
  LocalOperatorCost operators(Uncalibrated());
  LocalNetworkTime network(Uncalibrated());
  const absl::StatusOr<Prediction> prediction = Predict(job, operators, network);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return prediction.ok() ? *prediction : Prediction{};
}

Job With(void (*change)(InferenceWorkload&), bool served = false) {
  Job job = LlamaServing();
  change(std::get<InferenceWorkload>(job.workload));
  if (served) job.serving = serving::ServingLoad{.concurrency = 4, .request_count = 32};
  return job;
}

// The same pass checks four tokens a sequence whether they stand or not; all of them standing makes
// four tokens of each step.
TEST(Speculation, DividesTheStepByWhatStands) {
  const Prediction none = PredictOrDie(LlamaServing());
  const Prediction rejected = PredictOrDie(
      With([](InferenceWorkload& w) { w.speculation = {.draft_tokens = 3, .acceptance = 0}; }));
  const Prediction accepted = PredictOrDie(
      With([](InferenceWorkload& w) { w.speculation = {.draft_tokens = 3, .acceptance = 1}; }));
  EXPECT_GE(*rejected.inter_token_latency_seconds, *none.inter_token_latency_seconds);
  EXPECT_NEAR(*accepted.inter_token_latency_seconds, *rejected.inter_token_latency_seconds / 4,
              1e-12);
  EXPECT_EQ(accepted.time_to_first_token_seconds, none.time_to_first_token_seconds);
  // Batches that are bound by reading weights check three more tokens nearly for free.
  EXPECT_LT(*rejected.inter_token_latency_seconds, 1.2 * *none.inter_token_latency_seconds);
}

TEST(Speculation, AServedRunOfOneBatchAgreesWithTheStaticOne) {
  const auto always = [](InferenceWorkload& w) {
    w.speculation = {.draft_tokens = 3, .acceptance = 1, .draft_cost = 0.1};
    w.batch_size = 1;
  };
  Job job = With(always, /*served=*/true);
  const Prediction alone = PredictOrDie(With(always));
  job.serving->concurrency = 1;
  const Prediction served = PredictOrDie(job);
  EXPECT_NEAR(*served.inter_token_latency_seconds, *alone.inter_token_latency_seconds,
              0.03 * *alone.inter_token_latency_seconds);
}

// A fifth of the time for another job: at most 1 / 0.8 of every time, at least that of the job
// alone.
TEST(BackgroundShare, BoundsTheTimesFromBothSides) {
  for (const bool served : {false, true}) {
    const Prediction alone = PredictOrDie(With([](InferenceWorkload&) {}, served));
    const Prediction beside =
        PredictOrDie(With([](InferenceWorkload& w) { w.background_share = 0.2; }, served));
    EXPECT_NEAR(beside.total_seconds, 1.25 * alone.total_seconds, 1e-9 * alone.total_seconds);
    EXPECT_NEAR(*beside.time_to_first_token_seconds, 1.25 * *alone.time_to_first_token_seconds,
                1e-9);
    EXPECT_NEAR(*beside.inter_token_latency_seconds, 1.25 * *alone.inter_token_latency_seconds,
                1e-9);
    EXPECT_LE(beside.interval_low_seconds, alone.total_seconds);
    EXPECT_EQ(beside.warnings.size(), alone.warnings.size() + 1);
  }
}

TEST(BackgroundShare, EndsTheTraceAtThePredictedTime) {
  const Job job = With([](InferenceWorkload& w) { w.background_share = 0.5; });
  LocalOperatorCost operators(Uncalibrated());
  LocalNetworkTime network(Uncalibrated());
  const absl::StatusOr<Trace> trace = TraceJob(job, operators, network);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const TraceEvent& last = trace->events.back();
  EXPECT_NEAR(last.start_seconds + last.duration_seconds, PredictOrDie(job).total_seconds, 1e-9);
}

// A step of 32 layers without captured graphs takes at least what the host needs for its kernels.
TEST(CapturedGraphs, WithoutThemTheHostSetsThePaceOfSmallSteps) {
  for (const bool served : {false, true}) {
    const Prediction captured =
        PredictOrDie(With([](InferenceWorkload& w) { w.captured_graphs = true; }, served));
    const Prediction eager =
        PredictOrDie(With([](InferenceWorkload& w) { w.captured_graphs = false; }, served));
    const Prediction unsaid = PredictOrDie(With([](InferenceWorkload&) {}, served));
    EXPECT_GE(*eager.inter_token_latency_seconds, *captured.inter_token_latency_seconds);
    EXPECT_GE(*eager.inter_token_latency_seconds, 32 * 8 * 2.5e-5 / 2);
    // The default profile is one of captured graphs.
    EXPECT_EQ(unsaid.total_seconds, captured.total_seconds);
  }
}

TEST(InferenceWorkload, WrongOptionsAreNamedAtOnce) {
  Job job = LlamaServing();
  auto& work = std::get<InferenceWorkload>(job.workload);
  work.speculation = {.draft_tokens = -1, .acceptance = 1.5, .draft_cost = std::nan("")};
  work.background_share = 1;
  const std::string message(workload::ValidateJob(job).message());
  for (const char* field :
       {"inference.speculation.draft_tokens", "inference.speculation.acceptance",
        "inference.speculation.draft_cost", "inference.background_share"}) {
    EXPECT_NE(message.find(field), std::string::npos) << field;
  }
}

// Few sequences read all weights in each step: memory bandwidth sets the pace of a run, nothing is
// worth more than its share, and a faster part never slows requests by more than batches' noise.
TEST(Sensitivities, OfARunAreThoseOfItsRequests) {
  for (const serving::Arrival arrival :
       {serving::Arrival::kClosedLoop, serving::Arrival::kPoisson}) {
    Job job = With([](InferenceWorkload&) {}, /*served=*/true);
    job.serving->arrival = arrival;
    job.serving->requests_per_second = 1;
    job.serving->request_count = 200;
    LocalOperatorCost operators(Uncalibrated());
    LocalNetworkTime network(Uncalibrated());
    const auto prediction = Predict(job, operators, network, {.sensitivities = true});
    ASSERT_TRUE(prediction.ok()) << prediction.status();
    ASSERT_EQ(prediction->sensitivities.size(), 6u);
    double sum = 0;
    for (const Sensitivity& s : prediction->sensitivities) {
      if (s.resource == "launch_overhead") continue;
      EXPECT_LE(s.elasticity, 0.02) << s.resource;
      if (s.resource == "hbm_bandwidth") {
        EXPECT_LT(s.elasticity, -0.5);
      }
      sum += s.elasticity;
    }
    EXPECT_LT(sum, -0.6);
    EXPECT_GT(sum, arrival == serving::Arrival::kClosedLoop ? -1.02 : -1.5);
  }
}

}  // namespace
}  // namespace sextant::orchestrator
