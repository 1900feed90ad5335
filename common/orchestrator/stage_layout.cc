// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/stage_layout.h"

#include <algorithm>

namespace sextant::orchestrator {

using workload::ModelArchitecture;
using workload::ParallelPlan;

std::vector<int64_t> ChunkLayerCounts(int64_t layer_count, int64_t chunk_count) {
  std::vector<int64_t> counts(static_cast<size_t>(chunk_count), layer_count / chunk_count);
  int64_t remainder = layer_count % chunk_count;
  for (int64_t c = 1; c + 1 < chunk_count && remainder > 0; ++c, --remainder) {
    ++counts[static_cast<size_t>(c)];
  }
  // remainder < chunk_count, so that at most the first chunk is still owed one.
  if (remainder > 0) ++counts.front();
  return counts;
}

std::vector<StageClass> StageClasses(const workload::Job& job) {
  const ModelArchitecture& model = job.model;
  const int64_t ranks = job.plan.pipeline_parallel_size;
  const int64_t chunks = ranks * job.plan.virtual_pipeline_size;
  const int64_t dense_total =
      model.IsMixture() ? model.experts.dense_layer_count : model.layer_count;
  const std::vector<int64_t> layers = ChunkLayerCounts(model.layer_count, chunks);

  std::vector<StageClass> per_rank(static_cast<size_t>(ranks));
  int64_t first_layer = 0;
  for (int64_t c = 0; c < chunks; ++c) {
    StageClass& rank = per_rank[static_cast<size_t>(c % ranks)];
    const int64_t count = layers[static_cast<size_t>(c)];
    const int64_t dense = std::clamp<int64_t>(dense_total - first_layer, 0, count);
    rank.dense_layer_count += dense;
    rank.mixture_layer_count += count - dense;
    first_layer += count;
  }
  per_rank.front().has_embedding = true;
  per_rank.back().has_head = true;

  std::vector<StageClass> classes;
  for (int64_t r = 0; r < ranks; ++r) {
    const StageClass& rank = per_rank[static_cast<size_t>(r)];
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const StageClass& c) {
      return c.dense_layer_count == rank.dense_layer_count &&
             c.mixture_layer_count == rank.mixture_layer_count &&
             c.has_embedding == rank.has_embedding && c.has_head == rank.has_head;
    });
    if (same != classes.end()) {
      ++same->rank_count;
      continue;
    }
    classes.push_back(rank);
    classes.back().first_rank = r;
    classes.back().rank_count = 1;
  }
  return classes;
}

int64_t ExpertTensorParallelSize(const ParallelPlan& plan) {
  const int64_t outside_tensor = plan.data_parallel_size * plan.context_parallel_size;
  return outside_tensor % plan.expert_parallel_size == 0 ? plan.tensor_parallel_size : 1;
}

RankParameters CountRankParameters(const workload::Job& job, const StageClass& stage) {
  const ModelArchitecture& m = job.model;
  const ParallelPlan& plan = job.plan;
  const workload::ParameterCounts counts = workload::CountParameters(m);
  const double tp = static_cast<double>(plan.tensor_parallel_size);
  const double layers = static_cast<double>(stage.LayerCount());
  const double dense_layers = static_cast<double>(stage.dense_layer_count);
  const double mixture_layers = static_cast<double>(stage.mixture_layer_count);
  const double hidden = static_cast<double>(m.hidden_size);

  RankParameters rank;
  if (stage.has_embedding) {
    rank.embedding = hidden * (static_cast<double>(m.vocabulary_size) / tp +
                               static_cast<double>(m.learned_position_count));
  }
  if (stage.has_head && !(m.tied_embeddings && stage.has_embedding)) {
    rank.output_head = hidden * static_cast<double>(m.vocabulary_size) / tp;
  }
  rank.norm = layers * static_cast<double>(counts.norms_per_layer) +
              mixture_layers * static_cast<double>(counts.router_per_layer) +
              (stage.has_head ? static_cast<double>(counts.final_norm) : 0.0);

  // Layers of a hybrid model are taken as evenly spread over stages.
  double attention =
      static_cast<double>(counts.AttentionTotal()) / static_cast<double>(m.layer_count) / tp;
  if (m.IsLatent()) {
    const workload::LatentAttention& l = m.latent_attention;
    const double down =
        hidden * static_cast<double>(l.kv_lora_rank + l.rope_head_size + l.query_lora_rank);
    attention = down + (attention * tp - down) / tp;
  } else if (plan.tensor_parallel_size > m.kv_head_count) {
    // KV projections are held whole heads at a time, not divided below one head.
    const double cached =
        1 - static_cast<double>(m.LinearLayerCount()) / static_cast<double>(m.layer_count);
    const double kv = 2 * hidden * static_cast<double>(m.head_size) * cached;
    const double kv_all = kv * static_cast<double>(m.kv_head_count);
    attention = (attention * tp - kv_all) / tp + kv;
  }
  rank.matrix = layers * attention +
                dense_layers * static_cast<double>(counts.dense_ffn_per_layer) / tp +
                mixture_layers * static_cast<double>(counts.shared_experts_per_layer) / tp;
  rank.expert = mixture_layers * static_cast<double>(counts.routed_experts_per_layer) /
                static_cast<double>(plan.expert_parallel_size * ExpertTensorParallelSize(plan));
  return rank;
}

}  // namespace sextant::orchestrator
