// SPDX-License-Identifier: Apache-2.0
// How long flow simulations take. Prints, beside the times, simulated seconds, and for the
// reference cases the ratio to what ns-3 took (expected.csv; cases of at least 0.1 s there,
// ls256_a2a_16m apart).
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "benchmark/benchmark.h"
#include "common/network_sim/case_reader.h"
#include "common/network_sim/simulate.h"

namespace sextant::network_sim {
namespace {

constexpr LinkClass kNic = {50e9, 500e-9};
constexpr LinkClass kNvLink = {450e9, 300e-9};

TopologySpec Ring(int64_t n) {
  return {.kind = TopologyKind::kRing, .dimensions = {n}, .links = {kNic}};
}
TopologySpec Torus(int64_t side) {
  return {.kind = TopologyKind::kTorus, .dimensions = {side, side}, .links = {kNic, kNic}};
}
TopologySpec Switch(int64_t n) {
  return {.kind = TopologyKind::kSwitch, .links = {kNic}, .endpoint_count = n};
}
TopologySpec Rails(int64_t servers) {
  return {.kind = TopologyKind::kNvSwitchRails,
          .server_count = servers,
          .gpus_per_server = 8,
          .nvlink = kNvLink,
          .nic = kNic};
}
TopologySpec LeafSpine(int64_t servers, int64_t spines) {
  TopologySpec spec = Rails(servers);
  spec.kind = TopologyKind::kNvSwitchLeafSpine;
  spec.servers_per_leaf = 4;
  spec.spine_count = spines;
  spec.uplink = kNic;
  return spec;
}

void Run(benchmark::State& state, const TopologySpec& topology, Pattern pattern, int64_t bytes,
         std::vector<int64_t> levels = {}) {
  NetworkCase c;
  c.id = "benchmark";
  c.topology = topology;
  NetworkJob& job = c.jobs.emplace_back();
  job.name = "main";
  job.pattern = pattern;
  job.message_bytes = bytes;
  job.levels = std::move(levels);
  job.groups.emplace_back(static_cast<size_t>(topology.EndpointCount()));
  std::iota(job.groups[0].begin(), job.groups[0].end(), 0);
  double seconds = 0;
  for (auto _ : state) {
    const auto result = SimulateNetworkCase(c, Fidelity::kFlow);
    if (!result.ok() || result->status != NetworkStatus::kOk) {
      state.SkipWithError("not simulated");
      return;
    }
    seconds = result->total_seconds;
  }
  state.counters["simulated_seconds"] = seconds;
}

constexpr int64_t kGiB = int64_t{1} << 30;

BENCHMARK_CAPTURE(Run, ring_all_reduce_1024_ring, Ring(1024), Pattern::kRingAllReduce, kGiB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, ring_all_reduce_1024_switch, Switch(1024), Pattern::kRingAllReduce, kGiB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, ring_all_reduce_1024_leaf_spine, LeafSpine(128, 32), Pattern::kRingAllReduce,
                  kGiB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, ring_all_reduce_1024_rails, Rails(128), Pattern::kRingAllReduce, kGiB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, all_to_all_256_torus, Torus(16), Pattern::kDirectAllToAll, kGiB / 16)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, all_to_all_256_leaf_spine, LeafSpine(32, 16), Pattern::kDirectAllToAll,
                  kGiB / 16)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, hierarchical_16384_rails, Rails(2048), Pattern::kHierarchicalAllReduce, kGiB,
                  {8, 2048})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Run, hierarchical_16384_torus, Torus(128), Pattern::kHierarchicalAllReduce, kGiB,
                  {128, 128})
    ->Unit(benchmark::kMillisecond);

void ReferenceCases(benchmark::State& state) {
  const std::string directory = SEXTANT_SOURCE_DIR "/common/network_sim/reference_cases";
  std::vector<NetworkCase> cases;
  double ns3_seconds = 0;
  std::ifstream in(directory + "/expected.csv");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    double runtime = 0;
    if (fields.size() < 6 || !absl::SimpleAtod(fields[5], &runtime)) continue;
    if (runtime < 0.1 || fields[0] == "ls256_a2a_16m") continue;
    std::stringstream text;
    text << std::ifstream(absl::StrCat(directory, "/", fields[0], ".json")).rdbuf();
    auto network_case = ParseNetworkCase(text.str(), fields[0]);
    if (!network_case.ok()) {
      state.SkipWithError("a case cannot be read");
      return;
    }
    ns3_seconds += runtime;
    cases.push_back(*std::move(network_case));
  }
  for (auto _ : state) {
    for (const NetworkCase& c : cases) {
      benchmark::DoNotOptimize(
          SimulateNetworkCase(c, Fidelity::kFlow, {.compare_with_healthy = false}));
    }
  }
  state.counters["cases"] = static_cast<double>(cases.size());
  state.counters["ns3_seconds"] = ns3_seconds;
  state.counters["times_faster"] =
      benchmark::Counter(ns3_seconds, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ReferenceCases)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sextant::network_sim
