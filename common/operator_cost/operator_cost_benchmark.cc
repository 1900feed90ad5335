// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/operator_cost/operator_cost.h"
#include "common/operator_cost/random_operators.h"
#include "common/operator_cost/test_accelerators.h"

namespace sextant::operator_cost {
namespace {

void Run(benchmark::State& state, const std::function<Operator(RandomOperators&)>& make) {
  const hardware::Accelerator accelerator = TestH100();
  const auto parameters = ResolveOperatorParameters(parameters::ParameterSet(), accelerator, "");
  RandomOperators random(1);
  std::vector<Operator> operators;
  for (int i = 0; i < 1024; ++i) operators.push_back(make(random));
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(EstimateOperator(operators[i++ % 1024], accelerator, parameters));
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_Gemm(benchmark::State& state) {
  Run(state, [](RandomOperators& random) { return random.Gemm(); });
}
BENCHMARK(BM_Gemm);

void BM_Prefill(benchmark::State& state) {
  Run(state, [](RandomOperators& random) { return random.Attention(AttentionPhase::kPrefill); });
}
BENCHMARK(BM_Prefill);

void BM_Decode(benchmark::State& state) {
  Run(state, [](RandomOperators& random) { return random.Attention(AttentionPhase::kDecode); });
}
BENCHMARK(BM_Decode);

void BM_ExpertFfn(benchmark::State& state) {
  Run(state, [](RandomOperators& random) { return random.ExpertFfn(); });
}
BENCHMARK(BM_ExpertFfn);

void BM_ResolveParameters(benchmark::State& state) {
  const hardware::Accelerator accelerator = TestH100();
  const parameters::ParameterSet set;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ResolveOperatorParameters(set, accelerator, "trtllm"));
  }
}
BENCHMARK(BM_ResolveParameters);

}  // namespace
}  // namespace sextant::operator_cost
