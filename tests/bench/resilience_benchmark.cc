// SPDX-License-Identifier: Apache-2.0
// GPT-3 175B on 1 024 A100s: every part of an interconnect broken, random faults, mappings.
#include <memory>
#include <string>

#include "benchmark/benchmark.h"
#include "common/catalog/catalog.h"
#include "common/catalog/job_reader.h"
#include "common/collectives/concurrent.h"
#include "common/resilience/fault_study.h"

namespace sextant::resilience {
namespace {

const workload::Job& Job() {
  static const auto* job = [] {
    const std::string file = SEXTANT_SOURCE_DIR "/datasets/scenarios/gpt3-175b-64xa100.yaml";
    const auto catalog = catalog::Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
    return new workload::Job(*catalog::ReadJob(
        *catalog::ReadTextFile(file), file,
        {"gpu_count=1024", "plan.data_parallel_size=16", "training.global_batch_size=1536"},
        *catalog));
  }();
  return *job;
}

std::shared_ptr<const parameters::ParameterSet> Set() {
  return std::make_shared<const parameters::ParameterSet>();
}

network_sim::TopologySpec TopologyAt(int64_t index) {
  if (index == 0) return collectives::TopologyOf(Job().cluster, Job().gpu_count / 8);
  return index == 1 ? FatTreeOf(Job()) : TorusOf(Job(), {8, 16, 8});
}
constexpr const char* kTopologies[] = {"rails", "fat_tree", "torus_8x16x8"};

void SingleFaults(benchmark::State& state) {
  size_t count = 0;
  for (auto _ : state) {
    const auto step = StepOnNetwork::Create(Job(), {TopologyAt(state.range(0))}, Set());
    count = RankSingleFaults(*step, {0.75, 0.5, 0.25, 0})->size();
  }
  state.SetLabel(kTopologies[state.range(0)]);
  state.counters["faults"] = static_cast<double>(count);
}
BENCHMARK(SingleFaults)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

void RandomFaults(benchmark::State& state) {
  RandomStudy study{.draw_count = 100};
  study.faults.derated_probability = 0.01;
  study.faults.dead_probability = 0.001;
  const auto step = StepOnNetwork::Create(Job(), {TopologyAt(state.range(0))}, Set());
  for (auto _ : state) benchmark::DoNotOptimize(DrawFaults(*step, study));
  state.SetLabel(kTopologies[state.range(0)]);
}
BENCHMARK(RandomFaults)->DenseRange(0, 2)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace sextant::resilience
