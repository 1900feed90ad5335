// SPDX-License-Identifier: Apache-2.0
// The documents that serving benchmarks write, one reader each.
#ifndef SEXTANT_CALIBRATION_INGEST_SERVING_DOCUMENTS_H_
#define SEXTANT_CALIBRATION_INGEST_SERVING_DOCUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/ingest/json.h"
#include "calibration/ingest/serving.h"

namespace sextant::ingest {

// Each: nothing where the document is not of this tool.
std::optional<ServingRun> ReadBenchmarkServing(const JsonValue& document);  // vLLM, SGLang
std::optional<ServingRun> ReadInferencePerf(const JsonValue& document);
std::optional<ServingRun> ReadGenaiPerf(const JsonValue& document);  // and AIPerf

// One request.
struct RequestRecord {
  std::optional<double> start_seconds;  // of the clock that end_seconds is of
  std::optional<double> end_seconds;
  std::optional<double> time_to_first_token;
  std::optional<double> time_per_output_token;
  std::optional<double> latency;
  std::optional<double> input_tokens;
  std::optional<double> output_tokens;
  bool failed = false;
  std::string refusal;
};
std::optional<RequestRecord> ReadRequestRecord(const JsonValue& document);

// Gathers records into one run.
class RequestSummary {
 public:
  static constexpr size_t kLimit = 2'000'000;

  void Add(const RequestRecord& record);
  bool empty() const { return count_ == 0 && failed_ == 0; }
  ServingRun Run() const;

 private:
  struct Series {
    std::vector<double> values;
    void Add(std::optional<double> value) {
      if (value && values.size() < kLimit) values.push_back(*value);
    }
    Latency Statistics() const;
  };

  int64_t count_ = 0;
  int64_t failed_ = 0;
  int64_t counted_input_ = 0;
  int64_t counted_output_ = 0;
  double input_tokens_ = 0;
  double output_tokens_ = 0;
  std::optional<double> first_start_;
  std::optional<double> last_end_;
  Series first_token_;
  Series per_token_;
  Series latency_;
};

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_SERVING_DOCUMENTS_H_
