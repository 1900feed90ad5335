// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/step_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

// Position behind `label` where it stands as a word of its own, from `from` on; npos: nowhere.
size_t BehindLabel(absl::string_view line, absl::string_view label, size_t from = 0) {
  for (size_t at = line.find(label, from); at != absl::string_view::npos;
       at = line.find(label, at + 1)) {
    if (at == 0 || !IsNameChar(line[at - 1])) return at + label.size();
  }
  return absl::string_view::npos;
}

std::optional<double> NumberBehind(absl::string_view line, absl::string_view label) {
  const size_t at = BehindLabel(line, label);
  if (at == absl::string_view::npos) return std::nullopt;
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(at));
  if (!rest.empty() && (rest[0] == ':' || rest[0] == '=')) rest.remove_prefix(1);
  return LeadingNumber(rest);
}

// "<digits> / <digits>" at the start; the first number, and what follows the second.
std::optional<int64_t> IterationOf(absl::string_view text, absl::string_view* rest) {
  text = absl::StripLeadingAsciiWhitespace(text);
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[digits]))) {
    ++digits;
  }
  const auto iteration = ParseCount(text.substr(0, digits));
  text = absl::StripLeadingAsciiWhitespace(text.substr(digits));
  if (!iteration || !absl::StartsWith(text, "/")) return std::nullopt;
  text = absl::StripLeadingAsciiWhitespace(text.substr(1));
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  *rest = text.substr(end);
  return iteration;
}

struct Field {
  std::string key;
  absl::string_view value;
  bool closed = false;  // a '|' stands behind it
};

// "| key: value | key: value ..." pieces.
std::vector<Field> Fields(absl::string_view text) {
  std::vector<Field> fields;
  while (!text.empty() && fields.size() < 200) {
    const size_t bar = text.find('|');
    const absl::string_view piece = text.substr(0, bar);
    if (const size_t colon = piece.find(':'); colon != absl::string_view::npos) {
      fields.push_back({KeyOf(piece.substr(0, std::min<size_t>(colon, 120))),
                        absl::StripAsciiWhitespace(piece.substr(colon + 1)),
                        bar != absl::string_view::npos});
    }
    if (bar == absl::string_view::npos) break;
    text.remove_prefix(bar + 1);
  }
  return fields;
}

// Starts of the pieces of a line that begin with `label` and "<n> / <m> |".
struct Piece {
  int64_t iteration;
  absl::string_view rest;
};
std::vector<Piece> Pieces(absl::string_view line, absl::string_view label) {
  std::vector<Piece> pieces;
  std::vector<size_t> starts;
  size_t at = BehindLabel(line, label);
  while (at != absl::string_view::npos && pieces.size() < 64) {
    absl::string_view rest;
    const auto iteration = IterationOf(line.substr(at), &rest);
    if (iteration && absl::StartsWith(absl::StripLeadingAsciiWhitespace(rest), "|")) {
      pieces.push_back({*iteration, rest});
      starts.push_back(at - label.size());
    }
    at = BehindLabel(line, label, at);
  }
  // A piece ends where the next begins.
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    const size_t begin = static_cast<size_t>(pieces[i].rest.data() - line.data());
    pieces[i].rest = line.substr(begin, starts[i + 1] - begin);
  }
  return pieces;
}

void SetMegatronField(const Field& field, TrainingStep* step) {
  const auto number = ParseNumber(field.value);
  if (!number) return;
  if (field.key == "consumed_samples") {
    step->consumed_samples = number;
  } else if (field.key == "consumed_tokens") {
    step->consumed_tokens = number;
  } else if (field.key == "global_batch_size" && *number > 0 && *number < 1e15) {
    step->global_batch_size = static_cast<int64_t>(*number);
  } else if (field.key == "lm_loss") {
    step->loss = number;
  } else if (field.key == "samples_per_second") {
    step->samples_per_second = number;
  } else if (field.key == "tflops" || field.key == "throughput_per_gpu_tflop_s_gpu") {
    step->teraflop_per_second_per_gpu = number;
  } else if (field.key == "tokens_per_gpu_per_second_tgs" || field.key == "tokens_s_gpu" ||
             field.key == "throughput_token_sec_gpu" || field.key == "tokens_per_second_per_gpu") {
    step->tokens_per_second_per_gpu = number;
  } else if (field.key == "number_of_skipped_iterations" && *number > 0 && *number < 1e15) {
    step->skipped_count = static_cast<int64_t>(*number);
  }
}

}  // namespace

std::optional<StepLine> MegatronSteps(absl::string_view line) {
  if (!absl::StrContains(line, "iteration") || absl::StrContains(line, "train_step_timing")) {
    return std::nullopt;
  }
  StepLine result;
  for (const Piece& piece : Pieces(line, "iteration")) {
    TrainingStep step;
    step.iteration = piece.iteration;
    for (const Field& field : Fields(piece.rest)) {
      if (field.key == "elapsed_time_per_iteration_ms" ||
          field.key == "elapsed_time_per_iteration_s") {
        const auto number = ParseNumber(field.value);
        const double unit = absl::EndsWith(field.key, "_ms") ? 1e-3 : 1.0;
        if (number && field.closed && *number > 0) step.seconds = *number * unit;
      } else {
        SetMegatronField(field, &step);
      }
    }
    if (step.seconds) {
      result.steps.push_back(step);
    } else {
      ++result.broken_count;
    }
  }
  if (result.steps.empty() && result.broken_count == 0) return std::nullopt;
  return result;
}

std::optional<StepLine> NanotronSteps(absl::string_view line) {
  if (!absl::StrContains(line, "iteration:")) return std::nullopt;
  StepLine result;
  for (const Piece& piece : Pieces(line, "iteration:")) {
    TrainingStep step;
    step.iteration = piece.iteration;
    for (const Field& field : Fields(piece.rest)) {
      const auto number = ParseSuffixedNumber(field.value);
      if (!number) continue;
      if (absl::EndsWith(field.key, "time_per_iteration_ms")) {
        if (field.closed && *number > 0) step.seconds = *number * 1e-3;
      } else if (field.key == "consumed_tokens") {
        step.consumed_tokens = number;
        step.consumed_tokens_rounded = !ParseNumber(field.value);
      } else if (field.key == "tokens_per_sec") {
        step.tokens_per_second = number;
      } else if (field.key == "tokens_per_sec_per_gpu") {
        step.tokens_per_second_per_gpu = number;
      } else if (field.key == "global_batch_size" && *number > 0 && *number < 1e15) {
        step.global_batch_size = static_cast<int64_t>(*number);
      } else if (field.key == "model_tflops_per_gpu") {
        step.teraflop_per_second_per_gpu = number;
      } else if (field.key == "lm_loss") {
        step.loss = number;
      } else if (field.key == "cuda_max_memory_reserved") {
        step.memory_bytes = number;
      }
    }
    if (step.seconds) {
      result.steps.push_back(step);
    } else {
      ++result.broken_count;
    }
  }
  if (result.steps.empty() && result.broken_count == 0) return std::nullopt;
  return result;
}

std::optional<StepLine> TorchtitanSteps(absl::string_view line) {
  const size_t at = BehindLabel(line, "step:");
  if (at == absl::string_view::npos || BehindLabel(line, "loss:", at) == absl::string_view::npos) {
    return std::nullopt;
  }
  line = line.substr(at);
  const size_t second = BehindLabel(line, "step:");
  StepLine result;
  // Two steps glued together: the numbers of neither can be told apart from the other's.
  if (second != absl::string_view::npos) {
    result.broken_count = 2;
    return result;
  }
  const auto number = LeadingNumber(line);
  TrainingStep step;
  step.tokens_per_second_per_gpu = NumberBehind(line, "tps:");
  if (!step.tokens_per_second_per_gpu) {
    step.tokens_per_second_per_gpu = NumberBehind(line, "wps:");
  }
  if (!number || *number < 0 || *number > 1e15 || !step.tokens_per_second_per_gpu) {
    result.broken_count = 1;
    return result;
  }
  step.iteration = static_cast<int64_t>(*number);
  step.loss = NumberBehind(line, "loss:");
  step.teraflop_per_second_per_gpu = NumberBehind(line, "tflops:");
  step.model_flops_utilization_percent = NumberBehind(line, "mfu:");
  if (const size_t memory = BehindLabel(line, "memory:"); memory != absl::string_view::npos) {
    absl::string_view rest;
    const auto gibibytes = LeadingNumber(line.substr(memory), &rest);
    if (gibibytes && absl::StartsWith(rest, "GiB")) {
      step.memory_bytes = *gibibytes * kGibibyte;
      if (absl::StartsWith(rest, "GiB(")) step.memory_share_percent = LeadingNumber(rest.substr(4));
    }
  }
  result.steps.push_back(step);
  return result;
}

std::optional<StepLine> NemoSteps(absl::string_view line) {
  constexpr absl::string_view kTiming = "train_step_timing in s";
  if (!absl::StrContains(line, kTiming) || absl::StrContains(line, "DLLL")) return std::nullopt;
  StepLine result;
  TrainingStep step;
  step.seconds = NumberBehind(line, kTiming);
  auto iteration = NumberBehind(line, "global_step");
  if (const size_t at = BehindLabel(line, "iteration"); at != absl::string_view::npos) {
    absl::string_view rest;
    if (const auto counted = IterationOf(line.substr(at), &rest)) {
      iteration = static_cast<double>(*counted);
    }
  }
  if (!step.seconds || !(*step.seconds > 0) || !iteration || *iteration < 0 || *iteration > 1e15) {
    result.broken_count = 1;
    return result;
  }
  step.iteration = static_cast<int64_t>(*iteration);
  step.consumed_samples = NumberBehind(line, "consumed_samples");
  step.loss = NumberBehind(line, "reduced_train_loss");
  const auto batch = NumberBehind(line, "global_batch_size");
  if (batch && *batch >= 1 && *batch < 1e15) step.global_batch_size = static_cast<int64_t>(*batch);
  result.steps.push_back(step);
  return result;
}

std::optional<JsonValue> TaggedJson(absl::string_view line, absl::string_view tag) {
  const size_t at = line.find(tag);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(at + tag.size()));
  if (!absl::StartsWith(rest, "{")) return std::nullopt;
  JsonReader reader(rest);
  JsonValue value = reader.Read();
  if (!reader.ok() || !value.IsObject()) return std::nullopt;
  return value;
}

}  // namespace sextant::ingest
