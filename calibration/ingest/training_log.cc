// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/training_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/step_lines.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

constexpr absl::string_view kMllogTag = ":::MLLOG";
constexpr absl::string_view kDllogTag = "DLLL";
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
constexpr double kMebibyte = 1024.0 * 1024.0;

std::string FrameworkOf(TrainingLogKind kind) {
  switch (kind) {
    case TrainingLogKind::kMegatron:
      return "Megatron-LM";
    case TrainingLogKind::kNanotron:
      return "nanotron";
    case TrainingLogKind::kTorchtitan:
      return "torchtitan";
    case TrainingLogKind::kNemo:
    case TrainingLogKind::kDllogger:
      return "NeMo";
    case TrainingLogKind::kMllog:
      return "MLPerf";
  }
  return "";
}

std::optional<int64_t> WholeNumber(std::optional<double> number) {
  if (!number || *number < 0 || *number > 1e15 || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

// Settings of DLLogger and MLLOG are JSON values; the facts take text.
std::string SettingText(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kBool:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::kNumber:
      return absl::StrCat(value.number);
    case JsonValue::Kind::kString:
      return value.text.substr(0, 200);
    default:
      return "none";
  }
}

class Reader {
 public:
  explicit Reader(absl::string_view text) : lines_(text) {}

  TrainingLogReading Read() {
    while (lines_.Next()) ReadLine(lines_.line());
    Finish();
    return std::move(reading_);
  }

 private:
  void ReadLine(absl::string_view line) {
    if (reading_.origin.time.empty()) reading_.origin.time = FindTimeStamp(line);
    if (ReadTagged(line)) return;
    if (auto steps = MegatronSteps(line)) {
      // "[Rank 0] ... | mem-max-allocated-gigabytes" may be glued behind.
      Take(TrainingLogKind::kMegatron, *steps, line);
    } else if (steps = NanotronSteps(line); steps) {
      Take(TrainingLogKind::kNanotron, *steps, line);
    } else if (steps = NemoSteps(line); steps) {
      Take(TrainingLogKind::kNemo, *steps, line);
    } else if (steps = TorchtitanSteps(line); steps) {
      Take(TrainingLogKind::kTorchtitan, *steps, line);
    } else {
      ReadFactLine(line, &reading_.facts);
      ReadRemarks(line);
    }
    ReadMemory(line);
  }

  // True where the line is one of DLLogger or MLLOG.
  bool ReadTagged(absl::string_view line) {
    const bool mllog = absl::StrContains(line, kMllogTag);
    if (!mllog && !absl::StrContains(line, "DLLL {")) return false;
    const auto value = TaggedJson(line, mllog ? kMllogTag : kDllogTag);
    if (!value) {
      reading_.refusals.Add("line is cut or glued to another", lines_.number(), line);
    } else if (mllog) {
      ReadMllog(*value, line);
    } else {
      ReadDllogger(*value, line);
    }
    return true;
  }

  void ReadDllogger(const JsonValue& value, absl::string_view line) {
    const JsonValue* data = value.FindObject("data");
    if (data == nullptr) return;
    const JsonValue* step = value.Find("step");
    if (step != nullptr && step->kind == JsonValue::Kind::kString) {
      for (const auto& [name, setting] : data->members) {
        absl::string_view key = name;
        if (absl::StartsWith(key, "cfg/")) key.remove_prefix(4);
        if (absl::StartsWith(key, "data/")) key.remove_prefix(5);
        // "optim/name" and the like are settings of something else than the model.
        if (!absl::StrContains(key, "/")) reading_.facts.Set(key, SettingText(setting));
      }
    }
    const auto seconds = data->Number("train_step_timing in s");
    if (!seconds) return;
    TrainingStep read;
    const auto iteration = WholeNumber(step == nullptr ? std::nullopt : step->AsNumber());
    if (!iteration || !(*seconds > 0)) {
      reading_.refusals.Add("has no step number or no time", lines_.number(), line);
      return;
    }
    read.iteration = *iteration;
    read.seconds = seconds;
    read.loss = data->Number("reduced_train_loss");
    read.consumed_samples = data->Number("consumed_samples");
    read.stamp_seconds = value.Number("timestamp");
    if (!read.stamp_seconds) read.stamp_seconds = value.Number("elapsedtime");
    Take(TrainingLogKind::kDllogger, StepLine{{read}, 0}, line);
  }

  void ReadMllog(const JsonValue& record, absl::string_view line) {
    const absl::string_view key = record.Text("key");
    const JsonValue* value = record.Find("value");
    if (reading_.origin.time.empty()) {
      reading_.origin.time = TimeStampOf(record.Number("time_ms").value_or(0) * 1e-3);
    }
    if (value == nullptr) return;
    if (key == "submission_platform" && reading_.origin.device.empty()) {
      reading_.origin.device = value->text;
    } else if (key == "submission_benchmark" && reading_.facts.model.empty()) {
      reading_.facts.model = value->text.substr(0, 100);
    } else if (!value->IsObject()) {
      reading_.facts.Set(key, SettingText(*value));
    }
    auto seconds = value->Number("train_step_time");
    const auto throughput = value->Number("throughput");
    const auto batch = reading_.facts.global_batch_size;
    if (!seconds && key == "tracked_stats" && throughput && *throughput > 0 && batch) {
      seconds = static_cast<double>(*batch) / *throughput;
      reading_.step_note = "step times are batch size over the printed samples per second";
    }
    if (!seconds) return;
    const JsonValue* metadata = record.FindObject("metadata");
    std::optional<double> samples;
    if (metadata != nullptr) {
      samples = metadata->Number("step");
      if (!samples) samples = metadata->Number("samples_count");
    }
    const auto counted = WholeNumber(samples);
    if (!counted || !(*seconds > 0)) {
      reading_.refusals.Add("has no step number or no time", lines_.number(), line);
      return;
    }
    TrainingStep read;
    // The record named step counts samples.
    read.iteration = batch && *batch > 0 && *counted % *batch == 0 ? *counted / *batch : *counted;
    read.consumed_samples = samples;
    read.seconds = seconds;
    read.loss = value->Number("reduced_train_loss");
    if (const auto time = record.Number("time_ms")) read.stamp_seconds = *time * 1e-3;
    Take(TrainingLogKind::kMllog, StepLine{{read}, 0}, line);
  }

  void Take(TrainingLogKind kind, StepLine found, absl::string_view line) {
    if (reading_.steps.empty() && !found.steps.empty()) {
      reading_.kind = kind;
      reading_.framework = FrameworkOf(kind);
    }
    for (int64_t i = 0; i < found.broken_count; ++i) {
      reading_.refusals.Add("step line is cut or glued to another", lines_.number(), line);
    }
    for (TrainingStep& step : found.steps) {
      if (kind != reading_.kind) {
        reading_.refusals.Add("step line of another framework than the first", lines_.number(),
                              line);
      } else if (!seen_.insert(step.iteration).second) {
        reading_.refusals.Add("copy of a step: another rank's, or repeated after a restart",
                              lines_.number(), line);
      } else if (reading_.steps.size() >= kTrainingStepLimit) {
        reading_.refusals.Add("stands behind the first million steps", lines_.number(), line);
      } else {
        step.line = lines_.number();
        reading_.steps.push_back(step);
      }
    }
  }

  // What frameworks say in passing.
  void ReadRemarks(absl::string_view line) {
    if (absl::StrContains(line, "deepspeed")) deepspeed_ = true;
    if (absl::StrContains(line, "GPU utilization:") || absl::StrContains(line, "megatron.bridge") ||
        absl::StrContains(line, "megatron/bridge")) {
      bridge_ = true;
    }
    // torchtitan: "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory"
    for (absl::string_view label : {"CUDA capacity: ", "GPU capacity: "}) {
      const size_t at = line.find(label);
      if (at == absl::string_view::npos || !reading_.origin.device.empty()) continue;
      absl::string_view rest = line.substr(at + label.size());
      rest = rest.substr(0, rest.find(" with "));
      rest = rest.substr(0, rest.find(" (0)"));
      reading_.origin.device = std::string(absl::StripAsciiWhitespace(rest.substr(0, 100)));
    }
    // torchtitan: "Training starts at step 1, with local batch size 8, global batch size 64,
    // sequence length 8192, total steps 1000"
    if (!absl::StrContains(line, "Training starts at step")) return;
    for (absl::string_view label : {"local batch size", "global batch size", "sequence length"}) {
      const size_t at = line.find(label);
      if (at == absl::string_view::npos) continue;
      if (const auto number = LeadingNumber(line.substr(at + label.size()))) {
        reading_.facts.Set(label, absl::StrCat(*number));
      }
    }
  }

  static void Raise(std::optional<double> bytes, std::optional<double>* peak) {
    if (bytes && *bytes > 0 && *bytes < 1e15) *peak = std::max(peak->value_or(0), *bytes);
  }

  static std::optional<double> Scaled(absl::string_view line, absl::string_view label,
                                      double scale) {
    const size_t at = line.find(label);
    if (at == absl::string_view::npos) return std::nullopt;
    const auto number = LeadingNumber(line.substr(at + label.size()));
    return number ? std::make_optional(*number * scale) : std::nullopt;
  }

  void ReadMemory(absl::string_view line) {
    if (absl::StrContains(line, "mem-max-allocated-gigabytes:")) bridge_ = true;
    Raise(Scaled(line, "mem-max-allocated-gigabytes:", 1e9), &reading_.allocated_memory_bytes);
    Raise(Scaled(line, "mem-max-reserved-gigabytes:", 1e9), &reading_.reserved_memory_bytes);
    // Megatron-LM: "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated:
    // ..."
    if (absl::StrContains(line, "memory (MB)")) {
      Raise(Scaled(line, "max allocated:", kMebibyte), &reading_.allocated_memory_bytes);
      Raise(Scaled(line, "max reserved:", kMebibyte), &reading_.reserved_memory_bytes);
    }
    // nanotron: "Memory usage: 64.15MiB. Peak allocated 309.29MiB. Peak reserved: 496.00MiB"
    if (absl::StrContains(line, "Peak allocated")) {
      const double unit = absl::StrContains(line, "GiB") ? kGibibyte : kMebibyte;
      Raise(Scaled(line, "Peak allocated", unit), &reading_.allocated_memory_bytes);
      Raise(Scaled(line, "Peak reserved:", unit), &reading_.reserved_memory_bytes);
    }
  }

  void Finish() {
    if (reading_.kind == TrainingLogKind::kMegatron) {
      if (deepspeed_) reading_.framework = "Megatron-DeepSpeed";
      if (bridge_) reading_.framework = "Megatron-Bridge";
    }
    TrainingFacts& facts = reading_.facts;
    for (const TrainingStep& step : reading_.steps) {
      if (!facts.global_batch_size) facts.global_batch_size = step.global_batch_size;
      Raise(step.memory_bytes, &reading_.reserved_memory_bytes);
    }
    if (!facts.sequence_length) facts.sequence_length = SequenceByTokens();
    if (!facts.virtual_pipeline_size && facts.layers_per_virtual_stage && facts.layer_count) {
      const int64_t each = facts.pipeline_parallel_size.value_or(1) *
                           std::max<int64_t>(*facts.layers_per_virtual_stage, 1);
      if (each > 0 && *facts.layer_count % each == 0) {
        facts.virtual_pipeline_size = *facts.layer_count / each;
      }
    }
    ChooseStepTime();
  }

  // consumed_tokens = iteration x batch x sequence; rounded to three digits where it has a suffix.
  // Sequences are multiples of 128 then, and exactly one may lie within the rounding.
  std::optional<int64_t> SequenceByTokens() const {
    for (const TrainingStep& step : reading_.steps) {
      if (!step.consumed_tokens || !step.global_batch_size || step.iteration < 1) continue;
      const double sequences =
          static_cast<double>(step.iteration) * static_cast<double>(*step.global_batch_size);
      const double tokens = *step.consumed_tokens / sequences;
      if (!(tokens >= 1) || tokens > 1e9) continue;
      if (!step.consumed_tokens_rounded) {
        if (std::abs(tokens - std::round(tokens)) < 1e-9) return std::llround(tokens);
        continue;
      }
      constexpr double kMultiple = 128;
      constexpr double kRounding = 0.005;  // half a unit of the third digit of "1.00K"
      const double low = std::ceil(tokens * (1 - kRounding) / kMultiple);
      const double high = std::floor(tokens * (1 + kRounding) / kMultiple);
      if (low == high && low >= 1) return static_cast<int64_t>(low * kMultiple);
    }
    return std::nullopt;
  }

  void ChooseStepTime() {
    std::vector<double> times;
    for (const TrainingStep& step : reading_.steps) {
      if (step.seconds) times.push_back(*step.seconds);
    }
    if (times.empty()) {
      reading_.step_refusal = reading_.steps.empty()
                                  ? "no step was read"
                                  : "the log prints no step time: it follows from tokens per "
                                    "second with the batch and the sequence length";
      return;
    }
    if (times.size() == 1) {
      if (reading_.steps.front().iteration <= 1) {
        reading_.step_refusal = "only one step, which includes start-up";
        return;
      }
      reading_.step_seconds = times[0];
      reading_.step_note = "one step";
      return;
    }
    if (reading_.kind == TrainingLogKind::kDllogger) {
      if (const auto by_stamps = StampDifferences()) {
        reading_.step_seconds = by_stamps;
        reading_.step_note = "median difference of time stamps: printed times are running means";
        return;
      }
    }
    times.erase(times.begin());
    reading_.step_seconds = Median(times);
    absl::StrAppend(&reading_.step_note, reading_.step_note.empty() ? "" : "; ", "median of ",
                    times.size(), " steps without the first");
  }

  std::optional<double> StampDifferences() const {
    std::vector<double> differences;
    for (size_t i = 1; i < reading_.steps.size(); ++i) {
      const TrainingStep& before = reading_.steps[i - 1];
      const TrainingStep& step = reading_.steps[i];
      const int64_t steps = step.iteration - before.iteration;
      if (!step.stamp_seconds || !before.stamp_seconds || steps < 1) continue;
      const double seconds = *step.stamp_seconds - *before.stamp_seconds;
      if (seconds > 0) differences.push_back(seconds / static_cast<double>(steps));
    }
    return Median(std::move(differences));
  }

  LineReader lines_;
  TrainingLogReading reading_;
  absl::flat_hash_set<int64_t> seen_;
  bool deepspeed_ = false;
  bool bridge_ = false;
};

}  // namespace

absl::string_view TrainingLogKindName(TrainingLogKind kind) {
  constexpr std::array<absl::string_view, 6> kNames = {"megatron", "nanotron", "torchtitan",
                                                       "nemo",     "dllogger", "mllog"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<TrainingLogKind> TrainingLogKindOfLine(absl::string_view line) {
  if (absl::StrContains(line, kMllogTag)) return TrainingLogKind::kMllog;
  if (absl::StrContains(line, "DLLL {")) return TrainingLogKind::kDllogger;
  const auto has_steps = [](const std::optional<StepLine>& steps) {
    return steps && !steps->steps.empty();
  };
  if (has_steps(MegatronSteps(line))) return TrainingLogKind::kMegatron;
  if (has_steps(NanotronSteps(line))) return TrainingLogKind::kNanotron;
  if (has_steps(NemoSteps(line))) return TrainingLogKind::kNemo;
  if (has_steps(TorchtitanSteps(line))) return TrainingLogKind::kTorchtitan;
  return std::nullopt;
}

TrainingLogReading ReadTrainingLog(absl::string_view text) { return Reader(text).Read(); }

}  // namespace sextant::ingest
