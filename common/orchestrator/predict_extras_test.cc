// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/adapter_weights.h"
#include "common/orchestrator/image_encoder.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"
#include "gtest/gtest.h"

// Adapters and image encoders beside the model of a serving job.
namespace sextant::orchestrator {
namespace {

using workload::Job;

Prediction PredictOrDie(const Job& job) {
  const auto set = std::make_shared<const parameters::ParameterSet>();
  LocalOperatorCost operators(set);
  LocalNetworkTime network(set);
  const absl::StatusOr<Prediction> prediction = Predict(job, operators, network);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return prediction.ok() ? *prediction : Prediction{};
}

Job Served(int64_t concurrency) {
  Job job = LlamaServing();
  job.serving = serving::ServingLoad{.concurrency = concurrency, .request_count = 64};
  return job;
}

// Llama 2 7B, rank 16: four projections of 4096 x 4096, each 16 (4096 + 4096) weights, in 32
// layers. Two ranks hold the whole inner side and half of the split one: 16 (4096 + 2048).
TEST(AdapterParameters, AreThoseOfTheAttentionProjections) {
  EXPECT_EQ(AdapterParameters(Llama2Seven(), 16, 1), 32 * 4 * 16 * (4096 + 4096));
  EXPECT_EQ(AdapterParameters(Llama2Seven(), 16, 2), 32 * 4 * 16 * (4096 + 2048));
  EXPECT_EQ(AdapterParameters(Llama2Seven(), 32, 1), 2 * AdapterParameters(Llama2Seven(), 16, 1));
}

TEST(Adapters, CostTimeAndCache) {
  const Prediction plain = PredictOrDie(Served(8));
  Job job = Served(8);
  job.serving->adapters = {.count = 1000, .rank = 64, .resident_count = 8};
  const Prediction few = PredictOrDie(job);
  job.serving->adapters.resident_count = 64;
  const Prediction many = PredictOrDie(job);
  EXPECT_GT(*few.inter_token_latency_seconds, *plain.inter_token_latency_seconds);
  // A resident of rank 64 takes 2 x 32 x 4 x 64 x 8192 = 134 MB; a token of the cache 512 KiB.
  const int64_t tokens_each = 2LL * 32 * 4 * 64 * 8192 / 524288;
  EXPECT_EQ(tokens_each, 256);
  EXPECT_NEAR(static_cast<double>(*plain.kv_cache_capacity_tokens - *few.kv_cache_capacity_tokens),
              8.0 * 256, 17);
  EXPECT_NEAR(static_cast<double>(*few.kv_cache_capacity_tokens - *many.kv_cache_capacity_tokens),
              56.0 * 256, 17);
  EXPECT_GT(few.serving->adapter_load_count, 0);
}

// CLIP ViT-L/14 has 304 million parameters, 302 of them in its 24 layers.
TEST(EncoderJob, HasTheSizeOfClip) {
  Job job = Served(1);
  EXPECT_EQ(EncoderBytes(job), 0);
  job.serving->images.per_request = 1;
  EXPECT_NEAR(EncoderBytes(job) / 2, 302e6, 2e6);
  job.serving->images.encoder_gpu_count = 1;
  EXPECT_EQ(EncoderBytes(job), 0);
}

// On the replica's GPU the encoder delays the first token and stands in the way of others' tokens;
// on a GPU of its own it only delays the first.
TEST(Images, DelayTheFirstTokenAndApartNotTheOthers) {
  // Arrivals of their own, not those of a loop whose prompts come together.
  Job job = Served(1);
  job.serving->arrival = serving::Arrival::kPoisson;
  job.serving->requests_per_second = 1;
  const Prediction plain = PredictOrDie(job);
  job.serving->images.per_request = 4;
  const Prediction same = PredictOrDie(job);
  job.serving->images.encoder_gpu_count = 4;
  const Prediction apart = PredictOrDie(job);
  EXPECT_GT(*same.time_to_first_token_seconds, *plain.time_to_first_token_seconds);
  EXPECT_GT(*same.inter_token_latency_seconds, *plain.inter_token_latency_seconds);
  EXPECT_LT(*apart.inter_token_latency_seconds, *same.inter_token_latency_seconds);
  EXPECT_TRUE(apart.serving->encoder_utilization.has_value());
  EXPECT_LT(*same.kv_cache_capacity_tokens, *apart.kv_cache_capacity_tokens);
  // Compute-bound: four images of 577 tokens through 302 million weights cannot beat the roofline.
  const double least = 2 * 302e6 * 4 * 577 / 312e12;
  Job one = Served(1);
  one.serving->images.per_request = 4;
  EXPECT_GT(*PredictOrDie(one).time_to_first_token_seconds -
                *PredictOrDie(Served(1)).time_to_first_token_seconds,
            least);
}

TEST(ServingLoad, WrongAdaptersAndImagesAreNamedAtOnce) {
  Job job = Served(1);
  job.serving->adapters = {.count = -1, .rank = 0};
  job.serving->images = {.per_request = -1, .encoder_head_count = 7};
  const std::string message(workload::ValidateJob(job).message());
  for (const char* field : {"serving.adapters.count", "serving.adapters.rank",
                            "serving.images.per_request", "serving.images.encoder_head_count"}) {
    EXPECT_NE(message.find(field), std::string::npos) << field;
  }
}

}  // namespace
}  // namespace sextant::orchestrator
