// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "common/operator_cost/operator_cost.h"
#include "common/orchestrator/graph.h"
#include "common/orchestrator/kv_cache.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"
#include "gtest/gtest.h"

// Inputs on which users of other tools reported wrong caches and wrong queues, one row or test for
// each; every expected number is derived by hand beside it.
namespace sextant::orchestrator {
namespace {

using hardware::Precision;
using workload::InferenceWorkload;
using workload::Job;
using workload::ModelArchitecture;

Prediction PredictOrDie(const Job& job) {
  const auto set = std::make_shared<const parameters::ParameterSet>();
  LocalOperatorCost operators(set);
  LocalNetworkTime network(set);
  const absl::StatusOr<Prediction> prediction = Predict(job, operators, network);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return prediction.ok() ? *prediction : Prediction{};
}

ModelArchitecture DeepSeekV3() {
  ModelArchitecture m = LlamaModel(7168, 61, 128, 128, 18432);
  m.latent_attention = {.query_lora_rank = 1536,
                        .kv_lora_rank = 512,
                        .rope_head_size = 64,
                        .nope_head_size = 128,
                        .value_head_size = 128};
  return m;
}

ModelArchitecture WithHeadSize(ModelArchitecture m, int64_t head_size) {
  m.head_size = head_size;
  return m;
}

struct CacheRow {
  const char* what;
  ModelArchitecture model;
  int64_t tensor_parallel_size;
  double bytes_per_token;
};

TEST(ServingInputs, CacheBytesOfATokenOnARank) {
  const std::vector<CacheRow> rows = {
      {"an extra head-count factor: Llama-2-7B, 32 x 2 x 32 x 128 x 2 B", Llama2Seven(), 1, 524288},
      {"query heads for KV heads: Llama-3-70B, 80 x 2 x 8 x 128 x 2 B",
       LlamaModel(8192, 80, 64, 8, 28672), 1, 327680},
      {"head size derived although 256 is declared: one layer of 8 KV heads, 2 x 8 x 256 x 2 B",
       WithHeadSize(LlamaModel(3584, 1, 16, 8, 14336), 256), 1, 8192},
      {"4 KV heads over 28 ranks: one whole head each, 2 x 128 x 2 B",
       LlamaModel(3584, 1, 28, 4, 18944), 28, 512},
      {"2 KV heads over 4 ranks: one whole head each, 2 x 128 x 2 B",
       LlamaModel(1536, 1, 12, 2, 8960), 4, 512},
      {"a latent is not divided: DeepSeek-V3, 61 x (512 + 64) x 2 B", DeepSeekV3(), 8, 70272},
  };
  for (const CacheRow& row : rows) {
    EXPECT_EQ(KvBytesPerToken(row.model, row.tensor_parallel_size, Precision::kBf16),
              row.bytes_per_token)
        << row.what;
  }
}

// 28 heads over 7 ranks are four each, but 4 KV heads are not divisible by 7 nor 7 by 4.
TEST(ServingInputs, AKvHeadThatCannotBeSharedEvenlyIsRefused) {
  Job job = LlamaServing();
  job.model = LlamaModel(3584, 28, 28, 4, 18944);
  job.cluster.gpus_per_node = 7;
  job.gpu_count = job.plan.tensor_parallel_size = 7;
  const absl::Status refused = workload::ValidateJob(job);
  EXPECT_NE(refused.message().find("kv_head_count 4"), std::string::npos) << refused;
  job.gpu_count = job.plan.tensor_parallel_size = 4;
  EXPECT_TRUE(workload::ValidateJob(job).ok());
}

// Llama-3-70B, 32 sequences of 8192 tokens: keys and values of 8 heads x 128 channels in 16 bits
// are 32 x 8192 x 2 x 8 x 128 x 2 B a layer, an eighth of what 64 heads would have.
TEST(ServingInputs, DecodeReadsTheKeysOfItsKvHeads) {
  Job job = LlamaServing();
  job.model = LlamaModel(8192, 80, 64, 8, 28672);
  job.workload = InferenceWorkload{.prompt_tokens = 8191, .output_tokens = 2, .batch_size = 32};
  job.precision = Precision::kBf16;
  const InferenceGraph graph = BuildInferenceGraph(job, {});
  ASSERT_FALSE(graph.decode_points.empty());
  const auto& op = graph.operators[static_cast<size_t>(graph.decode_points.back().full_index)];
  const auto set = std::make_shared<const parameters::ParameterSet>();
  LocalOperatorCost port(set);
  const auto estimates = port.EstimateOperators({op}, job.cluster.accelerator, "");
  ASSERT_TRUE(estimates.ok()) << estimates.status();
  const double expected = 32.0 * 8192 * 2 * 8 * 128 * 2;
  EXPECT_NEAR((*estimates)[0].hbm_bytes, expected, 0.01 * expected);
}

// What the engine's log says is used, whatever the memory fraction would give.
TEST(ServingInputs, TheEnginesBlockCountIsHonoured) {
  Job job = LlamaServing();
  auto& work = std::get<InferenceWorkload>(job.workload);
  work.kv_cache_capacity_tokens = 27895 * 16;  // "# GPU blocks: 27895" of 16 tokens
  work.memory_fraction = 0.5;
  EXPECT_EQ(PredictOrDie(job).kv_cache_capacity_tokens, 27895 * 16);
  work.kv_cache_capacity_tokens = 2048;
  job.serving = serving::ServingLoad{.arrival = serving::Arrival::kBurst, .request_count = 16};
  const Prediction small = PredictOrDie(job);
  EXPECT_LE(small.serving->peak_kv_fraction, 1);
  // 640 tokens each: three at a time and not sixteen.
  work.kv_cache_capacity_tokens = 16 * 640;
  EXPECT_GT(small.total_seconds, 2 * PredictOrDie(job).total_seconds);
}

// Decode attention is a line of the context: half-way between 4096 and 8192 lies the mean, not the
// geometric one.
TEST(ServingInputs, DecodeBetweenTwoContextsIsTheirMean) {
  Job job = LlamaServing();
  const auto latency = [&](int64_t prompt) {
    job.workload = InferenceWorkload{.prompt_tokens = prompt, .output_tokens = 2, .batch_size = 32};
    return *PredictOrDie(job).inter_token_latency_seconds;
  };
  const double mean = (latency(4096) + latency(8192)) / 2;
  EXPECT_NEAR(latency(6144), mean, 0.005 * mean);
}

// Four stages hold a quarter of the layers each: the replica caches at least four times the tokens,
// and each stage the same bytes for each of its layers.
TEST(ServingInputs, StagesMultiplyTheTokensOfAReplica) {
  Job job = LlamaServing();
  const auto capacity = [&](int64_t stages) {
    job.gpu_count = job.plan.pipeline_parallel_size = stages;
    return static_cast<double>(*PredictOrDie(job).kv_cache_capacity_tokens);
  };
  EXPECT_GT(capacity(4), 4 * capacity(1));
  EXPECT_LT(capacity(4), 5.2 * capacity(1));
}

// A DeepSeek-V3 request of 4096 + 512 tokens is charged 4608, in 288 pages of 16, 70272 B each.
TEST(ServingInputs, ARequestIsChargedItsPromptAndItsOutput) {
  Job job = LlamaServing();
  job.model = DeepSeekV3();
  job.workload = InferenceWorkload{.prompt_tokens = 4096, .output_tokens = 512};
  job.precision = Precision::kBf16;
  for (const MemoryPart& part : PredictOrDie(job).memory.breakdown) {
    if (part.name == "kv_cache") {
      EXPECT_EQ(part.bytes, int64_t{4608} * 70272);
    }
  }
}

// Llama-3.1-8B on A100 at rates of 0.5, 0.95, 1.05 and 1.5 of its capacity: a flag from 0.95 on,
// the capacity said, and no point latency where a queue grows.
TEST(ServingInputs, SaturationIsFlaggedAndNotHidden) {
  Job job = LlamaServing();
  job.model = LlamaModel(4096, 32, 32, 8, 14336);
  job.model.vocabulary_size = 128256;
  job.workload = InferenceWorkload{.prompt_tokens = 512, .output_tokens = 64};
  job.serving = serving::ServingLoad{
      .arrival = serving::Arrival::kPoisson, .requests_per_second = 1, .request_count = 1500};
  const double capacity = *PredictOrDie(job).serving->capacity_requests_per_second;
  double before = 0;
  for (const double share : {0.5, 0.951, 1.05, 1.5}) {
    job.serving->requests_per_second = share * capacity;
    const Prediction p = PredictOrDie(job);
    EXPECT_EQ(p.serving->saturated, share > 0.95) << share;
    EXPECT_EQ(p.time_to_first_token_seconds.has_value(), share < 0.95) << share;
    EXPECT_NEAR(*p.serving->load_fraction, share, 0.02 * share);
    EXPECT_GT(p.serving->time_to_first_token_seconds.p99, before) << share;
    before = p.serving->time_to_first_token_seconds.p99;
  }
}

}  // namespace
}  // namespace sextant::orchestrator
