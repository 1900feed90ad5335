// SPDX-License-Identifier: Apache-2.0
#include "benchmark/benchmark.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"

namespace sextant::orchestrator {
namespace {

void Measure(benchmark::State& state, const workload::Job& job) {
  const auto set = std::make_shared<const parameters::ParameterSet>();
  LocalOperatorCost operators(set);
  LocalNetworkTime network(set);
  for (auto _ : state) benchmark::DoNotOptimize(Predict(job, operators, network));
}
void PredictTraining(benchmark::State& state) { Measure(state, Megatron175()); }
void PredictServing(benchmark::State& state) { Measure(state, LlamaServing()); }
BENCHMARK(PredictTraining)->Unit(benchmark::kMicrosecond);
BENCHMARK(PredictServing)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sextant::orchestrator
