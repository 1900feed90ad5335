// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "common/serving/serving_simulation.h"

namespace sextant::serving {
namespace {

// Budget: 10 000 requests under 1 s.
void BM_TenThousandRequests(benchmark::State& state) {
  StepTables t;
  t.prompt_pass = Line({0, 1}, {0, 20e-6});
  t.decode_pass = t.prompt_pass;
  t.engine_step = 1e-3;
  const StepCost cost(t);
  const ServingLoad load{.concurrency = 128, .request_count = 10000, .length_spread = 0.5};
  const Fleet fleet{.limits = {.kv_capacity_tokens = 200000}};
  for (auto _ : state) benchmark::DoNotOptimize(Simulate(load, 1000, 250, fleet, cost));
}
BENCHMARK(BM_TenThousandRequests)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sextant::serving
