// SPDX-License-Identifier: Apache-2.0
// What latency and throughput did a serving benchmark measure?
#ifndef SEXTANT_CALIBRATION_INGEST_SERVING_H_
#define SEXTANT_CALIBRATION_INGEST_SERVING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibration/ingest/json.h"
#include "calibration/ingest/origin.h"
#include "calibration/ingest/refusals.h"

namespace sextant::ingest {

struct Latency {
  std::optional<double> mean_seconds;
  std::optional<double> median_seconds;
  std::optional<double> p99_seconds;
};

// One run of a benchmark, over all its successful requests.
struct ServingRun {
  // "vllm", "sglang", "genai-perf", "aiperf", "inference-perf", "requests" (one record each),
  // "benchmark_serving" (the summary text that vLLM and SGLang print alike)
  std::string tool;
  std::string model;
  Origin origin;  // software: the engine behind it, where said
  std::optional<int64_t> gpu_count;
  std::optional<double> request_count;  // that succeeded
  std::optional<double> failed_count;
  std::optional<double> duration_seconds;
  std::optional<double> max_concurrency;              // limit of the closed loop; absent: none
  std::optional<double> requests_per_second_offered;  // of the open loop
  bool offered_all_at_once = false;                   // rate "inf"
  Latency time_to_first_token;
  Latency time_per_output_token;  // (end - first token) / (tokens - 1), mean over requests
  Latency inter_token_latency;    // between arrivals of chunks, mean over all of them
  Latency request_latency;
  std::optional<double> requests_per_second;
  std::optional<double> output_tokens_per_second;
  std::optional<double> total_tokens_per_second;  // input and output
  std::optional<double> input_token_count;        // of all requests
  std::optional<double> output_token_count;
  std::optional<double> mean_input_tokens;  // per request, really sent
  std::optional<double> mean_output_tokens;
  std::string refusal;  // why it is no measurement ("no request succeeded"); empty: it is
};

struct ServingReading {
  std::vector<ServingRun> runs;
  Refusals refusals;
};

// JSON or JSON lines of vLLM and SGLang benchmarks, genai-perf, AIPerf, inference-perf; records of
// single requests (JSON lines or an array); the summary text of vLLM and SGLang. A line or document
// that is damaged is refused, the rest is read. At most kServingRunLimit runs. Linear; never fails.
ServingReading ReadServing(absl::string_view text);
inline constexpr size_t kServingRunLimit = 10'000;

// Whether this is a document or record that ReadServing takes; for the detector.
bool IsServingDocument(const JsonValue& document);
// Whether this line opens the summary text of vLLM and SGLang.
bool IsServingSummaryStart(absl::string_view line);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_SERVING_H_
