// SPDX-License-Identifier: Apache-2.0
// Llama-3.1-70B over all layouts of 512 H100s with the shipped parameters, by threads. Budgets: the
// whole space under 10 s on two cores; at least 50 000 predictions a second; a million of them in
// half a minute and under 1 GB.
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/catalog/catalog.h"
#include "common/catalog/sweep_reader.h"
#include "common/sweep/report.h"

namespace sextant::sweep {
namespace {

const catalog::Catalog& Shipped() {
  static const auto* catalog =
      new catalog::Catalog(*catalog::Catalog::Open(SEXTANT_SOURCE_DIR "/datasets"));
  return *catalog;
}

SweepSpec Read(const std::vector<std::string>& overrides) {
  const std::string file = SEXTANT_SOURCE_DIR "/datasets/scenarios/llama-3.1-70b-512xh100-sweep.yaml";
  return *catalog::ReadSweep(*catalog::ReadTextFile(file), file, overrides, Shipped());
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void Run(benchmark::State& state, const SweepSpec& spec) {
  const auto set = std::make_shared<const parameters::ParameterSet>(
      *Shipped().FindParameterSet("default"));
  double candidates = 0;
  double predictions = 0;
  const double begin = CpuSeconds();
  for (auto _ : state) {
    const auto result = RunSweep(spec, set, {.thread_count = static_cast<int>(state.range(0))});
    benchmark::DoNotOptimize(ReportOf(spec, *result, Shard(), set));
    candidates += static_cast<double>(result->summary.counts().candidate_count);
    predictions += static_cast<double>(result->summary.counts().predicted_count);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["candidates"] = benchmark::Counter(candidates, benchmark::Counter::kAvgIterations);
  // Of all threads: what a busy machine does not distort as much as wall-clock time.
  const double cpu_seconds = CpuSeconds() - begin;
  state.counters["candidates_per_core_second"] = candidates / cpu_seconds;
  state.counters["predictions_per_core_second"] = predictions / cpu_seconds;
  state.counters["peak_megabytes"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void WholeSpace(benchmark::State& state) { Run(state, Read({})); }

// Batch sizes from 1 024 to 1 536, and the time of what does not fit, too.
void AMillionPredictions(benchmark::State& state) {
  SweepSpec spec = Read({});
  for (int64_t batch = 1152; batch <= 1536; batch += 128) {
    spec.scenarios.push_back(
        Read({"training.global_batch_size=" + std::to_string(batch)}).scenarios.front());
  }
  spec.require_fit = false;
  Run(state, spec);
}

BENCHMARK(WholeSpace)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(AMillionPredictions)->Arg(2)->Iterations(1)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
}  // namespace sextant::sweep
