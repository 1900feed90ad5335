// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <variant>

#include "common/orchestrator/graph.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

using workload::Job;
using workload::ModelArchitecture;

double ModelFlopCount(const Job& job) {
  const ModelArchitecture& m = job.model;
  const workload::ParameterCounts counts = workload::CountParameters(m);
  double per_layer_sum = static_cast<double>(counts.AttentionTotal()) +
                         static_cast<double>(counts.dense_layer_count) *
                             static_cast<double>(counts.dense_ffn_per_layer);
  if (m.IsMixture()) {
    const double visited = static_cast<double>(counts.routed_experts_per_layer) *
                           static_cast<double>(m.experts.experts_per_token) /
                           static_cast<double>(m.experts.expert_count);
    per_layer_sum += static_cast<double>(counts.mixture_layer_count) *
                     (visited + static_cast<double>(counts.shared_experts_per_layer) +
                      static_cast<double>(counts.router_per_layer));
  }
  const double head = static_cast<double>(m.vocabulary_size) * static_cast<double>(m.hidden_size);
  // Scores and context: 2 x 2 flops for each query, key and channel.
  const double width = static_cast<double>(m.attention_head_count) *
                       (m.IsLatent() ? static_cast<double>(m.latent_attention.nope_head_size +
                                                           m.latent_attention.rope_head_size +
                                                           m.latent_attention.value_head_size) /
                                           2
                                     : static_cast<double>(m.head_size));
  const double per_pair = 4 * width;
  const double full = static_cast<double>(m.FullAttentionLayerCount());
  const double windowed = static_cast<double>(m.WindowedLayerCount());
  // Keys seen, and pairs of a prompt, summed over layers.
  const auto seen = [&](double keys) {
    return full * keys + windowed * std::min(keys, static_cast<double>(m.sliding_window));
  };
  const auto prompt_pairs = [&](double tokens) {
    const auto pairs = [&](double w) { return m.causal ? tokens * w - w * w / 2 : tokens * w; };
    return full * pairs(tokens) +
           windowed * pairs(std::min(tokens, static_cast<double>(m.sliding_window)));
  };
  if (const auto* work = std::get_if<workload::TrainingWorkload>(&job.workload)) {
    const double sequence = static_cast<double>(work->sequence_length);
    const double head_tokens = m.patch_input_size > 0 ? 1 : sequence;
    const double forward = 2 * (sequence * per_layer_sum + head_tokens * head);
    const double attention = per_pair * prompt_pairs(sequence);
    // Frozen weights have a data gradient and no weight gradient.
    const double passes = work->lora_rank > 0 ? 2 : 3;
    return (passes * forward + 3 * attention) * static_cast<double>(work->global_batch_size);
  }
  const auto& work = std::get<workload::InferenceWorkload>(job.workload);
  const double prompt = static_cast<double>(work.prompt_tokens);
  const double steps = static_cast<double>(std::max<int64_t>(0, work.output_tokens - 1));
  const double decode_pairs = steps * (seen(prompt + 1) + seen(prompt + steps)) / 2;
  return static_cast<double>(work.batch_size) *
         (2 * (prompt + steps) * per_layer_sum + 2 * (1 + steps) * head +
          per_pair * (prompt_pairs(prompt) + decode_pairs));
}

}  // namespace sextant::orchestrator
