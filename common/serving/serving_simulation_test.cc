// SPDX-License-Identifier: Apache-2.0
#include "common/serving/serving_simulation.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"

namespace sextant::serving {
namespace {

// A step costs 1 ms, 20 us a token, and 1 ns for each key of each sequence.
StepCost Simple() {
  StepTables t;
  t.prompt_pass = Line({0, 1}, {0, 20e-6});
  t.decode_pass = t.prompt_pass;
  t.decode_attention = Plane({0, 1}, {0, 1}, {0, 0, 0, 1e-9});
  t.prompt_attention_filled = Plane({0, 1}, {0, 1}, {0, 0, 0, 1e-9});
  t.engine_step = 1e-3;
  return StepCost(t);
}
// One request at a time, `seconds` each: a server of constant service.
StepCost Constant(double seconds) {
  StepTables t;
  t.engine_step = seconds;
  return StepCost(t);
}

Fleet OneReplica(int64_t kv_tokens) {
  return {.limits = {.kv_capacity_tokens = kv_tokens, .schedule = {.max_batch_tokens = 2048}}};
}

void ExpectConserved(const ServingReport& r) {
  EXPECT_EQ(r.completed_request_count + r.refused_request_count, r.offered_request_count);
  EXPECT_NEAR(r.prefill_seconds + r.mixed_seconds + r.decode_seconds + r.idle_seconds,
              r.makespan_seconds, 1e-9 * r.makespan_seconds + 1e-12);
  EXPECT_LE(r.peak_kv_fraction, 1);
  EXPECT_LE(r.time_to_first_token_seconds.p50, r.time_to_first_token_seconds.p99);
}

// 100 prompt tokens in one step of 1 + 2 ms, then nine steps of 1 + 0.02 ms and their keys.
TEST(Simulate, OneRequestAloneTakesItsSteps) {
  const ServingReport r = Simulate({.request_count = 1}, 100, 10, OneReplica(10000), Simple());
  EXPECT_NEAR(r.time_to_first_token_seconds.mean, 3e-3, 1e-12);
  double decode = 0;
  for (int i = 0; i < 9; ++i) decode += 1e-3 + 20e-6 + 1e-9 * (101 + i);
  EXPECT_NEAR(r.end_to_end_seconds.mean, 3e-3 + decode, 1e-9);
  EXPECT_NEAR(r.inter_token_latency_seconds.mean, decode / 9, 1e-10);
  EXPECT_EQ(r.step_count, 10);
}

// A client that thinks leaves the engine idle between its requests; what a request sees stays.
TEST(Simulate, ThinkingClientsIdleTheEngineAndNotTheRequest) {
  const ServingLoad load{.request_count = 400};
  ServingLoad thinking = load;
  thinking.think_seconds = 0.05;
  const ServingReport busy = Simulate(load, 100, 10, OneReplica(10000), Simple());
  const ServingReport idle = Simulate(thinking, 100, 10, OneReplica(10000), Simple());
  EXPECT_NEAR(idle.end_to_end_seconds.mean, busy.end_to_end_seconds.mean, 1e-9);
  // 399 pauses of 50 ms in the mean, exponential: the sum scatters by 1 / sqrt(399) = 5 %.
  EXPECT_NEAR(idle.idle_seconds, 399 * 0.05, 0.2 * 399 * 0.05);
  EXPECT_NEAR(busy.idle_seconds, 0, 1e-9);
}

// Where waiting prompts go first, all clients of a loop wait for all prompts and then decode
// together: the first token comes later and the next ones faster than where both share steps.
TEST(Simulate, PromptsFirstTradeTheFirstTokenForTheNext) {
  const ServingLoad load{.concurrency = 32};
  Fleet fleet = OneReplica(100000);
  const ServingReport shared = Simulate(load, 1000, 100, fleet, Simple());
  fleet.limits.schedule.prefill_first = true;
  const ServingReport first = Simulate(load, 1000, 100, fleet, Simple());
  EXPECT_GT(first.time_to_first_token_seconds.mean, shared.time_to_first_token_seconds.mean);
  EXPECT_LT(first.inter_token_latency_seconds.mean, shared.inter_token_latency_seconds.mean);
  EXPECT_EQ(first.mixed_seconds, 0);
}

TEST(Simulate, ZeroAndOneTokenEndWithThePrompt) {
  for (const int64_t output : {0, 1}) {
    const ServingReport r =
        Simulate({.request_count = 3}, 100, output, OneReplica(10000), Simple());
    EXPECT_EQ(r.completed_request_count, 3);
    EXPECT_EQ(r.step_count, 3);
    EXPECT_DOUBLE_EQ(r.end_to_end_seconds.mean, r.time_to_first_token_seconds.mean);
    EXPECT_EQ(r.inter_token_latency_seconds, Percentiles());
  }
}

// Every mixture of policies conserves requests and ends, also where the cache is as small as it may
// be (1.0 of the largest request) or smaller (0.9: those that cannot ever fit are refused).
TEST(Simulate, RequestsAreConservedAndNothingLivelocks) {
  for (const double need : {0.9, 1.0, 1.7, 20.0}) {
    for (const bool chunked : {false, true}) {
      for (const bool prefill_first : {false, true}) {
        for (const Arrival arrival : {Arrival::kClosedLoop, Arrival::kPoisson, Arrival::kBurst}) {
          for (const int64_t seed : {1, 2, 3}) {
            const ServingLoad load{.arrival = arrival,
                                   .concurrency = 16,
                                   .requests_per_second = 50,
                                   .request_count = 80,
                                   .seed = seed,
                                   .length_spread = 0.5};
            Fleet fleet = OneReplica(std::llround(need * 1.5 * (400 + 120) / 16) * 16);
            fleet.limits.schedule.chunked_prefill = chunked;
            fleet.limits.schedule.prefill_first = prefill_first;
            const ServingReport r = Simulate(load, 400, 120, fleet, Simple());
            ExpectConserved(r);
            EXPECT_EQ(r.refused_request_count > 0, need < 1);
            EXPECT_GT(r.completed_request_count, 0);
          }
        }
      }
    }
  }
}

// A request of exactly the cache's size runs; one page more is refused at once.
TEST(Simulate, ARequestThatWouldNotFitAloneIsRefused) {
  // 145 prompt and 16 output tokens keep 160 in the cache: the last is never read.
  const ServingReport fits = Simulate({.request_count = 2}, 145, 16, OneReplica(160), Simple());
  EXPECT_EQ(fits.completed_request_count, 2);
  const ServingReport large = Simulate({.request_count = 2}, 146, 16, OneReplica(160), Simple());
  EXPECT_EQ(large.completed_request_count, 0);
  EXPECT_EQ(large.refused_request_count, 2);
  ExpectConserved(large);
}

TEST(Simulate, ASmallCachePreemptsAndALargeOneDoesNot) {
  const ServingLoad load{.arrival = Arrival::kBurst, .request_count = 40};
  const ServingReport small = Simulate(load, 200, 300, OneReplica(3200), Simple());
  EXPECT_GT(small.preemption_count, 0);
  EXPECT_NEAR(small.peak_kv_fraction, 1, 0.01);
  const ServingReport large = Simulate(load, 200, 300, OneReplica(40 * 512), Simple());
  EXPECT_EQ(large.preemption_count, 0);
}

TEST(Simulate, MoreCacheIsNeverWorse) {
  const ServingLoad load{.arrival = Arrival::kBurst, .request_count = 60};
  double before = std::numeric_limits<double>::infinity();
  for (const int64_t kv : {600, 1200, 2400, 4800, 9600, 38400}) {
    const double seconds = Simulate(load, 200, 300, OneReplica(kv), Simple()).makespan_seconds;
    EXPECT_LE(seconds, before * (1 + 1e-9)) << kv;
    before = seconds;
  }
}

TEST(Simulate, MoreReplicasAreNeverWorse) {
  const ServingLoad load{
      .arrival = Arrival::kPoisson, .requests_per_second = 40, .request_count = 200};
  double before = std::numeric_limits<double>::infinity();
  for (const int64_t replicas : {1, 2, 4}) {
    Fleet fleet = OneReplica(8000);
    fleet.replica_count = replicas;
    const ServingReport r = Simulate(load, 400, 100, fleet, Simple());
    ExpectConserved(r);
    EXPECT_LE(r.time_to_first_token_seconds.mean, before);
    before = r.time_to_first_token_seconds.mean;
  }
}

TEST(Simulate, ASeedIsAnAnswer) {
  const ServingLoad load{.arrival = Arrival::kPoisson,
                         .requests_per_second = 30,
                         .request_count = 300,
                         .length_spread = 0.8};
  const Fleet fleet = OneReplica(6000);
  EXPECT_EQ(Simulate(load, 300, 80, fleet, Simple()), Simulate(load, 300, 80, fleet, Simple()));
}

// One request at a time with constant service s is an M/D/1 queue: mean wait rho s / (2 (1 - rho))
// (Pollaczek and Khinchine). 40 000 requests put the mean within a few percent.
TEST(Simulate, OneAtATimeIsAnMD1Queue) {
  const double service = 0.01;
  for (const double rho : {0.3, 0.5, 0.7}) {
    const ServingLoad load{
        .arrival = Arrival::kPoisson, .requests_per_second = rho / service, .request_count = 40000};
    Fleet fleet = OneReplica(10000);
    fleet.limits.schedule.max_batch_sequences = 1;
    const ServingReport r = Simulate(load, 100, 1, fleet, Constant(service));
    const double wait = r.end_to_end_seconds.mean - service;
    EXPECT_NEAR(wait, rho * service / (2 * (1 - rho)), 0.06 * wait) << rho;
    EXPECT_NEAR(r.utilization, rho, 0.02);
    EXPECT_FALSE(r.saturated);
  }
}

// INPUTS: rates of 0.5, 0.95, 1.05 and 1.5 of capacity. From 0.95 on the answer is a bound, and
// beyond 1 the first token waits for a queue that grows with the run.
TEST(Simulate, SaturationIsSaidWithTheCapacity) {
  const double service = 0.01;
  Fleet fleet = OneReplica(10000);
  fleet.limits.schedule.max_batch_sequences = 1;
  for (const double rho : {0.5, 0.95, 1.05, 1.5}) {
    const ServingLoad load{.arrival = Arrival::kPoisson,
                           .requests_per_second = rho / service * (1 + 1e-9),
                           .request_count = 2000};
    const ServingReport r = Simulate(load, 100, 1, fleet, Constant(service));
    ASSERT_TRUE(r.capacity_requests_per_second.has_value());
    EXPECT_NEAR(*r.capacity_requests_per_second, 1 / service, 0.01 / service);
    EXPECT_NEAR(*r.load_fraction, rho, 0.01 * rho);
    EXPECT_EQ(r.saturated, rho >= 0.95) << rho;
    EXPECT_GT(r.time_to_first_token_seconds.p99, rho > 1.2 ? 100 * service : service);
  }
}

// Chunks of a long prompt run beside decoding sequences; in one piece it makes them wait.
TEST(Simulate, ChunkedPrefillShortensTheLongestGap) {
  const ServingLoad load{.arrival = Arrival::kTrace, .trace = {{0, 16, 200}, {0.05, 4000, 1}}};
  Fleet fleet = OneReplica(20000);
  fleet.limits.schedule.max_batch_tokens = 8000;
  fleet.limits.schedule.chunked_prefill = false;
  const ServingReport whole = Simulate(load, 0, 0, fleet, Simple());
  fleet.limits.schedule.chunked_prefill = true;
  fleet.limits.schedule.max_batch_tokens = 256;
  const ServingReport chunked = Simulate(load, 0, 0, fleet, Simple());
  EXPECT_EQ(whole.completed_request_count, 2);
  // The long prompt itself ends sooner in one piece: fewer steps.
  EXPECT_LT(whole.time_to_first_token_seconds.p99, chunked.time_to_first_token_seconds.p99);
  EXPECT_GT(chunked.mixed_seconds, 0);
}

TEST(Simulate, ASharedPrefixIsComputedOnce) {
  const ServingLoad load{.concurrency = 1, .request_count = 10};
  Fleet fleet = OneReplica(20000);
  const double without = Simulate(load, 1000, 1, fleet, Simple()).makespan_seconds;
  fleet.limits.shared_prefix_tokens = 800;
  const double with = Simulate(load, 1000, 1, fleet, Simple()).makespan_seconds;
  // Nine of ten prompts save 800 tokens of 20 us; attention to the prefix stays.
  EXPECT_NEAR(without - with, 9 * 800 * 20e-6, 0.02 * (without - with));
}

TEST(Simulate, PriorityGoesFirst) {
  ServingLoad load{.arrival = Arrival::kTrace};
  for (int i = 0; i < 10; ++i) load.trace.push_back({0, 100, 1, i == 9 ? 0 : 1});
  Fleet fleet = OneReplica(20000);
  fleet.limits.schedule.max_batch_sequences = 1;
  const ServingReport r = Simulate(load, 0, 0, fleet, Constant(1));
  EXPECT_DOUBLE_EQ(r.makespan_seconds, 10);
  ServingLoad limited = load;
  limited.time_to_first_token_limit_seconds = 1.5;  // what is served first is within it
  EXPECT_DOUBLE_EQ(Simulate(limited, 0, 0, fleet, Constant(1)).goodput_requests_per_second, 0.1);
}

// Apart, a decode step never waits for a prompt; the hand-over shows between first and second
// token.
TEST(Simulate, PoolsApartHandSequencesOver) {
  const ServingLoad load{.concurrency = 4, .request_count = 40, .prefill_replica_count = 1};
  Fleet fleet = OneReplica(20000);
  fleet.replica_count = 2;
  fleet.prefill_replica_count = 1;
  fleet.transfer_seconds = Line({0, 1000}, {0, 0.5});
  const ServingReport r = Simulate(load, 400, 50, fleet, Simple());
  ExpectConserved(r);
  EXPECT_EQ(r.completed_request_count, 40);
  EXPECT_EQ(r.mixed_seconds, 0);
  EXPECT_GT(r.inter_token_latency_seconds.mean, 0.2 / 49);
}

// Drafts that always stand: 3 of them and the pass's own token make four a step, so that 41 tokens
// are a prompt's and ten steps'. None stands: one a step, as without drafts.
TEST(Simulate, DraftsShortenARunByWhatStands) {
  Fleet fleet = OneReplica(10000);
  const auto steps = [&](double acceptance) {
    fleet.limits.speculation = {.draft_tokens = 3, .acceptance = acceptance};
    const ServingReport r = Simulate({.request_count = 2}, 100, 41, fleet, Constant(0.01));
    ExpectConserved(r);
    return r;
  };
  EXPECT_EQ(steps(1).step_count, 2 * 11);
  EXPECT_NEAR(steps(1).inter_token_latency_seconds.mean, 0.01 / 4, 1e-12);
  EXPECT_EQ(steps(0).step_count, 2 * 41);
  EXPECT_EQ(steps(0).tokens_per_decode_step, 1);
}

// Over long outputs a step yields (1 - a^4) / (1 - a) tokens: 2.533 for 0.7.
TEST(Simulate, DraftsYieldTheGeometricMean) {
  Fleet fleet = OneReplica(200000);
  fleet.limits.speculation = {.draft_tokens = 3, .acceptance = 0.7};
  const ServingReport r =
      Simulate({.concurrency = 8, .request_count = 40}, 50, 1000, fleet, Constant(0.01));
  ASSERT_TRUE(r.tokens_per_decode_step.has_value());
  EXPECT_NEAR(*r.tokens_per_decode_step, 2.533, 0.03);
  EXPECT_EQ(r.completed_request_count, 40);
}

// The same requests wherever what else runs: acceptance belongs to a request and its place.
TEST(Simulate, DraftsKeepConservationWhereTheCacheIsSmall) {
  for (const double acceptance : {0.0, 0.6, 1.0}) {
    const ServingLoad load{.arrival = Arrival::kBurst, .request_count = 40, .length_spread = 0.5};
    Fleet fleet = OneReplica(3200);
    fleet.limits.speculation = {.draft_tokens = 5, .acceptance = acceptance};
    const ServingReport r = Simulate(load, 200, 300, fleet, Simple());
    ExpectConserved(r);
    EXPECT_EQ(r.completed_request_count, 40);
    EXPECT_GT(r.preemption_count, 0);
  }
}

// A fetch takes 50 ms here. All adapters resident: each is fetched once. Fewer: those that are
// asked for and not there again and again, so that more residents never cost more.
TEST(Simulate, AdaptersAreFetchedWhereTheyAreNotResident) {
  StepTables t;
  t.engine_step = 0.01;
  t.adapter_load = 0.05;
  const StepCost cost(t);
  Fleet fleet = OneReplica(100000);
  double before = std::numeric_limits<double>::infinity();
  int64_t loads_before = std::numeric_limits<int64_t>::max();
  for (const int64_t resident : {1, 4, 16, 0}) {
    const ServingLoad load{.concurrency = 1,
                           .request_count = 400,
                           .adapters = {.count = 16, .resident_count = resident}};
    fleet.limits.adapters = load.adapters;
    const ServingReport r = Simulate(load, 100, 4, fleet, cost);
    ExpectConserved(r);
    EXPECT_LE(r.makespan_seconds, before) << resident;
    EXPECT_LE(r.adapter_load_count, loads_before) << resident;
    EXPECT_NEAR(r.makespan_seconds,
                400 * 4 * 0.01 + 0.05 * static_cast<double>(r.adapter_load_count), 1e-6);
    before = r.makespan_seconds;
    loads_before = r.adapter_load_count;
  }
  EXPECT_EQ(loads_before, 16);
}

// One resident of 16 that are asked for alike misses 15 times of 16.
TEST(Simulate, AMissHasTheProbabilityOfAnotherAdapter) {
  const ServingLoad load{
      .concurrency = 1, .request_count = 4000, .adapters = {.count = 16, .resident_count = 1}};
  Fleet fleet = OneReplica(100000);
  fleet.limits.adapters = load.adapters;
  const ServingReport r = Simulate(load, 100, 1, fleet, Constant(0.01));
  EXPECT_NEAR(static_cast<double>(r.adapter_load_count), 4000 * 15.0 / 16, 60);  // 4 sigma: 61
}

// Sequences of different adapters never run together beyond the residents, and none starves.
TEST(Simulate, FewResidentsShareTheEngineInTurns) {
  const ServingLoad load{.arrival = Arrival::kBurst,
                         .request_count = 64,
                         .adapters = {.count = 8, .resident_count = 1}};
  Fleet fleet = OneReplica(100000);
  fleet.limits.adapters = load.adapters;
  const ServingReport few = Simulate(load, 100, 10, fleet, Constant(0.01));
  ExpectConserved(few);
  EXPECT_EQ(few.completed_request_count, 64);
  fleet.limits.adapters.resident_count = 8;
  const ServingReport all = Simulate(load, 100, 10, fleet, Constant(0.01));
  EXPECT_LT(all.makespan_seconds, few.makespan_seconds);
}

TEST(Simulate, TheStepThatBringsAPromptEncodesItsImages) {
  StepTables t;
  t.engine_step = 0.01;
  t.images = Line({0, 1}, {0, 0.04});
  const StepCost cost(t);
  Fleet fleet = OneReplica(100000);
  fleet.limits.images_per_request = 2;
  fleet.limits.schedule.max_batch_tokens = 64;
  // 100 tokens go through in two pieces: the images are those of the first.
  const ServingReport r = Simulate({.request_count = 1}, 100, 3, fleet, cost);
  EXPECT_NEAR(r.time_to_first_token_seconds.mean, 2 * 0.01 + 2 * 0.04, 1e-12);
  EXPECT_NEAR(r.inter_token_latency_seconds.mean, 0.01, 1e-12);
}

// Apart, encoders are a queue of their own before the engine: one at a time with constant service
// is M/D/1, mean wait rho s / (2 (1 - rho)).
TEST(Simulate, EncodersApartAreAQueueBeforeTheEngine) {
  const double service = 0.02;
  Fleet fleet = OneReplica(100000);
  fleet.encoder_count = 1;
  fleet.encoder_seconds = service;
  fleet.embedding_seconds = 0.003;
  const double rho = 0.6;
  const ServingLoad load{
      .arrival = Arrival::kPoisson, .requests_per_second = rho / service, .request_count = 20000};
  const ServingReport r = Simulate(load, 16, 1, fleet, Constant(1e-6));
  const double wait = r.time_to_first_token_seconds.mean - service - 0.003;
  EXPECT_NEAR(wait, rho * service / (2 * (1 - rho)), 0.08 * wait);
  ASSERT_TRUE(r.encoder_utilization.has_value());
  EXPECT_NEAR(*r.encoder_utilization, rho, 0.02);
  fleet.encoder_count = 4;
  EXPECT_LT(Simulate(load, 16, 1, fleet, Constant(1e-6)).time_to_first_token_seconds.mean,
            r.time_to_first_token_seconds.mean);
}

// Progress never goes back within a run, and what the check says ends it.
TEST(Simulate, TellsHowFarItIsAndStopsWhenTold) {
  const ServingLoad load{.concurrency = 4, .request_count = 400};
  Progress last;
  int64_t calls = 0;
  const auto watched = Simulate(load, 100, 50, OneReplica(10000), Simple(), [&](const Progress& p) {
    EXPECT_GE(p.simulated_seconds, last.simulated_seconds);
    EXPECT_GE(p.completed_request_count, last.completed_request_count);
    EXPECT_GT(p.step_count, last.step_count);
    EXPECT_EQ(p.offered_request_count, 400);
    last = p;
    ++calls;
    return absl::OkStatus();
  });
  ASSERT_TRUE(watched.ok());
  EXPECT_EQ(*watched, Simulate(load, 100, 50, OneReplica(10000), Simple()));
  EXPECT_EQ(calls, watched->step_count / 1000);
  const auto stopped = Simulate(load, 100, 50, OneReplica(10000), Simple(),
                                [](const Progress&) { return absl::CancelledError("enough"); });
  EXPECT_TRUE(absl::IsCancelled(stopped.status()));
}

// Little's law for a loop: requests under way = completion rate x (time in the engine + thinking).
// Only the last few of 4000 requests see fewer beside them.
TEST(Simulate, ALoopKeepsLittlesLaw) {
  for (const double think : {0.0, 0.5}) {
    for (const int64_t concurrency : {1, 8, 32}) {
      const ServingLoad load{
          .concurrency = concurrency, .request_count = 4000, .think_seconds = think};
      const ServingReport r = Simulate(load, 200, 60, OneReplica(4000), Simple());
      const double under_way = r.requests_per_second * (r.end_to_end_seconds.mean + think);
      EXPECT_NEAR(under_way, static_cast<double>(concurrency),
                  0.03 * static_cast<double>(concurrency))
          << concurrency << " clients that think " << think << " s";
    }
  }
}

// The same requests at twice the rate: nobody is served sooner, nothing fits the cache better.
TEST(Simulate, ALargerRateIsNeverFaster) {
  double latency = 0;
  double busy = 0;
  double cache = 0;
  for (const double rate : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
    const ServingLoad load{.arrival = Arrival::kPoisson,
                           .requests_per_second = rate,
                           .request_count = 600,
                           .length_spread = 0.4};
    const ServingReport r = Simulate(load, 400, 60, OneReplica(8000), Simple());
    ExpectConserved(r);
    EXPECT_GE(r.end_to_end_seconds.mean, latency) << rate;
    EXPECT_GE(r.utilization, busy) << rate;
    EXPECT_GE(r.peak_kv_fraction, cache) << rate;
    EXPECT_GE(r.load_fraction.value_or(0), rate * 0.01);
    latency = r.end_to_end_seconds.mean;
    busy = r.utilization;
    cache = r.peak_kv_fraction;
  }
}

}  // namespace
}  // namespace sextant::serving
