// SPDX-License-Identifier: Apache-2.0
#include "common/workload/model_architecture.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::workload {
namespace {

// Far above any model, low enough that products of three sizes stay inside int64.
constexpr int64_t kLargestSize = int64_t{1} << 20;
constexpr int64_t kLargestVocabulary = int64_t{1} << 26;

void RequireBetween(base::Violations& violations, absl::string_view field, int64_t value,
                    int64_t low, int64_t high) {
  if (value == 0 && low > 0) {
    violations.Add(field, "is missing; it cannot be guessed");
  } else if (value < low || value > high) {
    violations.Add(field, absl::StrCat("is ", value, " but must be between ", low, " and ", high));
  }
}

int64_t AttentionParameters(const ModelArchitecture& m) {
  if (m.IsLatent()) {
    const LatentAttention& l = m.latent_attention;
    const int64_t query_head = l.nope_head_size + l.rope_head_size;
    const int64_t query = l.query_lora_rank > 0
                              ? m.hidden_size * l.query_lora_rank + l.query_lora_rank +
                                    l.query_lora_rank * m.attention_head_count * query_head
                              : m.hidden_size * m.attention_head_count * query_head;
    const int64_t latent = m.hidden_size * (l.kv_lora_rank + l.rope_head_size) + l.kv_lora_rank;
    const int64_t expand =
        l.kv_lora_rank * m.attention_head_count * (l.nope_head_size + l.value_head_size);
    return query + latent + expand + m.attention_head_count * l.value_head_size * m.hidden_size;
  }
  const int64_t query_size = m.attention_head_count * m.head_size;
  const int64_t kv_size = m.kv_head_count * m.head_size;
  int64_t count = m.hidden_size * ((m.gated_attention ? 2 : 1) * query_size + 2 * kv_size) +
                  query_size * m.hidden_size;
  if (m.linear_bias || m.qkv_bias) count += query_size + 2 * kv_size;
  if (m.linear_bias) count += m.hidden_size;
  return count;
}

// Projections of queries, keys, values and gates; two scalars a head; convolution; output.
int64_t LinearAttentionParameters(const ModelArchitecture& m) {
  const LinearAttention& l = m.linear_attention;
  const int64_t keys = l.KeySize();
  const int64_t values = l.ValueSize();
  return m.hidden_size * (2 * keys + 2 * values + 2 * l.value_head_count) +
         (2 * keys + values) * l.convolution_size + 2 * l.value_head_count + l.value_head_size +
         values * m.hidden_size;
}

int64_t FfnParameters(const ModelArchitecture& m, int64_t ffn_size) {
  int64_t count = (m.gated_ffn ? 3 : 2) * m.hidden_size * ffn_size;
  if (m.linear_bias) count += (m.gated_ffn ? 2 : 1) * ffn_size + m.hidden_size;
  return count;
}

void ValidateHybrid(base::Violations& violations, const ModelArchitecture& m) {
  const LinearAttention& l = m.linear_attention;
  const bool linear = l != LinearAttention();
  if (linear) {
    RequireBetween(violations, "linear_attention.key_head_count", l.key_head_count, 1, 65'536);
    RequireBetween(violations, "linear_attention.value_head_count", l.value_head_count, 1, 65'536);
    RequireBetween(violations, "linear_attention.key_head_size", l.key_head_size, 1, 65'536);
    RequireBetween(violations, "linear_attention.value_head_size", l.value_head_size, 1, 65'536);
    RequireBetween(violations, "linear_attention.convolution_size", l.convolution_size, 0, 1'024);
  }
  if (m.full_attention_interval > 1 && linear == (m.sliding_window > 0)) {
    violations.Add("full_attention_interval",
                   absl::StrCat("is ", m.full_attention_interval,
                                ": the other layers need either sliding_window or "
                                "linear_attention, and not both"));
  }
  if (m.full_attention_interval == 1 && linear) {
    violations.Add("linear_attention",
                   "needs full_attention_interval above 1; a model without any attention that "
                   "caches keys cannot be represented");
  }
}

}  // namespace

int64_t ModelArchitecture::FullAttentionLayerCount() const {
  if (IsHybrid()) return layer_count / full_attention_interval;
  return sliding_window > 0 ? 0 : layer_count;
}
int64_t ModelArchitecture::LinearLayerCount() const {
  return IsHybrid() && linear_attention.value_head_count > 0
             ? layer_count - FullAttentionLayerCount()
             : 0;
}
int64_t ModelArchitecture::WindowedLayerCount() const {
  return layer_count - FullAttentionLayerCount() - LinearLayerCount();
}

absl::Status ValidateModelArchitecture(const ModelArchitecture& m) {
  base::Violations violations;
  RequireBetween(violations, "hidden_size", m.hidden_size, 1, kLargestSize);
  RequireBetween(violations, "layer_count", m.layer_count, 1, 100'000);
  RequireBetween(violations, "attention_head_count", m.attention_head_count, 1, 65'536);
  RequireBetween(violations, "vocabulary_size", m.vocabulary_size, 1, kLargestVocabulary);
  RequireBetween(violations, "learned_position_count", m.learned_position_count, 0,
                 kLargestVocabulary);
  RequireBetween(violations, "sliding_window", m.sliding_window, 0, int64_t{1} << 40);
  RequireBetween(violations, "full_attention_interval", m.full_attention_interval, 1, 100'000);
  ValidateHybrid(violations, m);
  RequireBetween(violations, "patch_input_size", m.patch_input_size, 0, kLargestSize);
  RequireBetween(violations, "vocabulary_multiple", m.vocabulary_multiple, 0, kLargestSize);
  if (!m.IsLatent()) {
    RequireBetween(violations, "kv_head_count", m.kv_head_count, 1, 65'536);
    RequireBetween(violations, "head_size", m.head_size, 1, 65'536);
    if (m.kv_head_count > 0 && m.attention_head_count % m.kv_head_count != 0) {
      violations.Add("kv_head_count",
                     absl::StrCat("is ", m.kv_head_count, " but must divide attention_head_count ",
                                  m.attention_head_count));
    }
  } else {
    const LatentAttention& l = m.latent_attention;
    RequireBetween(violations, "latent_attention.kv_lora_rank", l.kv_lora_rank, 1, kLargestSize);
    RequireBetween(violations, "latent_attention.query_lora_rank", l.query_lora_rank, 0,
                   kLargestSize);
    RequireBetween(violations, "latent_attention.rope_head_size", l.rope_head_size, 1, 65'536);
    RequireBetween(violations, "latent_attention.nope_head_size", l.nope_head_size, 1, 65'536);
    RequireBetween(violations, "latent_attention.value_head_size", l.value_head_size, 1, 65'536);
  }
  const bool has_dense_layer = !m.IsMixture() || m.experts.dense_layer_count > 0;
  RequireBetween(violations, "ffn_size", m.ffn_size, has_dense_layer ? 1 : 0, kLargestSize);
  if (m.experts.expert_count != 0) {
    const MixtureOfExperts& e = m.experts;
    RequireBetween(violations, "experts.expert_count", e.expert_count, 1, 65'536);
    RequireBetween(violations, "experts.experts_per_token", e.experts_per_token, 1, 65'536);
    RequireBetween(violations, "experts.expert_ffn_size", e.expert_ffn_size, 1, kLargestSize);
    RequireBetween(violations, "experts.shared_expert_count", e.shared_expert_count, 0, 1'024);
    RequireBetween(violations, "experts.dense_layer_count", e.dense_layer_count, 0, m.layer_count);
    RequireBetween(violations, "experts.shared_ffn_size", e.shared_ffn_size, 0, kLargestSize);
    if (!(e.load_imbalance >= 1 && e.load_imbalance <= 1024)) {
      violations.Add("experts.load_imbalance",
                     absl::StrCat("is ", e.load_imbalance, " but must be between 1 and 1024"));
    }
    if (e.experts_per_token > e.expert_count) {
      violations.Add("experts.experts_per_token",
                     absl::StrCat("is ", e.experts_per_token, " but must be at most expert_count ",
                                  e.expert_count));
    }
  }
  return violations.ToStatus();
}

int64_t ParameterCounts::AttentionTotal() const {
  return (dense_layer_count + mixture_layer_count - linear_layer_count) * attention_per_layer +
         linear_layer_count * linear_attention_per_layer;
}

int64_t ParameterCounts::Total() const {
  return embedding + output_head + final_norm + AttentionTotal() +
         dense_layer_count * (norms_per_layer + dense_ffn_per_layer) +
         mixture_layer_count * (norms_per_layer + routed_experts_per_layer +
                                shared_experts_per_layer + router_per_layer);
}

ParameterCounts CountParameters(const ModelArchitecture& m) {
  ParameterCounts counts;
  const int64_t norm = m.hidden_size * (m.layer_norm ? 2 : 1);
  const int64_t table = m.patch_input_size > 0 ? m.patch_input_size + 1 : m.vocabulary_size;
  counts.embedding = (table + m.learned_position_count) * m.hidden_size;
  counts.output_head = m.tied_embeddings ? 0 : m.vocabulary_size * m.hidden_size;
  counts.final_norm = norm;
  counts.attention_per_layer = AttentionParameters(m);
  counts.linear_layer_count = m.LinearLayerCount();
  if (counts.linear_layer_count > 0) {
    counts.linear_attention_per_layer = LinearAttentionParameters(m);
  }
  counts.norms_per_layer = 2 * norm;
  counts.dense_ffn_per_layer = FfnParameters(m, m.ffn_size);
  counts.dense_layer_count = m.layer_count;
  if (m.IsMixture()) {
    const MixtureOfExperts& e = m.experts;
    const int64_t expert = FfnParameters(m, e.expert_ffn_size);
    counts.routed_experts_per_layer = e.expert_count * expert;
    counts.shared_experts_per_layer =
        e.SharedFfnSize() > 0 ? FfnParameters(m, e.SharedFfnSize()) : 0;
    counts.router_per_layer = m.hidden_size * e.expert_count;
    counts.dense_layer_count = e.dense_layer_count;
    counts.mixture_layer_count = m.layer_count - e.dense_layer_count;
  }
  return counts;
}

}  // namespace sextant::workload
