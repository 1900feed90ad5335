// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/serving.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/serving_documents.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

// What follows from the rest of a run, and whether the run is a measurement.
void Complete(ServingRun* run) {
  const double count = run->request_count.value_or(0);
  if (count > 0) {
    if (!run->mean_input_tokens && run->input_token_count) {
      run->mean_input_tokens = *run->input_token_count / count;
    }
    if (!run->mean_output_tokens && run->output_token_count) {
      run->mean_output_tokens = *run->output_token_count / count;
    }
  }
  const bool timed = run->time_to_first_token.mean_seconds.value_or(0) > 0 ||
                     run->time_per_output_token.mean_seconds.value_or(0) > 0 ||
                     run->inter_token_latency.mean_seconds.value_or(0) > 0 ||
                     run->request_latency.mean_seconds.value_or(0) > 0 ||
                     run->output_tokens_per_second.value_or(0) > 0;
  if (run->request_count && *run->request_count <= 0) {
    run->refusal = "no request succeeded";
  } else if (!timed) {
    run->refusal = "no time and no throughput above 0 was measured";
  }
}

// "Mean TTFT (ms):   44294.80" of the summary; false where the line is no such line.
bool ReadSummaryLine(absl::string_view line, ServingRun* run) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos || colon > 80) return false;
  const std::string key = KeyOf(line.substr(0, colon));
  const absl::string_view text = absl::StripAsciiWhitespace(line.substr(colon + 1));
  const auto value = ParseNumber(text);
  if (key == "backend") {
    run->origin.software = std::string(text.substr(0, 60));
    return true;
  }
  if (absl::StrContains(key, "request_rate")) {
    run->requests_per_second_offered = value;
    run->offered_all_at_once = !value && absl::StartsWith(text, "inf");
    return true;
  }
  if (!value) return false;
  // Sources spell "request" in more than one way there.
  if (absl::StartsWith(key, "max_req") && absl::EndsWith(key, "concurrency")) {
    run->max_concurrency = value;
    return true;
  }
  struct Number {
    absl::string_view key;
    std::optional<double> ServingRun::*field;
  };
  constexpr Number kNumbers[] = {
      {"successful_requests", &ServingRun::request_count},
      {"failed_requests", &ServingRun::failed_count},
      {"benchmark_duration_s", &ServingRun::duration_seconds},
      {"total_input_tokens", &ServingRun::input_token_count},
      {"total_generated_tokens", &ServingRun::output_token_count},
      {"request_throughput_req_s", &ServingRun::requests_per_second},
      {"output_token_throughput_tok_s", &ServingRun::output_tokens_per_second},
      {"total_token_throughput_tok_s", &ServingRun::total_tokens_per_second}};
  for (const Number& number : kNumbers) {
    if (number.key == key) {
      run->*number.field = value;
      return true;
    }
  }
  struct Metric {
    absl::string_view name;
    Latency ServingRun::*field;
  };
  constexpr Metric kMetrics[] = {{"ttft_ms", &ServingRun::time_to_first_token},
                                 {"tpot_ms", &ServingRun::time_per_output_token},
                                 {"itl_ms", &ServingRun::inter_token_latency},
                                 {"e2el_ms", &ServingRun::request_latency},
                                 {"e2e_latency_ms", &ServingRun::request_latency}};
  for (const Metric& metric : kMetrics) {
    Latency& latency = run->*metric.field;
    if (key == absl::StrCat("mean_", metric.name)) latency.mean_seconds = *value * 1e-3;
    if (key == absl::StrCat("median_", metric.name)) latency.median_seconds = *value * 1e-3;
    if (key == absl::StrCat("p99_", metric.name)) latency.p99_seconds = *value * 1e-3;
  }
  return true;
}

bool IsRule(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  return line.size() > 10 && line.find_first_not_of('=') == absl::string_view::npos;
}

class Reader {
 public:
  ServingReading Read(absl::string_view text) {
    if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
    const absl::string_view start = absl::StripLeadingAsciiWhitespace(text.substr(0, 4096));
    if (absl::StartsWith(start, "{") || absl::StartsWith(start, "[")) {
      ReadDocuments(text);
    } else {
      ReadSummaries(text);
    }
    if (!requests_.empty()) Take(requests_.Run());
    return std::move(reading_);
  }

 private:
  void ReadDocuments(absl::string_view text) {
    JsonReader reader(text);
    size_t good = 0;  // where the last document that was whole ends
    while (reader.HasMore()) {
      if (reader.AtArray()) {
        reader.EnterArray();
        while (reader.NextElement()) {
          const JsonValue value = reader.Read();
          if (!reader.ok()) break;
          ReadDocument(value);
          good = reader.position();
        }
      } else {
        const JsonValue value = reader.Read();
        if (reader.ok()) ReadDocument(value);
      }
      if (reader.ok()) good = reader.position();
    }
    if (reader.ok()) return;
    reading_.refusals.Add(absl::StrCat("document is damaged: ", reader.error()));
    // One damaged line of a file of lines loses itself only.
    const size_t next = text.find('\n', good + 1);
    if (next != absl::string_view::npos) ReadLines(text.substr(next));
  }

  void ReadLines(absl::string_view text) {
    LineReader lines(text);
    while (lines.Next()) {
      const absl::string_view line = absl::StripAsciiWhitespace(lines.line());
      if (!absl::StartsWith(line, "{")) continue;
      JsonReader reader(line);
      const JsonValue value = reader.Read();
      if (reader.ok()) ReadDocument(value);
    }
  }

  void ReadDocument(const JsonValue& document) {
    for (auto* read : {&ReadBenchmarkServing, &ReadInferencePerf, &ReadGenaiPerf}) {
      if (auto run = (*read)(document)) {
        Take(std::move(*run));
        return;
      }
    }
    if (const auto record = ReadRequestRecord(document)) {
      if (record->refusal.empty()) {
        requests_.Add(*record);
      } else {
        reading_.refusals.Add(record->refusal);
      }
      return;
    }
    reading_.refusals.Add("document is of no serving benchmark that is known");
  }

  void ReadSummaries(absl::string_view text) {
    LineReader lines(text);
    std::optional<ServingRun> run;
    while (lines.Next()) {
      if (IsServingSummaryStart(lines.line())) {
        if (run) Take(std::move(*run));
        run = ServingRun();
        run->tool = "benchmark_serving";
      } else if (run && IsRule(lines.line())) {
        Take(std::move(*run));
        run.reset();
      } else if (run) {
        ReadSummaryLine(lines.line(), &*run);
      }
    }
    if (run) Take(std::move(*run));
  }

  void Take(ServingRun run) {
    if (reading_.runs.size() >= kServingRunLimit) {
      reading_.refusals.Add(absl::StrCat("stands behind the first ", kServingRunLimit, " runs"));
      return;
    }
    Complete(&run);
    if (!run.refusal.empty()) reading_.refusals.Add(run.refusal, 0, run.model);
    reading_.runs.push_back(std::move(run));
  }

  ServingReading reading_;
  RequestSummary requests_;
};

}  // namespace

bool IsServingDocument(const JsonValue& document) {
  return ReadBenchmarkServing(document) || ReadInferencePerf(document) || ReadGenaiPerf(document) ||
         ReadRequestRecord(document);
}

bool IsServingSummaryStart(absl::string_view line) {
  return absl::StrContains(line, "Serving Benchmark Result");
}

ServingReading ReadServing(absl::string_view text) { return Reader().Read(text); }

}  // namespace sextant::ingest
