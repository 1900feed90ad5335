// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/serving_documents.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

using Optional = std::optional<double>;

// The first of some members that is a number above or at 0.
Optional NumberOf(const JsonValue& value, std::initializer_list<absl::string_view> names) {
  for (absl::string_view name : names) {
    const Optional number = value.Number(name);
    if (number && *number >= 0) return number;
  }
  return std::nullopt;
}

absl::string_view TextOf(const JsonValue& value, std::initializer_list<absl::string_view> names) {
  for (absl::string_view name : names) {
    const JsonValue* member = value.Find(name);
    if (member == nullptr) continue;
    if (member->kind == JsonValue::Kind::kArray && !member->items.empty()) {
      member = &member->items[0];
    }
    if (member->kind == JsonValue::Kind::kString && !member->text.empty()) {
      return absl::string_view(member->text).substr(0, 200);
    }
  }
  return "";
}

Optional Times(Optional value, double factor) {
  return value ? Optional(*value * factor) : std::nullopt;
}

// "mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms".
Latency LatencyOf(const JsonValue& value, absl::string_view name) {
  return {Times(value.Number(absl::StrCat("mean_", name, "_ms")), 1e-3),
          Times(value.Number(absl::StrCat("median_", name, "_ms")), 1e-3),
          Times(value.Number(absl::StrCat("p99_", name, "_ms")), 1e-3)};
}

// "20250530-203916" -> "2025-05-30 20:39:16".
std::string DateOf(absl::string_view text) {
  if (text.size() < 15 || text[8] != '-') return FindTimeStamp(text);
  return FindTimeStamp(absl::StrCat(text.substr(0, 4), "-", text.substr(4, 2), "-",
                                    text.substr(6, 2), " ", text.substr(9, 2), ":",
                                    text.substr(11, 2), ":", text.substr(13, 2)));
}

// "4xNVIDIA_L40S" is four of them.
void SetDevice(absl::string_view text, ServingRun* run) {
  absl::string_view rest;
  const Optional count = LeadingNumber(text, &rest);
  if (count && *count >= 1 && *count < 1e6 && absl::StartsWith(rest, "x")) {
    run->gpu_count = static_cast<int64_t>(*count);
    text = rest.substr(1);
  }
  run->origin.device = std::string(text);
}

// A metric of genai-perf and AIPerf: {"unit": "ms", "avg": 12.3, "p50": ..., "p99": ...}.
const JsonValue* Metric(const JsonValue& metrics, std::initializer_list<absl::string_view> names) {
  for (absl::string_view name : names) {
    const JsonValue* metric = metrics.FindObject(name);
    if (metric != nullptr && metric->IsObject() && metric->Find("unit") != nullptr) return metric;
  }
  return nullptr;
}

Latency MetricLatency(const JsonValue* metric) {
  if (metric == nullptr) return {};
  const auto unit = SecondsPerUnit(metric->Text("unit"));
  if (!unit) return {};
  return {Times(NumberOf(*metric, {"avg", "mean", "value"}), *unit),
          Times(NumberOf(*metric, {"p50", "median"}), *unit),
          Times(NumberOf(*metric, {"p99"}), *unit)};
}

Optional MetricMean(const JsonValue* metric) {
  return metric == nullptr ? std::nullopt : NumberOf(*metric, {"avg", "mean", "value"});
}

// The first number of that name in the settings, some levels down.
Optional SettingNumber(const JsonValue& value, absl::string_view name, int depth = 0) {
  const Optional number = value.Number(name);
  if (number || depth >= 4) return number;
  for (const auto& [key, member] : value.members) {
    if (!member.IsObject()) continue;
    if (const Optional found = SettingNumber(member, name, depth + 1)) return found;
  }
  return std::nullopt;
}

std::string SettingText(const JsonValue& value, std::initializer_list<absl::string_view> names,
                        int depth = 0) {
  const absl::string_view text = TextOf(value, names);
  if (!text.empty() || depth >= 4) return std::string(text);
  for (const auto& [key, member] : value.members) {
    if (!member.IsObject()) continue;
    const std::string found = SettingText(member, names, depth + 1);
    if (!found.empty()) return found;
  }
  return "";
}

// inference-perf: {"mean": s, "median": s, "p99": s}.
Latency SecondsLatency(const JsonValue* latencies, absl::string_view name) {
  const JsonValue* value = latencies == nullptr ? nullptr : latencies->FindObject(name);
  if (value == nullptr) return {};
  return {value->Number("mean"), value->Number("median"), value->Number("p99")};
}

Optional MeanOf(const JsonValue& value, absl::string_view name) {
  const JsonValue* member = value.FindObject(name);
  return member == nullptr ? std::nullopt : member->Number("mean");
}

}  // namespace

std::optional<ServingRun> ReadBenchmarkServing(const JsonValue& d) {
  if (d.Find("mean_ttft_ms") == nullptr ||
      (d.Find("request_throughput") == nullptr && d.Find("completed") == nullptr)) {
    return std::nullopt;
  }
  ServingRun run;
  const std::string backend(TextOf(d, {"backend", "endpoint_type"}));
  run.origin.software = backend;
  run.tool = absl::StrContains(backend, "sglang") || d.Find("mean_e2e_latency_ms") != nullptr
                 ? "sglang"
                 : "vllm";
  run.model = std::string(TextOf(d, {"model_id", "model", "tokenizer_id"}));
  run.origin.time = DateOf(TextOf(d, {"date"}));
  SetDevice(TextOf(d, {"gpu", "gpu_name", "accelerator", "hardware"}), &run);
  run.request_count = d.Number("completed");
  run.failed_count = NumberOf(d, {"failed", "failed_requests"});
  const Optional asked = d.Number("num_prompts");
  if (!run.failed_count && asked && run.request_count && *asked >= *run.request_count) {
    run.failed_count = *asked - *run.request_count;
  }
  run.duration_seconds = NumberOf(d, {"duration", "benchmark_duration"});
  run.max_concurrency = d.Number("max_concurrency");
  run.requests_per_second_offered = d.Number("request_rate");
  run.offered_all_at_once = d.Find("request_rate") != nullptr && !run.requests_per_second_offered;
  run.time_to_first_token = LatencyOf(d, "ttft");
  run.time_per_output_token = LatencyOf(d, "tpot");
  run.inter_token_latency = LatencyOf(d, "itl");
  run.request_latency = LatencyOf(d, "e2el");
  if (!run.request_latency.mean_seconds) run.request_latency = LatencyOf(d, "e2e_latency");
  run.requests_per_second = d.Number("request_throughput");
  run.output_tokens_per_second = d.Number("output_throughput");
  run.total_tokens_per_second = NumberOf(d, {"total_token_throughput", "total_throughput"});
  run.input_token_count = NumberOf(d, {"total_input_tokens", "total_input"});
  run.output_token_count = NumberOf(d, {"total_output_tokens", "total_output"});
  return run;
}

std::optional<ServingRun> ReadInferencePerf(const JsonValue& d) {
  const JsonValue* successes = d.FindObject("successes");
  if (successes == nullptr || d.Find("failures") == nullptr) return std::nullopt;
  ServingRun run;
  run.tool = "inference-perf";
  run.request_count = successes->Number("count");
  const JsonValue* failures = d.FindObject("failures");
  if (failures != nullptr) run.failed_count = failures->Number("count");
  const JsonValue* latency = successes->FindObject("latency");
  run.time_to_first_token = SecondsLatency(latency, "time_to_first_token");
  run.time_per_output_token = SecondsLatency(latency, "time_per_output_token");
  run.inter_token_latency = SecondsLatency(latency, "inter_token_latency");
  run.request_latency = SecondsLatency(latency, "request_latency");
  if (const JsonValue* throughput = successes->FindObject("throughput")) {
    run.requests_per_second = throughput->Number("requests_per_sec");
    run.output_tokens_per_second = throughput->Number("output_tokens_per_sec");
    run.total_tokens_per_second = throughput->Number("total_tokens_per_sec");
  }
  if (const JsonValue* load = d.FindObject("load_summary")) {
    run.requests_per_second_offered = load->Number("requested_rate");
    run.max_concurrency = NumberOf(*load, {"concurrency", "concurrency_level"});
  }
  run.mean_input_tokens = MeanOf(*successes, "prompt_len");
  run.mean_output_tokens = MeanOf(*successes, "output_len");
  if (run.request_count && run.requests_per_second && *run.requests_per_second > 0) {
    run.duration_seconds = *run.request_count / *run.requests_per_second;
  }
  return run;
}

std::optional<ServingRun> ReadGenaiPerf(const JsonValue& d) {
  const JsonValue* records = d.FindObject("records");
  const JsonValue& metrics = records != nullptr && records->IsObject() ? *records : d;
  const JsonValue* latency = Metric(metrics, {"request_latency"});
  const JsonValue* throughput = Metric(metrics, {"request_throughput"});
  if (latency == nullptr && throughput == nullptr) return std::nullopt;
  ServingRun run;
  const JsonValue* input = d.FindObject("input_config");
  const bool aiperf = records != nullptr || d.Find("aiperf_version") != nullptr ||
                      d.Find("benchmark_id") != nullptr || d.Find("was_cancelled") != nullptr ||
                      (input != nullptr && input->FindObject("loadgen") != nullptr);
  run.tool = aiperf ? "aiperf" : "genai-perf";
  run.request_latency = MetricLatency(latency);
  run.time_to_first_token = MetricLatency(Metric(metrics, {"time_to_first_token", "ttft"}));
  run.inter_token_latency = MetricLatency(Metric(metrics, {"inter_token_latency", "itl"}));
  // Both tools define it as (latency - first token) / (tokens - 1) of a request.
  run.time_per_output_token = run.inter_token_latency;
  run.requests_per_second = MetricMean(throughput);
  run.output_tokens_per_second = MetricMean(Metric(metrics, {"output_token_throughput"}));
  run.total_tokens_per_second = MetricMean(Metric(metrics, {"total_token_throughput"}));
  run.mean_input_tokens = MetricMean(Metric(metrics, {"input_sequence_length", "isl"}));
  run.mean_output_tokens = MetricMean(Metric(metrics, {"output_sequence_length", "osl"}));
  run.request_count = MetricMean(Metric(metrics, {"request_count"}));
  if (!run.request_count) run.request_count = metrics.Number("request_count");
  run.failed_count = MetricMean(Metric(metrics, {"error_request_count"}));
  const JsonValue* duration = Metric(metrics, {"benchmark_duration"});
  const auto unit = duration == nullptr ? std::nullopt : SecondsPerUnit(duration->Text("unit"));
  if (unit) run.duration_seconds = Times(MetricMean(duration), *unit);
  run.origin.time = FindTimeStamp(TextOf(d, {"start_time"}));
  if (input == nullptr) return run;
  run.max_concurrency = SettingNumber(*input, "concurrency");
  run.requests_per_second_offered = SettingNumber(*input, "request_rate");
  run.model = SettingText(*input, {"model_names", "model", "model_name"});
  run.origin.software = std::string(TextOf(*input, {"backend"}));
  return run;
}

namespace {

// Stamps of an engine's own log: monotonic seconds. arrival_time is wall clock and is not of them.
RequestRecord EngineRecord(const JsonValue& d) {
  RequestRecord record;
  record.input_tokens = NumberOf(d, {"input_toks", "input_tokens", "prompt_tokens"});
  record.output_tokens = NumberOf(d, {"output_toks", "output_tokens", "completion_tokens"});
  const Optional queued = d.Number("queued_ts");
  const Optional first = d.Number("first_token_ts");
  const Optional last = d.Number("last_token_ts");
  record.start_seconds = queued;
  record.end_seconds = last;
  if (queued && first) record.time_to_first_token = *first - *queued;
  if (queued && last) record.latency = *last - *queued;
  if (first && last && record.output_tokens.value_or(0) > 1) {
    record.time_per_output_token = (*last - *first) / (*record.output_tokens - 1);
  }
  return record;
}

// AIPerf's profile_export.jsonl.
RequestRecord AiperfRecord(const JsonValue& d, const JsonValue& metrics) {
  RequestRecord record;
  record.time_to_first_token =
      MetricLatency(Metric(metrics, {"time_to_first_token", "ttft"})).mean_seconds;
  record.time_per_output_token =
      MetricLatency(Metric(metrics, {"inter_token_latency"})).mean_seconds;
  record.latency = MetricLatency(Metric(metrics, {"request_latency"})).mean_seconds;
  record.input_tokens = MetricMean(Metric(metrics, {"input_sequence_length"}));
  record.output_tokens = MetricMean(Metric(metrics, {"output_sequence_length"}));
  if (const JsonValue* metadata = d.FindObject("metadata")) {
    record.start_seconds = Times(metadata->Number("request_start_ns"), 1e-9);
    record.end_seconds = Times(metadata->Number("request_end_ns"), 1e-9);
  }
  return record;
}

// inference-perf's per_request_lifecycle_metrics.json.
RequestRecord LifecycleRecord(const JsonValue& d, const JsonValue& info) {
  RequestRecord record;
  record.start_seconds = d.Number("start_time");
  record.end_seconds = d.Number("end_time");
  record.input_tokens = info.Number("input_tokens");
  record.output_tokens = info.Number("output_tokens");
  if (record.start_seconds && record.end_seconds) {
    record.latency = *record.end_seconds - *record.start_seconds;
  }
  const JsonValue* times = info.FindObject("output_token_times");
  if (times == nullptr || times->items.empty() || times->items.size() != times->item_count) {
    return record;
  }
  const Optional first = times->items.front().AsNumber();
  const Optional last = times->items.back().AsNumber();
  if (first && record.start_seconds) record.time_to_first_token = *first - *record.start_seconds;
  if (first && last && record.output_tokens.value_or(0) > 1) {
    record.time_per_output_token = (*last - *first) / (*record.output_tokens - 1);
  }
  return record;
}

// Records whose keys name their unit: "ttft_ms", "latency_s".
RequestRecord PlainRecord(const JsonValue& d) {
  RequestRecord record;
  const auto seconds = [&d](std::initializer_list<absl::string_view> names) -> Optional {
    for (absl::string_view name : names) {
      if (const Optional ms = d.Number(absl::StrCat(name, "_ms"))) return *ms * 1e-3;
      for (absl::string_view unit : {"_s", "_sec", "_seconds"}) {
        if (const Optional s = d.Number(absl::StrCat(name, unit))) return s;
      }
    }
    return std::nullopt;
  };
  record.time_to_first_token = seconds({"ttft", "time_to_first_token"});
  record.time_per_output_token =
      seconds({"tpot", "time_per_output_token", "itl", "inter_token_latency"});
  record.latency = seconds({"e2e", "e2el", "latency", "request_latency", "end_to_end_latency"});
  record.input_tokens =
      NumberOf(d, {"input_toks", "input_tokens", "prompt_tokens", "input_len", "prompt_len"});
  record.output_tokens =
      NumberOf(d, {"output_toks", "output_tokens", "completion_tokens", "output_len"});
  return record;
}

void Judge(RequestRecord* record) {
  for (const Optional& time :
       {record->time_to_first_token, record->time_per_output_token, record->latency}) {
    if (time && *time < 0) record->refusal = "request has a negative time";
  }
  if (record->refusal.empty() && record->output_tokens == 0) {
    record->refusal = "request produced no token";
  }
  if (record->refusal.empty() && !record->time_to_first_token && !record->latency) {
    record->refusal = "request has no time";
  }
}

}  // namespace

std::optional<RequestRecord> ReadRequestRecord(const JsonValue& d) {
  const JsonValue* metrics = d.FindObject("metrics");
  const JsonValue* info = d.FindObject("info");
  RequestRecord record;
  if (d.Find("first_token_ts") != nullptr || d.Find("last_token_ts") != nullptr) {
    record = EngineRecord(d);
  } else if (metrics != nullptr && Metric(*metrics, {"request_latency"}) != nullptr) {
    record = AiperfRecord(d, *metrics);
  } else if (info != nullptr && d.Find("start_time") != nullptr) {
    record = LifecycleRecord(d, *info);
  } else {
    record = PlainRecord(d);
    if (!record.time_to_first_token && !record.latency) return std::nullopt;
    if (!record.output_tokens) return std::nullopt;
  }
  const JsonValue* error = d.Find("error");
  record.failed = error != nullptr && error->kind != JsonValue::Kind::kNull &&
                  !(error->kind == JsonValue::Kind::kString && error->text.empty()) &&
                  !(error->kind == JsonValue::Kind::kBool && !error->boolean);
  if (!record.failed) Judge(&record);
  return record;
}

void RequestSummary::Add(const RequestRecord& record) {
  if (record.failed) {
    ++failed_;
    return;
  }
  ++count_;
  if (record.input_tokens) {
    ++counted_input_;
    input_tokens_ += *record.input_tokens;
  }
  if (record.output_tokens) {
    ++counted_output_;
    output_tokens_ += *record.output_tokens;
  }
  if (record.start_seconds) {
    first_start_ = std::min(first_start_.value_or(*record.start_seconds), *record.start_seconds);
  }
  if (record.end_seconds) {
    last_end_ = std::max(last_end_.value_or(*record.end_seconds), *record.end_seconds);
  }
  first_token_.Add(record.time_to_first_token);
  per_token_.Add(record.time_per_output_token);
  latency_.Add(record.latency);
}

Latency RequestSummary::Series::Statistics() const {
  Latency latency;
  if (values.empty()) return latency;
  double sum = 0;
  for (const double value : values) sum += value;
  latency.mean_seconds = sum / static_cast<double>(values.size());
  latency.median_seconds = Median(values);
  std::vector<double> sorted = values;
  const auto at = static_cast<std::ptrdiff_t>(0.99 * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  latency.p99_seconds = sorted[static_cast<size_t>(at)];
  return latency;
}

ServingRun RequestSummary::Run() const {
  ServingRun run;
  run.tool = "requests";
  run.request_count = static_cast<double>(count_);
  run.failed_count = static_cast<double>(failed_);
  run.time_to_first_token = first_token_.Statistics();
  run.time_per_output_token = per_token_.Statistics();
  run.request_latency = latency_.Statistics();
  if (counted_input_ > 0) {
    run.input_token_count = input_tokens_;
    run.mean_input_tokens = input_tokens_ / static_cast<double>(counted_input_);
  }
  if (counted_output_ > 0) {
    run.output_token_count = output_tokens_;
    run.mean_output_tokens = output_tokens_ / static_cast<double>(counted_output_);
  }
  if (!first_start_ || !last_end_ || !(*last_end_ > *first_start_)) return run;
  const double span = *last_end_ - *first_start_;
  run.duration_seconds = span;
  run.requests_per_second = static_cast<double>(count_) / span;
  // Rates of all requests, where all say how many tokens they had.
  if (counted_output_ == count_) {
    run.output_tokens_per_second = output_tokens_ / span;
    if (counted_input_ == count_) {
      run.total_tokens_per_second = (input_tokens_ + output_tokens_) / span;
    }
  }
  return run;
}

}  // namespace sextant::ingest
