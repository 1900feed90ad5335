// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/prediction.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using orchestrator::Prediction;
using testing::HasSubstr;

workload::Job TrainingJob() {
  workload::Job job;
  job.model.name = "tiny";
  job.cluster.accelerator.name = "h100-sxm5-80gb";
  job.gpu_count = 8;
  job.workload = workload::TrainingWorkload{.global_batch_size = 16, .sequence_length = 2048};
  job.plan.tensor_parallel_size = 8;
  return job;
}

Prediction TooLarge() {
  Prediction prediction;
  prediction.total_seconds = 2;
  prediction.interval_low_seconds = 1.5;
  prediction.interval_high_seconds = 3;
  prediction.breakdown = {{"matrix_multiply", 1.5}, {"framework", 0.5}};
  prediction.tokens_per_second = 16384;
  prediction.memory = {.total_bytes = 90'000'000'000,
                       .capacity_bytes = 80'000'000'000,
                       .fits = false,
                       .shortfall_bytes = 10'000'000'000,
                       .breakdown = {{"weights", 30'000'000'000}, {"optimizer", 60'000'000'000}}};
  prediction.binding = {"matrix_rate"};
  prediction.parameter_set = "0123456789abcdef";
  return prediction;
}

TEST(PredictionJson, EveryDocumentedKeyIsAlwaysThere) {
  const json document = json::parse(PredictionJson(TrainingJob(), TooLarge()));
  for (const char* key : {"total_seconds",
                          "interval_low_seconds",
                          "interval_high_seconds",
                          "tokens_per_second",
                          "tokens_per_second_per_gpu",
                          "model_flops_utilization",
                          "fits",
                          "memory_bytes",
                          "memory_capacity_bytes",
                          "shortfall_bytes",
                          "memory_breakdown",
                          "breakdown",
                          "binding",
                          "parameter_set",
                          "extrapolated",
                          "warnings",
                          "time_to_first_token_seconds",
                          "inter_token_latency_seconds",
                          "kv_cache_capacity_tokens",
                          "memory_reserved_bytes",
                          "largest_micro_batch_size",
                          "sensitivities",
                          "model_flops_convention",
                          "time_to_first_token_interval_low_seconds",
                          "time_to_first_token_interval_high_seconds",
                          "inter_token_latency_interval_low_seconds",
                          "inter_token_latency_interval_high_seconds"}) {
    EXPECT_TRUE(document.contains(key)) << key;
  }
  EXPECT_TRUE(document["time_to_first_token_seconds"].is_null());
  EXPECT_TRUE(document["warnings"].is_array());
  EXPECT_EQ(document["shortfall_bytes"], 10'000'000'000);
  EXPECT_TRUE(document["shortfall_bytes"].is_number_integer());
  EXPECT_EQ(document["breakdown"]["framework"], 0.5);
}

TEST(PredictionJson, NeverHoldsNanOrInfinity) {
  Prediction prediction = TooLarge();
  prediction.interval_high_seconds = std::numeric_limits<double>::infinity();
  prediction.model_flops_utilization = std::numeric_limits<double>::quiet_NaN();
  const json document = json::parse(PredictionJson(TrainingJob(), prediction));
  EXPECT_TRUE(document["interval_high_seconds"].is_null());
  EXPECT_TRUE(document["model_flops_utilization"].is_null());
}

TEST(PredictionText, SaysTimeWithIntervalVerdictAndShares) {
  const std::string text = PredictionText(TrainingJob(), TooLarge());
  EXPECT_THAT(text, HasSubstr("2.000 s  (90 % interval 1.500 s to 3.000 s)"));
  EXPECT_THAT(text, HasSubstr("DOES NOT FIT"));
  EXPECT_THAT(text, HasSubstr("75.0 %"));  // 1.5 of 2 seconds
}

TEST(ShortfallMessage, NamesTheBytesAndTheLargestPart) {
  const std::string message = ShortfallMessage(TooLarge());
  EXPECT_THAT(message, HasSubstr("shortfall of 10000000000 bytes"));
  EXPECT_THAT(message, HasSubstr("optimizer"));
}

}  // namespace
}  // namespace sextant::cli
