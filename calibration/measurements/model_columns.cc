// SPDX-License-Identifier: Apache-2.0
#include "calibration/measurements/model_columns.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sextant::calibration {

workload::ModelArchitecture ReadModel(RowReader& row, Lookups& lookups, RowFacts* facts) {
  const absl::string_view name = row.Text("model");
  const auto* known = name.empty() ? nullptr : &lookups.Model(name);
  if (known != nullptr && !known->ok()) known = nullptr;
  workload::ModelArchitecture model;
  if (known != nullptr) model = **known;
  const workload::ModelArchitecture catalog_model = model;
  model.name = std::string(name);

  std::vector<std::string> lacking;
  const auto take = [&](absl::string_view column, int64_t* size) {
    if (const auto value = row.Integer(column)) {
      *size = *value;
    } else if (known == nullptr && !row.Has(column)) {
      lacking.emplace_back(column);
    }
  };
  take("hidden", &model.hidden_size);
  take("layers", &model.layer_count);
  take("heads", &model.attention_head_count);
  take("vocab", &model.vocabulary_size);
  const auto ffn = row.Integer("ffn");
  const auto experts = row.Integer("experts");
  if (ffn) {
    model.ffn_size = *ffn;
  } else if (known == nullptr) {
    lacking.emplace_back("ffn");
  }
  if (!lacking.empty()) {
    row.violations().Add(
        "model", absl::StrCat("\"", name, "\" is not in the catalog and the row does not state ",
                              absl::StrJoin(lacking, ", ")));
    return model;
  }
  // What a catalog entry of other sizes says about heads does not hold for the row's.
  const bool same_heads = known != nullptr && model.hidden_size == catalog_model.hidden_size &&
                          model.attention_head_count == catalog_model.attention_head_count;
  if (const auto kv_heads = row.Integer("kv_heads")) {
    model.kv_head_count = *kv_heads;
  } else if (!same_heads) {
    model.kv_head_count = model.attention_head_count;
    facts->warnings.push_back("kv_heads not stated: heads assumed");
  }
  if (!same_heads && model.attention_head_count > 0) {
    model.head_size = model.hidden_size / model.attention_head_count;
  }
  if (const auto gated = row.Integer("gated_ffn", 0)) {
    model.gated_ffn = *gated != 0;
  } else if (known == nullptr) {
    facts->warnings.push_back("gated_ffn not stated: 0 assumed");
  }
  if (const auto tied = row.Integer("tied_embeddings", 0)) {
    model.tied_embeddings = *tied != 0;
  } else if (known == nullptr) {
    facts->warnings.push_back("tied_embeddings not stated: 0 assumed");
  }
  if (known == nullptr) {
    // Plain feed-forward networks come with the GPT recipe (biases, LayerNorm, learned positions),
    // gated ones with Llama's.
    model.linear_bias = !model.gated_ffn;
    model.layer_norm = !model.gated_ffn;
    if (!model.gated_ffn) model.learned_position_count = row.Integer("seq").value_or(0);
    if (experts && *experts > 1) {
      model.experts.expert_count = *experts;
      model.experts.expert_ffn_size = model.ffn_size;
    }
    facts->warnings.push_back("model is not in the catalog: taken from the row's sizes");
  } else if (experts && *experts > 1) {
    model.experts.expert_count = *experts;
    if (model.experts.expert_ffn_size == 0) model.experts.expert_ffn_size = model.ffn_size;
  }
  if (model.experts.expert_count > 0) {
    if (const auto topk = row.Integer("topk")) {
      model.experts.experts_per_token = *topk;
    } else if (model.experts.experts_per_token == 0) {
      row.Missing("topk");
    }
    // A proxy of fewer layers keeps at most as many dense ones.
    if (model.experts.dense_layer_count > model.layer_count) {
      model.experts.dense_layer_count = model.layer_count;
    }
  }
  return model;
}

}  // namespace sextant::calibration
