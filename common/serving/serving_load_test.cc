// SPDX-License-Identifier: Apache-2.0
#include "common/serving/serving_load.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::serving {
namespace {

using ::testing::HasSubstr;

TEST(MakeRequests, AClosedLoopStartsWithAsManyAsItsConcurrency) {
  const auto requests = MakeRequests({.concurrency = 3, .request_count = 5}, 100, 10);
  ASSERT_EQ(requests.size(), 5);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(std::isinf(requests[i].arrival_seconds), i >= 3);
    EXPECT_EQ(requests[i].prompt_tokens, 100);
    EXPECT_EQ(requests[i].output_tokens, 10);
  }
}

// 100 000 gaps of a Poisson process: their mean is within 4 standard errors (1 / sqrt n) of 1 /
// rate, and their standard deviation equals their mean.
TEST(MakeRequests, PoissonGapsAreExponential) {
  const int64_t n = 100000;
  const auto requests = MakeRequests(
      {.arrival = Arrival::kPoisson, .requests_per_second = 20, .request_count = n}, 100, 10);
  double last = 0;
  double sum = 0;
  double squares = 0;
  for (const Request& r : requests) {
    const double gap = r.arrival_seconds - last;
    last = r.arrival_seconds;
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / static_cast<double>(n);
  EXPECT_NEAR(mean * 20, 1, 4 / std::sqrt(static_cast<double>(n)));
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(n) - mean * mean) / mean, 1, 0.02);
}

TEST(MakeRequests, LengthsSpreadEvenlyAroundTheirMean) {
  const auto requests = MakeRequests({.request_count = 20000, .length_spread = 0.5}, 1000, 200);
  double sum = 0;
  for (const Request& r : requests) {
    EXPECT_GE(r.prompt_tokens, 500);
    EXPECT_LE(r.prompt_tokens, 1500);
    EXPECT_GE(r.output_tokens, 100);
    EXPECT_LE(r.output_tokens, 300);
    sum += static_cast<double>(r.prompt_tokens);
  }
  EXPECT_NEAR(sum / 20000, 1000, 10);
}

TEST(MakeRequests, ASeedIsARun) {
  ServingLoad load{.arrival = Arrival::kPoisson, .requests_per_second = 1, .length_spread = 0.3};
  EXPECT_EQ(MakeRequests(load, 100, 10), MakeRequests(load, 100, 10));
  ServingLoad other = load;
  other.seed = 2;
  EXPECT_NE(MakeRequests(load, 100, 10), MakeRequests(other, 100, 10));
}

TEST(MakeRequests, ATraceIsServedInOrderOfArrival) {
  const ServingLoad load{.arrival = Arrival::kTrace, .trace = {{2, 10, 1}, {1, 20, 2}, {2, 30, 3}}};
  const auto requests = MakeRequests(load, 0, 0);
  EXPECT_EQ(requests[0].prompt_tokens, 20);
  EXPECT_EQ(requests[1].prompt_tokens, 10);
  EXPECT_EQ(requests[2].prompt_tokens, 30);
}

TEST(ScheduleOf, TakesWhatTheLoadStatesElseTheProfile) {
  const EngineSchedule profile{.max_batch_tokens = 2048, .prefill_first = true};
  EXPECT_EQ(ScheduleOf({}, profile), profile);
  const EngineSchedule stated =
      ScheduleOf({.max_batch_tokens = 512, .prefill_first = false}, profile);
  EXPECT_EQ(stated.max_batch_tokens, 512);
  EXPECT_FALSE(stated.prefill_first);
}

TEST(ValidateServingLoad, NamesEveryViolation) {
  const ServingLoad load{.arrival = Arrival::kPoisson,
                         .concurrency = 0,
                         .length_spread = 2,
                         .max_batch_tokens = 0,
                         .prefill_replica_count = 2};
  const std::string message(ValidateServingLoad(load, 2).message());
  for (const char* field : {"concurrency", "requests_per_second", "length_spread",
                            "max_batch_tokens", "prefill_replica_count"}) {
    EXPECT_THAT(message, HasSubstr(field));
  }
  EXPECT_TRUE(ValidateServingLoad({}, 1).ok());
  EXPECT_FALSE(ValidateServingLoad({.arrival = Arrival::kTrace}, 1).ok());
}

// Adapters are a draw beside arrivals and lengths; Zipf's weights 1 and 1/2 make 2 : 1.
TEST(MakeRequests, AdaptersFollowTheirPopularityAndChangeNothingElse) {
  const ServingLoad plain{.arrival = Arrival::kPoisson,
                          .requests_per_second = 10,
                          .request_count = 30000,
                          .length_spread = 0.3};
  ServingLoad adapted = plain;
  adapted.adapters = {.count = 2, .popularity_exponent = 1};
  const std::vector<Request> without = MakeRequests(plain, 100, 10);
  const std::vector<Request> with = MakeRequests(adapted, 100, 10);
  int64_t first = 0;
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i].arrival_seconds, without[i].arrival_seconds);
    EXPECT_EQ(with[i].prompt_tokens, without[i].prompt_tokens);
    ASSERT_TRUE(with[i].adapter == 0 || with[i].adapter == 1);
    first += with[i].adapter == 0;
  }
  EXPECT_NEAR(static_cast<double>(first), 20000, 330);  // 4 sigma: 327
}

}  // namespace
}  // namespace sextant::serving
