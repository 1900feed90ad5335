// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/training_facts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

using IntegerFact = std::optional<int64_t> TrainingFacts::*;
using BooleanFact = std::optional<bool> TrainingFacts::*;

struct IntegerName {
  absl::string_view name;
  IntegerFact fact;
};
struct BooleanName {
  absl::string_view name;
  BooleanFact fact;
};

// Names of Megatron-LM's arguments, NeMo's, nanotron's and MLPerf's settings.
constexpr IntegerName kIntegers[] = {
    {"world_size", &TrainingFacts::gpu_count},
    {"using_world_size", &TrainingFacts::gpu_count},
    {"dist_world_size", &TrainingFacts::gpu_count},
    {"global_batch_size", &TrainingFacts::global_batch_size},
    {"micro_batch_size", &TrainingFacts::micro_batch_size},
    {"local_batch_size", &TrainingFacts::micro_batch_size},
    {"seq_length", &TrainingFacts::sequence_length},
    {"seq_len", &TrainingFacts::sequence_length},
    {"sequence_length", &TrainingFacts::sequence_length},
    {"encoder_seq_length", &TrainingFacts::sequence_length},
    {"max_sequence_length", &TrainingFacts::sequence_length},
    {"tensor_model_parallel_size", &TrainingFacts::tensor_parallel_size},
    {"tensor_parallel_size", &TrainingFacts::tensor_parallel_size},
    {"pipeline_model_parallel_size", &TrainingFacts::pipeline_parallel_size},
    {"pipeline_parallel_size", &TrainingFacts::pipeline_parallel_size},
    {"virtual_pipeline_model_parallel_size", &TrainingFacts::virtual_pipeline_size},
    {"num_layers_per_virtual_pipeline_stage", &TrainingFacts::layers_per_virtual_stage},
    {"context_parallel_size", &TrainingFacts::context_parallel_size},
    {"expert_model_parallel_size", &TrainingFacts::expert_parallel_size},
    {"expert_parallel_size", &TrainingFacts::expert_parallel_size},
    {"data_parallel_size", &TrainingFacts::data_parallel_size},
    {"zero_stage", &TrainingFacts::zero_stage},
    {"num_layers", &TrainingFacts::layer_count},
    {"num_hidden_layers", &TrainingFacts::layer_count},
    {"hidden_size", &TrainingFacts::hidden_size},
    {"num_attention_heads", &TrainingFacts::attention_head_count},
    {"num_query_groups", &TrainingFacts::kv_head_count},
    {"num_key_value_heads", &TrainingFacts::kv_head_count},
    {"ffn_hidden_size", &TrainingFacts::ffn_size},
    {"intermediate_size", &TrainingFacts::ffn_size},
    {"padded_vocab_size", &TrainingFacts::vocabulary_size},
    {"vocab_size", &TrainingFacts::vocabulary_size},
    {"num_experts", &TrainingFacts::expert_count},
    {"moe_router_topk", &TrainingFacts::experts_per_token}};
constexpr BooleanName kBooleans[] = {
    {"sequence_parallel", &TrainingFacts::sequence_parallel},
    {"swiglu", &TrainingFacts::gated_ffn},
    {"untie_embeddings_and_output_weights", &TrainingFacts::untied_embeddings}};

bool IsYes(absl::string_view value) {
  return value.empty() || absl::EqualsIgnoreCase(value, "true") || value == "1";
}
bool IsNo(absl::string_view value) {
  return absl::EqualsIgnoreCase(value, "false") || absl::EqualsIgnoreCase(value, "none") ||
         absl::EqualsIgnoreCase(value, "null") || value == "0";
}

// Precisions: a wider one never hides a narrower one ("bf16 True" and "fp8 hybrid": fp8).
void SetPrecision(absl::string_view key, absl::string_view value, TrainingFacts* facts) {
  if (IsNo(value)) return;
  if (key == "fp8") {
    facts->precision = "fp8";
  } else if (facts->precision.empty() && (key == "fp16" || key == "bf16") && IsYes(value)) {
    facts->precision = std::string(key);
  } else if (facts->precision.empty() && (key == "precision" || key == "params_dtype")) {
    if (absl::StrContains(value, "bf16") || absl::StrContains(value, "bfloat16")) {
      facts->precision = "bf16";
    } else if (absl::StrContains(value, "16")) {
      facts->precision = "fp16";
    }
  }
}

void SetRecompute(absl::string_view key, absl::string_view value, TrainingFacts* facts) {
  if (!facts->recompute.empty() && facts->recompute != "none") return;
  if (key == "recompute_granularity" || key == "activations_checkpoint_granularity") {
    if (value == "full" || value == "selective") facts->recompute = std::string(value);
    if (IsNo(value)) facts->recompute = "none";
  } else if (key == "checkpoint_activations") {
    facts->recompute = IsYes(value) ? "full" : "none";
  } else if (key == "recompute_activations" && IsYes(value)) {
    facts->recompute = "selective";
  }
}

// "4096updated" and "4096[default]" are how Megatron-DeepSpeed marks where a value came from.
absl::string_view BareValue(absl::string_view value) {
  value = absl::StripAsciiWhitespace(value);
  for (absl::string_view mark : {"updated", "[default]"}) {
    if (absl::EndsWith(value, mark)) value.remove_suffix(mark.size());
  }
  value = absl::StripAsciiWhitespace(value);
  while (!value.empty() && absl::StrContains("'\",[](){}.", value.substr(value.size() - 1))) {
    value.remove_suffix(1);
  }
  while (!value.empty() && absl::StrContains("'\"[({", value.substr(0, 1))) {
    value.remove_prefix(1);
  }
  return absl::StripAsciiWhitespace(value);
}

bool IsDots(absl::string_view word) {
  return !word.empty() && word.find_first_not_of('.') == absl::string_view::npos;
}

void ReadCommandLine(const std::vector<absl::string_view>& words, TrainingFacts* facts) {
  for (size_t i = 0; i < words.size(); ++i) {
    const absl::string_view name = BareValue(words[i]);
    if (!absl::StartsWith(name, "--")) continue;
    if (const size_t equals = name.find('='); equals != absl::string_view::npos) {
      facts->Set(name.substr(0, equals), BareValue(name.substr(equals + 1)));
      continue;
    }
    const absl::string_view next = i + 1 < words.size() ? BareValue(words[i + 1]) : "";
    facts->Set(name, absl::StartsWith(next, "--") ? "" : next);
  }
}

}  // namespace

void TrainingFacts::Set(absl::string_view name, absl::string_view value) {
  if (name.size() > 80) return;
  const std::string key = KeyOf(name);
  value = BareValue(value);
  for (const IntegerName& known : kIntegers) {
    if (known.name != key) continue;
    const auto number = ParseNumber(value);
    std::optional<int64_t>& fact = this->*known.fact;
    if (!fact && number && *number >= 0 && *number < 1e15) fact = static_cast<int64_t>(*number);
    return;
  }
  for (const BooleanName& known : kBooleans) {
    if (known.name != key) continue;
    std::optional<bool>& fact = this->*known.fact;
    if (!fact && (IsYes(value) || IsNo(value))) fact = IsYes(value);
    return;
  }
  if (key == "use_distributed_optimizer" && IsYes(value) && !zero_stage) zero_stage = 1;
  SetPrecision(key, value, this);
  SetRecompute(key, value, this);
}

void ReadFactLine(absl::string_view line, TrainingFacts* facts) {
  constexpr absl::string_view kParameters = "Total number of parameters in billions:";
  if (const size_t at = line.find(kParameters); at != absl::string_view::npos) {
    const auto billions = LeadingNumber(line.substr(at + kParameters.size()));
    if (billions && *billions > 0) facts->parameter_count = *billions * 1e9;
    return;
  }
  // " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)"
  constexpr absl::string_view kPadded = "(new size:";
  if (const size_t at = line.find(kPadded); at != absl::string_view::npos) {
    const std::vector<absl::string_view> words = Words(line.substr(at + kPadded.size()), 1);
    if (!words.empty()) facts->Set("padded_vocab_size", words[0]);
    return;
  }
  if (absl::StrContains(line, "using world size:")) {
    for (absl::string_view part : absl::StrSplit(line.substr(line.find("using world")), ',')) {
      const size_t colon = part.find(':');
      if (colon == absl::string_view::npos) continue;
      const std::vector<absl::string_view> values = Words(part.substr(colon + 1), 1);
      if (!values.empty()) facts->Set(part.substr(0, colon), values[0]);
    }
    return;
  }
  const bool table = absl::StrContains(line, " ..");
  const bool command = absl::StrContains(line, "--");
  const bool list = absl::StrContains(line, "=");
  if (!table && !command && !list) return;
  const std::vector<absl::string_view> words = Words(line, 20'000);
  if (table) {
    for (size_t i = 1; i + 1 < words.size() && i < 8; ++i) {
      if (IsDots(words[i])) facts->Set(words[i - 1], words[i + 1]);
    }
  }
  if (command) ReadCommandLine(words, facts);
  if (list) {
    for (absl::string_view word : words) {
      const size_t equals = word.find('=');
      if (equals == absl::string_view::npos || absl::StartsWith(word, "-")) continue;
      // "TokensArgs(sequence_length=256," names what stands behind the bracket.
      absl::string_view name = word.substr(0, equals);
      name = name.substr(name.find_last_of("([{,") + 1);
      facts->Set(name, word.substr(equals + 1));
    }
  }
}

}  // namespace sextant::ingest
