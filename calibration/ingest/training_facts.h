// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_TRAINING_FACTS_H_
#define SEXTANT_CALIBRATION_INGEST_TRAINING_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace sextant::ingest {

// Model, batch and plan of a training run as its log states them; absent is unknown.
struct TrainingFacts {
  std::optional<int64_t> gpu_count;
  std::optional<int64_t> global_batch_size;  // sequences
  std::optional<int64_t> micro_batch_size;
  std::optional<int64_t> sequence_length;
  std::optional<int64_t> tensor_parallel_size;
  std::optional<int64_t> pipeline_parallel_size;
  std::optional<int64_t> virtual_pipeline_size;
  std::optional<int64_t> layers_per_virtual_stage;
  std::optional<int64_t> context_parallel_size;
  std::optional<int64_t> expert_parallel_size;
  std::optional<int64_t> data_parallel_size;
  std::optional<int64_t> zero_stage;
  std::optional<int64_t> layer_count;
  std::optional<int64_t> hidden_size;
  std::optional<int64_t> attention_head_count;
  std::optional<int64_t> kv_head_count;
  std::optional<int64_t> ffn_size;
  std::optional<int64_t> vocabulary_size;
  std::optional<int64_t> expert_count;
  std::optional<int64_t> experts_per_token;
  std::optional<double> parameter_count;
  std::optional<bool> sequence_parallel;
  std::optional<bool> gated_ffn;
  std::optional<bool> untied_embeddings;
  std::string precision;  // "bf16", "fp16", "fp8"
  std::string recompute;  // "full", "selective", "none"
  std::string model;      // a name, where the log gives one

  // Takes a setting by its name in any spelling ("--tensor-model-parallel-size",
  // "tensor_model_parallel_size"), the first value of each; an unknown name or value is no fact.
  void Set(absl::string_view name, absl::string_view value);
};

// Takes the settings of one log line: "name ........ value" tables, command lines ("--name value",
// '--name', 'value'), "name=value" lists, "using world size: 64, data-parallel-size: 1, ...".
// Linear in the line.
void ReadFactLine(absl::string_view line, TrainingFacts* facts);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_TRAINING_FACTS_H_
