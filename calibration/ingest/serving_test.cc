// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/serving.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "calibration/ingest/test_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// Keys of vLLM's benchmark_serving.py --save-result, one line as --append-result writes it.
constexpr char kVllm[] =
    R"({"date": "20250530-203916", "backend": "vllm", "model_id": "m", "num_prompts": 12,
"request_rate": Infinity, "max_concurrency": 4, "duration": 2.0, "completed": 10,
"total_input_tokens": 1000, "total_output_tokens": "2,000", "request_throughput": 5.0,
"output_throughput": 1000.0, "total_token_throughput": 1500.0, "itls": [[0.1, 0.2], [0.3]],
"mean_ttft_ms": 50.0, "median_ttft_ms": 40.0, "p99_ttft_ms": 90.0, "mean_tpot_ms": 2.0,
"mean_itl_ms": 2.5, "std_itl_ms": NaN, "mean_e2el_ms": 448.0})";

TEST(Serving, VllmResultGivesSecondsAndRates) {
  const ServingReading reading = ReadServing(kVllm);
  ASSERT_THAT(reading.runs, SizeIs(1));
  const ServingRun& run = reading.runs[0];
  EXPECT_EQ(run.tool, "vllm");
  EXPECT_EQ(run.refusal, "");
  EXPECT_EQ(run.origin.time, "2025-05-30 20:39:16");
  EXPECT_EQ(run.request_count, 10);
  EXPECT_EQ(run.failed_count, 2);
  EXPECT_TRUE(run.offered_all_at_once);
  EXPECT_EQ(run.max_concurrency, 4);
  EXPECT_DOUBLE_EQ(*run.time_to_first_token.mean_seconds, 0.05);
  EXPECT_DOUBLE_EQ(*run.time_per_output_token.mean_seconds, 0.002);
  EXPECT_DOUBLE_EQ(*run.inter_token_latency.mean_seconds, 0.0025);
  EXPECT_DOUBLE_EQ(*run.request_latency.mean_seconds, 0.448);
  EXPECT_DOUBLE_EQ(*run.mean_output_tokens, 200);
}

TEST(Serving, DocumentsInARowAreOneRunEachAndADamagedLineLosesItselfOnly) {
  std::string line = kVllm;
  for (char& c : line) c = c == '\n' ? ' ' : c;
  EXPECT_THAT(ReadServing(absl::StrCat(line, "\n", line, "\n")).runs, SizeIs(2));
  const ServingReading damaged =
      ReadServing(absl::StrCat(line, "\n", line.substr(0, 300), "\n", line, "\n", line, "\n"));
  EXPECT_THAT(damaged.runs, SizeIs(3));
  EXPECT_FALSE(damaged.refusals.empty());
}

TEST(Serving, RunsWithoutSuccessAreRefused) {
  const ServingReading reading = ReadServing(
      R"({"completed": 0, "request_throughput": 0, "mean_ttft_ms": 0.0, "duration": 1})");
  ASSERT_THAT(reading.runs, SizeIs(1));
  EXPECT_EQ(reading.runs[0].refusal, "no request succeeded");
  EXPECT_EQ(reading.refusals.Count("no request succeeded"), 1);
}

TEST(Serving, GenaiPerfAndAiperfUnitsHold) {
  // Keys of profile_export_genai_perf.json and profile_export_aiperf.json; one with "records".
  const std::string metrics =
      R"("request_latency": {"unit": "ms", "avg": 500.0, "p99": 700.0},
         "time_to_first_token": {"unit": "us", "avg": 30000.0},
         "inter_token_latency": {"unit": "s", "avg": 0.004},
         "request_throughput": {"unit": "requests/sec", "avg": 2.0},
         "output_token_throughput": {"unit": "tokens/sec", "avg": 200.0},
         "input_sequence_length": {"unit": "tokens", "avg": 550.0},
         "output_sequence_length": {"unit": "tokens", "avg": 100.0})";
  const ServingReading genai = ReadServing(
      absl::StrCat("{", metrics, R"(, "input_config": {"model": ["llama"], "concurrency": 8}})"));
  const ServingReading aiperf =
      ReadServing(absl::StrCat(R"({"records": {)", metrics,
                               R"(}, "input_config": {"endpoint": {"model_names": ["llama"]},
         "loadgen": {"concurrency": 8}}, "start_time": "2025-09-01T10:00:00.5"})"));
  for (const ServingReading* reading : {&genai, &aiperf}) {
    ASSERT_THAT(reading->runs, SizeIs(1));
    const ServingRun& run = reading->runs[0];
    EXPECT_DOUBLE_EQ(*run.request_latency.mean_seconds, 0.5);
    EXPECT_DOUBLE_EQ(*run.time_to_first_token.mean_seconds, 0.03);
    EXPECT_DOUBLE_EQ(*run.inter_token_latency.mean_seconds, 0.004);
    EXPECT_EQ(run.output_tokens_per_second, 200);
    EXPECT_EQ(run.mean_output_tokens, 100);
    EXPECT_EQ(run.max_concurrency, 8);
    EXPECT_EQ(run.model, "llama");
  }
  EXPECT_EQ(genai.runs[0].tool, "genai-perf");
  EXPECT_EQ(aiperf.runs[0].tool, "aiperf");
  EXPECT_EQ(aiperf.runs[0].origin.time, "2025-09-01 10:00:00");
}

TEST(Serving, RecordsOfRequestsAreGatheredByOneClock) {
  // arrival_time is wall clock and must not be subtracted from the monotonic stamps.
  const ServingReading reading = ReadServing(
      "{\"input_toks\": 10, \"output_toks\": 5, \"arrival_time\": 1777142838.3, \"queued_ts\": "
      "100.0, \"first_token_ts\": 100.5, \"last_token_ts\": 102.5}\n"
      "{\"input_toks\": 30, \"output_toks\": 3, \"arrival_time\": 1777142839.3, \"queued_ts\": "
      "101.0, \"first_token_ts\": 102.5, \"last_token_ts\": 110.0}\r\n"
      "{\"input_toks\": 30, \"output_toks\": 3, \"queued_ts\": 101.0, \"first_token_ts\": 99.0, "
      "\"last_token_ts\": 110.0}\n{\"input_toks\": 30, \"outp");
  ASSERT_THAT(reading.runs, SizeIs(1));
  const ServingRun& run = reading.runs[0];
  EXPECT_EQ(run.request_count, 2);
  EXPECT_DOUBLE_EQ(*run.time_to_first_token.mean_seconds, 1.0);
  EXPECT_DOUBLE_EQ(*run.time_per_output_token.mean_seconds, (2.0 / 4 + 7.5 / 2) / 2);
  EXPECT_DOUBLE_EQ(*run.duration_seconds, 10.0);
  EXPECT_DOUBLE_EQ(*run.output_tokens_per_second, 0.8);
  EXPECT_EQ(reading.refusals.Count("request has a negative time"), 1);
}

TEST(Serving, LifecycleRecordsOfInferencePerfAreRead) {
  const ServingReading reading = ReadServing(
      R"([{"start_time": 10.0, "end_time": 12.0, "error": null, "info": {"input_tokens": 7,
          "output_tokens": 3, "output_token_times": [10.5, 11.0, 11.5]}},
          {"start_time": 11.0, "end_time": 11.5, "error": {"error_type": "Timeout"}, "info": {}}])");
  ASSERT_THAT(reading.runs, SizeIs(1));
  EXPECT_EQ(reading.runs[0].request_count, 1);
  EXPECT_EQ(reading.runs[0].failed_count, 1);
  EXPECT_DOUBLE_EQ(*reading.runs[0].time_to_first_token.mean_seconds, 0.5);
  EXPECT_DOUBLE_EQ(*reading.runs[0].time_per_output_token.mean_seconds, 0.5);
}

TEST(Serving, SummaryTextIsReadUpToWhereItEnds) {
  const std::string text =
      "INFO start\n============ Serving Benchmark Result ============\n"
      "Successful requests:                     100\nMaximum request concurrency:             16\n"
      "Benchmark duration (s):                  10.00\nTotal generated tokens:  1,000\n"
      "Mean TTFT (ms):                          44.80\n";
  const ServingReading cut = ReadServing(text);
  ASSERT_THAT(cut.runs, SizeIs(1));
  EXPECT_DOUBLE_EQ(*cut.runs[0].time_to_first_token.mean_seconds, 0.0448);
  EXPECT_FALSE(cut.runs[0].inter_token_latency.mean_seconds.has_value());
  EXPECT_EQ(cut.runs[0].mean_output_tokens, 10);
  const ServingReading two = ReadServing(text + "==============================\n" + text);
  EXPECT_THAT(two.runs, SizeIs(2));
}

double Ms(const std::optional<double>& seconds) { return seconds.value_or(-1) * 1e3; }

TEST(ServingSamples, FilesGiveTheirTrueValues) {
  SEXTANT_NEEDS_SAMPLES();
  const auto only = [](const std::string& file) {
    ServingReading reading = ReadServing(ReadSample("serving/" + file));
    EXPECT_THAT(reading.runs, SizeIs(1)) << file;
    EXPECT_EQ(reading.runs[0].refusal, "") << file;
    return reading.runs[0];
  };
  const ServingRun stage = only("inference_perf_stage0.json");
  EXPECT_EQ(stage.request_count, 60);
  EXPECT_EQ(stage.failed_count, 0);
  EXPECT_NEAR(Ms(stage.time_to_first_token.mean_seconds), 29.874, 0.0005);
  EXPECT_NEAR(Ms(stage.inter_token_latency.mean_seconds), 3.4465, 0.00005);
  EXPECT_NEAR(Ms(stage.time_per_output_token.mean_seconds), 3.4465, 0.00005);
  EXPECT_NEAR(Ms(stage.request_latency.mean_seconds), 475.78, 0.005);
  EXPECT_NEAR(*stage.output_tokens_per_second, 62.58, 0.005);
  EXPECT_NEAR(*stage.total_tokens_per_second, 264.36, 0.005);
  EXPECT_NEAR(*stage.requests_per_second, 1.001, 0.0005);

  const ServingRun summary = only("inference_perf_vllm_summary.json");
  EXPECT_EQ(summary.request_count, 38717);
  EXPECT_NEAR(Ms(summary.time_to_first_token.mean_seconds), 2041.737, 0.0005);
  EXPECT_NEAR(Ms(summary.inter_token_latency.mean_seconds), 8.4463, 0.00005);
  EXPECT_NEAR(Ms(summary.time_per_output_token.mean_seconds), 8.4465, 0.00005);
  EXPECT_NEAR(Ms(summary.request_latency.mean_seconds), 3132.26, 0.005);
  EXPECT_NEAR(*summary.output_tokens_per_second, 3957.91, 0.005);
  EXPECT_NEAR(*summary.total_tokens_per_second, 16910.46, 0.005);
  EXPECT_NEAR(*summary.requests_per_second, 63.461, 0.0005);

  const ServingRun sglang = only("sglang_bench_serving_stdout.txt");
  EXPECT_EQ(sglang.request_count, 1648);
  EXPECT_NEAR(Ms(sglang.time_to_first_token.mean_seconds), 44294.80, 0.005);
  EXPECT_EQ(sglang.output_tokens_per_second, 1915.40);
  EXPECT_EQ(sglang.requests_per_second, 9.67);
  EXPECT_FALSE(sglang.inter_token_latency.mean_seconds.has_value());
  EXPECT_EQ(sglang.origin.software, "sglang");

  const ServingRun vllm = only("vllm_bench_serve_rate30.json");
  EXPECT_EQ(vllm.request_count, 900);
  EXPECT_NEAR(Ms(vllm.time_to_first_token.mean_seconds), 73.227, 0.0005);
  EXPECT_NEAR(Ms(vllm.inter_token_latency.mean_seconds), 23.467, 0.0005);
  EXPECT_NEAR(Ms(vllm.time_per_output_token.mean_seconds), 23.586, 0.0005);
  EXPECT_NEAR(*vllm.output_tokens_per_second, 5914.31, 0.005);
  EXPECT_NEAR(*vllm.total_tokens_per_second, 28074.59, 0.005);
  EXPECT_NEAR(*vllm.requests_per_second, 22.182, 0.0005);
  EXPECT_NEAR(*vllm.duration_seconds, 40.573, 0.0005);
  EXPECT_NEAR(*vllm.mean_output_tokens, 266.6, 0.05);

  const ServingRun requests = only("vllm_per_request.jsonl");
  EXPECT_EQ(requests.request_count, 300);
  EXPECT_NEAR(Ms(requests.time_to_first_token.mean_seconds), 7097.157, 0.0005);
  EXPECT_NEAR(Ms(requests.time_per_output_token.mean_seconds), 32.458, 0.0005);
  EXPECT_EQ(requests.output_token_count, 195753);
  EXPECT_NEAR(*requests.duration_seconds, 65.926, 0.0005);
  EXPECT_NEAR(*requests.output_tokens_per_second, 2969.26, 0.005);
}

}  // namespace
}  // namespace sextant::ingest
