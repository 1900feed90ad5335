// SPDX-License-Identifier: Apache-2.0
#include "common/resilience/goodput.h"

#include <cmath>

#include "common/base/violations.h"
#include "gtest/gtest.h"

namespace sextant::resilience {
namespace {

GoodputQuestion Question() {
  GoodputQuestion q;
  q.profile = {.interruptions_per_million_gpu_hours = 20,
               .node_loss_share = 0.5,
               .detection_seconds = 30,
               .restart_seconds = 60,
               .repair_seconds = 86400,
               .checkpoint_seconds = 30,
               .straggler_share = 0};
  q.gpu_count = 16384;
  q.spare_node_count = 8;
  return q;
}

double SumOf(const Goodput& g) {
  return g.useful_share + g.checkpoint_share + g.rework_share + g.recovery_share + g.waiting_share +
         g.straggler_share;
}

TEST(Goodput, TheBestIntervalIsYoungsWhereCheckpointsAreShort) {
  GoodputQuestion q = Question();
  q.profile.checkpoint_seconds = 0.01;  // M is 3 hours: C / M of 1e-6
  const Goodput g = *ExpectedGoodput(q);
  // Young drops terms of the order of sqrt(C/M), here 1e-3.
  EXPECT_NEAR(g.best_checkpoint_interval_seconds / g.young_interval_seconds, 1, 1e-3);
  EXPECT_NEAR(g.best_checkpoint_interval_seconds / g.daly_interval_seconds, 1, 1e-6);
}

TEST(Goodput, DalysEstimateHoldsFurtherThanYoungs) {
  GoodputQuestion q = Question();
  q.profile.checkpoint_seconds = 2000;
  const Goodput g = *ExpectedGoodput(q);
  const double best = g.best_checkpoint_interval_seconds;
  EXPECT_NEAR(g.daly_interval_seconds / best, 1, 0.01);
  EXPECT_GT(std::abs(g.young_interval_seconds / best - 1), 0.1);
}

TEST(Goodput, NoOtherIntervalIsBetter) {
  GoodputQuestion q = Question();
  for (const double checkpoint : {1.0, 30.0, 1000.0}) {
    q.profile.checkpoint_seconds = checkpoint;
    q.checkpoint_interval_seconds = 0;
    const Goodput best = *ExpectedGoodput(q);
    for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
      q.checkpoint_interval_seconds = best.best_checkpoint_interval_seconds * factor;
      EXPECT_LT(ExpectedGoodput(q)->useful_share, best.useful_share);
    }
  }
}

// Poisson events: 100 000 of them leave about 0.3 % of noise, of which an answer sees a part.
TEST(Goodput, SimulationAgreesWithTheClosedForm) {
  for (const int64_t spares : {0, 1, 8}) {
    for (const double checkpoint : {30.0, 1500.0}) {
      GoodputQuestion q = Question();
      q.spare_node_count = spares;
      q.profile.checkpoint_seconds = checkpoint;
      q.profile.straggler_share = 0.1;
      const Goodput expected = *ExpectedGoodput(q);
      const Goodput simulated = *SimulateGoodput(q, 100'000, 7);
      EXPECT_NEAR(simulated.useful_share, expected.useful_share, 0.005) << spares;
      EXPECT_NEAR(simulated.checkpoint_share, expected.checkpoint_share, 0.005);
      EXPECT_NEAR(simulated.rework_share, expected.rework_share, 0.005);
      EXPECT_NEAR(simulated.recovery_share, expected.recovery_share, 0.005);
      EXPECT_NEAR(simulated.waiting_share, expected.waiting_share, 0.005);
      EXPECT_NEAR(SumOf(expected), 1, 1e-12);
      EXPECT_NEAR(SumOf(simulated), 1, 1e-9);
    }
  }
}

// Without failures to speak of nothing is lost but checkpoints; with more GPUs there is less.
TEST(Goodput, FallsWithGpusAndRisesWithSpares) {
  GoodputQuestion q = Question();
  double last = 1;
  for (const int64_t gpus : {8, 1024, 16384, 131072}) {
    q.gpu_count = gpus;
    q.spare_node_count = 1000;
    const double useful = ExpectedGoodput(q)->useful_share;
    EXPECT_LT(useful, last);
    last = useful;
  }
  q.gpu_count = 16384;
  last = -1;
  for (const int64_t spares : {0, 2, 4, 16}) {
    q.spare_node_count = spares;
    const double useful = ExpectedGoodput(q)->useful_share;
    EXPECT_GT(useful, last);
    last = useful;
  }
}

// One server, load 1: the two states are equally likely.
TEST(Goodput, WithoutSparesHalfTheTimeIsWaitedWhereRepairTakesAsLongAsARun) {
  GoodputQuestion q = Question();
  q.spare_node_count = 0;
  q.profile.node_loss_share = 1;
  q.profile.repair_seconds = ExpectedGoodput(q)->mean_seconds_between_interruptions;
  EXPECT_DOUBLE_EQ(ExpectedGoodput(q)->waiting_share, 0.5);
}

TEST(Goodput, HopelessRunsAreZeroNotNan) {
  GoodputQuestion q = Question();
  q.profile.restart_seconds = 3e7;
  const Goodput g = *ExpectedGoodput(q);
  EXPECT_EQ(g.useful_share, 0);
  EXPECT_NEAR(SumOf(g), 1, 1e-12);
}

TEST(Goodput, WrongQuestionsAreRefusedWithEverything) {
  GoodputQuestion q = Question();
  q.gpu_count = 0;
  q.profile.checkpoint_seconds = std::nan("");
  q.profile.straggler_share = 1;
  EXPECT_EQ(base::ViolationsOf(ValidateGoodputQuestion(q)).size(), 3u);
  EXPECT_FALSE(ExpectedGoodput(q).ok());
}

TEST(Goodput, TheSameSeedGivesTheSameBytes) {
  EXPECT_EQ(SimulateGoodput(Question(), 1000, 3)->useful_share,
            SimulateGoodput(Question(), 1000, 3)->useful_share);
  EXPECT_NE(SimulateGoodput(Question(), 1000, 3)->useful_share,
            SimulateGoodput(Question(), 1000, 4)->useful_share);
}

}  // namespace
}  // namespace sextant::resilience
