// SPDX-License-Identifier: Apache-2.0
#include "benchmark/benchmark.h"
#include "common/sweep/run_sweep.h"
#include "common/sweep/test_sweeps.h"

namespace sextant::sweep {
namespace {

void Measure(benchmark::State& state, const SweepSpec& spec) {
  int64_t candidates = 0;
  int64_t predictions = 0;
  for (auto _ : state) {
    const auto result =
        RunSweep(spec, NoParameters(), {.thread_count = static_cast<int>(state.range(0))});
    candidates += result->summary.counts().candidate_count;
    predictions += result->summary.counts().predicted_count;
  }
  state.counters["candidates_per_second"] =
      benchmark::Counter(static_cast<double>(candidates), benchmark::Counter::kIsRate);
  state.counters["predictions_per_second"] =
      benchmark::Counter(static_cast<double>(predictions), benchmark::Counter::kIsRate);
}

// Every layout of Llama-3.1-70B on 512 GPUs, memory first.
void WholeSpace512(benchmark::State& state) { Measure(state, TrainingSweep(512, 1024)); }
// The same with the time of every point, fitting or not.
void EveryPrediction512(benchmark::State& state) {
  SweepSpec spec = TrainingSweep(512, 1024);
  spec.require_fit = false;
  Measure(state, spec);
}
BENCHMARK(WholeSpace512)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(EveryPrediction512)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace sextant::sweep
