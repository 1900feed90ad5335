// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/stage_layout.h"

#include <algorithm>
#include <variant>

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

namespace {

// Cuts by the weights that a token visits, counted through the layers and the head: a stage takes
// layers until all so far reach the even share (nanotron's thresholds on cumulative block costs).
// The head is in the shares, and lies on the last stage beside the loss.
std::vector<Chunk> ChunksByCompute(const ModelArchitecture& model, int64_t chunk_count) {
  const workload::ParameterCounts counts = workload::CountParameters(model);
  const double attention = static_cast<double>(counts.attention_per_layer);
  const double dense = attention + static_cast<double>(counts.dense_ffn_per_layer);
  double mixture = attention + static_cast<double>(counts.shared_experts_per_layer);
  if (model.IsMixture()) {
    mixture += static_cast<double>(counts.routed_experts_per_layer) *
               static_cast<double>(model.experts.experts_per_token) /
               static_cast<double>(model.experts.expert_count);
  }
  const double head =
      static_cast<double>(model.vocabulary_size) * static_cast<double>(model.hidden_size);
  const double total = static_cast<double>(counts.dense_layer_count) * dense +
                       static_cast<double>(counts.mixture_layer_count) * mixture + head;
  std::vector<Chunk> chunks(static_cast<size_t>(chunk_count));
  chunks.front().has_embedding = true;
  size_t at = 0;
  double sum = 0;
  const auto place = [&](double cost) {
    ++chunks[at].layer_count;
    sum += cost;
    const bool reached =
        sum * static_cast<double>(chunk_count) >= total * static_cast<double>(at + 1);
    if (reached && at + 1 < chunks.size()) ++at;
  };
  for (int64_t layer = 0; layer < model.layer_count; ++layer) {
    place(layer < counts.dense_layer_count ? dense : mixture);
  }
  chunks.back().has_head = true;
  return chunks;
}

// Of each pipeline rank: tensor, context and data parallel ranks wait for each other, so that a
// slow one slows its whole stage. Ranks are numbered tensor first, pipeline last.
std::vector<double> StageSlowdowns(const workload::Job& job) {
  const ParallelPlan& plan = job.plan;
  std::vector<double> slowdowns(static_cast<size_t>(plan.pipeline_parallel_size), 1.0);
  const int64_t stage_size =
      plan.tensor_parallel_size * plan.context_parallel_size * plan.data_parallel_size;
  for (const workload::Fault& fault : job.faults) {
    if (fault.scope != "rank") continue;
    for (size_t r = 0; r < slowdowns.size(); ++r) {
      const bool hit = fault.index < 0 || fault.index / stage_size == static_cast<int64_t>(r);
      if (hit) slowdowns[r] = std::max(slowdowns[r], fault.slowdown);
    }
  }
  return slowdowns;
}

}  // namespace

std::vector<Chunk> ModelChunks(const workload::Job& job) {
  const ParallelPlan& plan = job.plan;
  const int64_t count = plan.pipeline_parallel_size * plan.virtual_pipeline_size;
  if (plan.stage_layer_counts.empty() && plan.stage_split == workload::StageSplit::kCompute) {
    return ChunksByCompute(job.model, count);
  }
  const std::vector<int64_t> layers = plan.stage_layer_counts.empty()
                                          ? ChunkLayerCounts(job.model.layer_count, count)
                                          : plan.stage_layer_counts;
  std::vector<Chunk> chunks;
  chunks.reserve(layers.size());
  for (const int64_t n : layers) chunks.push_back({.layer_count = n});
  chunks.front().has_embedding = true;
  chunks.back().has_head = true;
  return chunks;
}

namespace {

// Classes in order of first appearance; `class_of_rank`, where given, says which rank is in which.
std::vector<StageClass> Classify(const workload::Job& job, std::vector<size_t>* class_of_rank) {
  const ModelArchitecture& model = job.model;
  const int64_t ranks = job.plan.pipeline_parallel_size;
  const int64_t dense_total =
      model.IsMixture() ? model.experts.dense_layer_count : model.layer_count;
  const std::vector<Chunk> chunks = ModelChunks(job);

  std::vector<StageClass> per_rank(static_cast<size_t>(ranks));
  int64_t first_layer = 0;
  for (size_t c = 0; c < chunks.size(); ++c) {
    StageClass& rank = per_rank[c % per_rank.size()];
    const int64_t count = chunks[c].layer_count;
    const int64_t dense = std::clamp<int64_t>(dense_total - first_layer, 0, count);
    rank.dense_layer_count += dense;
    rank.mixture_layer_count += count - dense;
    first_layer += count;
    rank.has_embedding |= chunks[c].has_embedding;
    rank.has_head |= chunks[c].has_head;
  }

  const std::vector<double> slowdowns = StageSlowdowns(job);
  std::vector<StageClass> classes;
  for (int64_t r = 0; r < ranks; ++r) {
    StageClass& rank = per_rank[static_cast<size_t>(r)];
    rank.slowdown = slowdowns[static_cast<size_t>(r)];
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const StageClass& c) {
      return c.dense_layer_count == rank.dense_layer_count &&
             c.mixture_layer_count == rank.mixture_layer_count &&
             c.has_embedding == rank.has_embedding && c.has_head == rank.has_head &&
             c.slowdown == rank.slowdown;
    });
    if (class_of_rank != nullptr) {
      class_of_rank->push_back(static_cast<size_t>(same - classes.begin()));
    }
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

}  // namespace

std::vector<StageClass> StageClasses(const workload::Job& job) { return Classify(job, nullptr); }

std::vector<size_t> ClassesOfRanks(const workload::Job& job) {
  std::vector<size_t> class_of_rank;
  Classify(job, &class_of_rank);
  return class_of_rank;
}

int64_t ExpertTensorParallelSize(const ParallelPlan& plan) {
  if (plan.expert_tensor_parallel_size > 0) return plan.expert_tensor_parallel_size;
  const int64_t outside_tensor = plan.data_parallel_size * plan.context_parallel_size;
  return outside_tensor % plan.expert_parallel_size == 0 ? plan.tensor_parallel_size : 1;
}

int64_t VocabularyRowsPerRank(const ModelArchitecture& model, int64_t tensor_parallel_size) {
  const int64_t rows = (model.vocabulary_size + tensor_parallel_size - 1) / tensor_parallel_size;
  const int64_t multiple = std::max<int64_t>(1, model.vocabulary_multiple);
  return (rows + multiple - 1) / multiple * multiple;
}

int64_t ShardGroupSize(const ParallelPlan& plan, int64_t group_size) {
  return plan.shard_group_size > 0 ? std::min(plan.shard_group_size, group_size) : group_size;
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
    const double table =
        m.patch_input_size > 0
            ? static_cast<double>(m.patch_input_size + 1)
            : static_cast<double>(VocabularyRowsPerRank(m, plan.tensor_parallel_size));
    rank.embedding = hidden * (table + static_cast<double>(m.learned_position_count));
  }
  if (stage.has_head && !(m.tied_embeddings && stage.has_embedding)) {
    rank.output_head =
        hidden * static_cast<double>(VocabularyRowsPerRank(m, plan.tensor_parallel_size));
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

RankParameters CountTrainedParameters(const workload::Job& job, const StageClass& stage) {
  const auto* work = std::get_if<workload::TrainingWorkload>(&job.workload);
  if (work == nullptr || work->lora_rank == 0) return CountRankParameters(job, stage);
  const ModelArchitecture& m = job.model;
  const double tp = static_cast<double>(job.plan.tensor_parallel_size);
  const double hidden = static_cast<double>(m.hidden_size);
  const double heads = static_cast<double>(m.attention_head_count);
  const double head = static_cast<double>(m.head_size);
  const double query_key_value = (heads + 2 * static_cast<double>(m.kv_head_count)) * head;
  // Two thin matrices beside the query-key-value and the output projection of each layer; the thin
  // side is whole on every rank.
  RankParameters rank;
  rank.matrix = static_cast<double>(stage.LayerCount()) * static_cast<double>(work->lora_rank) *
                (2 * hidden + (query_key_value + heads * head) / tp);
  return rank;
}

}  // namespace sextant::orchestrator
