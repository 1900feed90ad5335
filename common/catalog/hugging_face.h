// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_HUGGING_FACE_H_
#define SEXTANT_COMMON_CATALOG_HUGGING_FACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/workload/model_architecture.h"

namespace sextant::catalog {

// A model read from its configuration, and what was left out or assumed, one sentence each.
struct HuggingFaceModel {
  workload::ModelArchitecture model;
  std::vector<std::string> notes;
};

// The language model that a Hugging Face config.json describes; in a multimodal configuration the
// part under text_config. Fields that are null count as absent; an absent field takes the default
// of its family only where the family has one (4 x hidden for GPT-2), never a guess.
//
// INVALID_ARGUMENT with every violation by the configuration's own field names: a missing
// vocab_size, a family that is not known, layers that this model cannot represent (Mamba, linear
// attention, convolutions, a mixture on some layers only). Thread-safe. O(text).
absl::StatusOr<HuggingFaceModel> ReadHuggingFaceConfig(absl::string_view text,
                                                       absl::string_view file_name);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_HUGGING_FACE_H_
