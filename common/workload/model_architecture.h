// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WORKLOAD_MODEL_ARCHITECTURE_H_
#define SEXTANT_COMMON_WORKLOAD_MODEL_ARCHITECTURE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace sextant::workload {

// Multi-head latent attention (DeepSeek-V2): keys and values are rebuilt from one latent vector.
struct LatentAttention {
  int64_t query_lora_rank = 0;  // 0: queries are projected directly
  int64_t kv_lora_rank = 0;     // 0: the model has no latent attention
  int64_t rope_head_size = 0;
  int64_t nope_head_size = 0;
  int64_t value_head_size = 0;

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

// Gated linear attention (Gated DeltaNet of Qwen3-Next): a state of fixed size in place of a cache
// that grows. Each value head keeps a matrix of key_head_size x value_head_size.
struct LinearAttention {
  int64_t key_head_count = 0;
  int64_t value_head_count = 0;  // 0: the model has no linear attention
  int64_t key_head_size = 0;
  int64_t value_head_size = 0;
  int64_t convolution_size = 0;  // taps of the short convolution over queries, keys and values

  int64_t KeySize() const { return key_head_count * key_head_size; }
  int64_t ValueSize() const { return value_head_count * value_head_size; }

  friend bool operator==(const LinearAttention&, const LinearAttention&) = default;
};

// Routed experts in place of the dense feed-forward network.
struct MixtureOfExperts {
  int64_t expert_count = 0;  // 0: a dense model
  int64_t experts_per_token = 0;
  int64_t expert_ffn_size = 0;
  int64_t shared_expert_count = 0;  // experts that every token visits, of expert_ffn_size each
  int64_t dense_layer_count = 0;    // leading layers that keep the dense network
  int64_t shared_ffn_size = 0;      // of all shared experts; 0: count x expert_ffn_size
  double load_imbalance = 1;        // tokens on the busiest expert rank over the mean

  int64_t SharedFfnSize() const {
    return shared_ffn_size > 0 ? shared_ffn_size : shared_expert_count * expert_ffn_size;
  }

  friend bool operator==(const MixtureOfExperts&, const MixtureOfExperts&) = default;
};

// A transformer as its configuration describes it. Decoder-only unless said; sizes are whole,
// before any parallel split.
struct ModelArchitecture {
  std::string name;
  int64_t hidden_size = 0;
  int64_t layer_count = 0;
  int64_t attention_head_count = 0;
  int64_t kv_head_count = 0;  // equal to attention_head_count: multi-head; 1: multi-query
  int64_t head_size = 0;      // need not be hidden_size / attention_head_count
  int64_t ffn_size = 0;       // of a dense layer
  bool gated_ffn = false;     // three matrices (SwiGLU and kin) instead of two
  int64_t vocabulary_size = 0;
  bool tied_embeddings = false;        // the output head reuses the input embedding
  int64_t learned_position_count = 0;  // rows of a learned position table; 0: rotary, ALiBi, none
  bool linear_bias = false;            // biases on all projections (GPT-2, OPT, BLOOM)
  bool qkv_bias = false;               // biases on query, key and value only (Qwen)
  bool layer_norm = false;             // LayerNorm with bias; false: RMSNorm
  bool causal = true;                  // false: an encoder such as BERT
  int64_t sliding_window = 0;          // keys seen by a token; 0: all
  // Every n-th layer sees all keys, the others see sliding_window keys or hold linear_attention.
  // 1: all layers are alike.
  int64_t full_attention_interval = 1;
  bool gated_attention = false;     // queries bring an output gate of their own size (Qwen3-Next)
  int64_t patch_input_size = 0;     // numbers of an image patch, projected; 0: token embedding
  int64_t vocabulary_multiple = 0;  // rows per tensor parallel rank are a multiple; 0: no padding
  LatentAttention latent_attention;
  LinearAttention linear_attention;
  MixtureOfExperts experts;

  bool IsMixture() const { return experts.expert_count > 0; }
  bool IsLatent() const { return latent_attention.kv_lora_rank > 0; }
  bool IsHybrid() const { return full_attention_interval > 1; }

  // Layers by what a token attends to; they sum to layer_count.
  int64_t LinearLayerCount() const;
  int64_t WindowedLayerCount() const;
  int64_t FullAttentionLayerCount() const;

  friend bool operator==(const ModelArchitecture&, const ModelArchitecture&) = default;
};

// Every rule that the architecture breaks (missing sizes, heads that KV heads do not divide, more
// experts per token than experts), by the field paths of the struct. Nothing is guessed: a missing
// vocabulary is a violation, not 0.
absl::Status ValidateModelArchitecture(const ModelArchitecture& model);

// Trainable parameters by part. Exact for the described structure. O(1).
struct ParameterCounts {
  int64_t embedding = 0;    // token and position tables
  int64_t output_head = 0;  // 0 when tied
  int64_t final_norm = 0;
  int64_t attention_per_layer = 0;
  int64_t linear_attention_per_layer = 0;
  int64_t norms_per_layer = 0;
  int64_t dense_ffn_per_layer = 0;
  int64_t routed_experts_per_layer = 0;  // all experts of a mixture layer
  int64_t shared_experts_per_layer = 0;
  int64_t router_per_layer = 0;
  int64_t dense_layer_count = 0;
  int64_t mixture_layer_count = 0;
  int64_t linear_layer_count = 0;  // of the two above

  // Attention of all layers, whatever their kind.
  int64_t AttentionTotal() const;
  int64_t Total() const;
};
ParameterCounts CountParameters(const ModelArchitecture& model);

}  // namespace sextant::workload

#endif  // SEXTANT_COMMON_WORKLOAD_MODEL_ARCHITECTURE_H_
