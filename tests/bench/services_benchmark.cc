// SPDX-License-Identifier: Apache-2.0
// Services over loopback sockets: all four in this process, warm.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "services/client/client.h"
#include "services/serve/serve.h"
#include "tests/support/jobs.h"

namespace sextant {
namespace {

serve::AllServices& Services() {
  static auto* services = [] {
    serve::ServeOptions options;
    options.server.listen = "127.0.0.1:0";
    options.server.metrics_listen = "";
    options.server.security.insecure = true;
    options.parameters = "uncalibrated";
    options.datasets_directory = SEXTANT_SOURCE_DIR "/datasets";
    return serve::AllServices::Start(options)->release();
  }();
  return *services;
}

const client::Client& Ask() {
  static const auto* client = new client::Client(
      absl::StrCat("127.0.0.1:", Services().server().port()), std::chrono::seconds(20));
  return *client;
}

const workload::Job& Job() {
  static const auto* job =
      new workload::Job(*test_support::ReadJobText(test_support::JobTexts()[0]));
  return *job;
}

// Budget: at least 500 000 operators a second in batches of 1 000.
void BM_EstimateOperators(benchmark::State& state) {
  std::vector<operator_cost::Operator> operators;
  for (int64_t i = 0; i < state.range(0); ++i) {
    operators.push_back(
        {operator_cost::GemmShape{.m = 128 + i, .n = 4096, .k = 4096}, hardware::Precision::kBf16});
  }
  for (auto _ : state) {
    auto estimates = Ask().EstimateOperators(operators, Job().cluster.accelerator, "");
    if (!estimates.ok()) state.SkipWithError("failed");
    benchmark::DoNotOptimize(estimates);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_EstimateOperators)->Arg(100)->Arg(1000)->UseRealTime();

// Budget: at least 5 000 predictions a second.
void BM_Predict(benchmark::State& state) {
  for (auto _ : state) {
    auto prediction = Ask().Predict(Job());
    if (!prediction.ok()) state.SkipWithError("failed");
    benchmark::DoNotOptimize(prediction);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Predict)->UseRealTime()->Threads(1)->Threads(4);

// Budget: at least 5 000 answers a second about known jobs on two cores, p99 below 10 ms.
void BM_AdviseKnownJob(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kJobCount = 100;  // of different lengths
  std::vector<double> milliseconds;
  int64_t step_count = 0;
  const auto ask = [&] {
    return Ask().Advise(Job(), {.max_gpu_count = 16, .step_count = 1 + step_count++ % kJobCount});
  };
  for (int64_t i = 0; i < kJobCount; ++i) {
    if (!ask().ok()) state.SkipWithError("failed");
  }
  for (auto _ : state) {
    const auto start = Clock::now();
    const auto advice = ask();
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (!advice.ok()) state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations());
  const auto p99 = milliseconds.begin() + static_cast<int64_t>(milliseconds.size()) * 99 / 100;
  std::nth_element(milliseconds.begin(), p99, milliseconds.end());
  state.counters["p99_ms"] = benchmark::Counter(*p99, benchmark::Counter::kAvgThreads);
}
BENCHMARK(BM_AdviseKnownJob)->UseRealTime()->Threads(1)->Threads(4);

}  // namespace
}  // namespace sextant
