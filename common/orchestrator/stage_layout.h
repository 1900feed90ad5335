// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_STAGE_LAYOUT_H_
#define SEXTANT_COMMON_ORCHESTRATOR_STAGE_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "common/workload/job.h"

namespace sextant::orchestrator {

// Pipeline ranks that hold the same work. A rank may hold several model chunks (interleaved).
struct StageClass {
  int64_t first_rank = 0;  // lowest pipeline rank of the class
  int64_t rank_count = 0;
  int64_t dense_layer_count = 0;    // on one rank, over its chunks
  int64_t mixture_layer_count = 0;  // on one rank, over its chunks
  bool has_embedding = false;
  bool has_head = false;
  double slowdown = 1;  // kernel time of the slowest rank of the stage over a healthy one's

  int64_t LayerCount() const { return dense_layer_count + mixture_layer_count; }
};

// Layers of each of `chunk_count` model chunks in model order; they sum to layer_count. An uneven
// remainder goes to the middle chunks first, since the ends also hold embedding and head.
// O(chunk_count).
std::vector<int64_t> ChunkLayerCounts(int64_t layer_count, int64_t chunk_count);

// One model chunk of a pipeline, in model order.
struct Chunk {
  int64_t layer_count = 0;
  bool has_embedding = false;
  bool has_head = false;
};

// How a valid job cuts its model into pipeline x virtual chunks: as plan.stage_layer_counts lists
// them, evenly (ChunkLayerCounts), or by arithmetic. The last walks over the layers and the output
// head and starts a new chunk once the weights of those before exceed the chunk's share; chunks at
// the end may stay empty (nanotron, pipeline_parallel/engine). O(layers).
std::vector<Chunk> ModelChunks(const workload::Job& job);

// The classes of equal pipeline ranks of a valid job, in order of first_rank. Chunk c of an
// interleaved schedule lies on rank c modulo pipeline size. O(chunks x classes).
std::vector<StageClass> StageClasses(const workload::Job& job);

// Index into StageClasses of each pipeline rank. O(chunks x classes).
std::vector<size_t> ClassesOfRanks(const workload::Job& job);

// Ways in which one routed expert is split: the tensor parallel size where expert groups lie in
// the data and context parallel ranks (the usual default), 1 where they reach into the tensor
// parallel ranks.
int64_t ExpertTensorParallelSize(const workload::ParallelPlan& plan);

// Rows of the vocabulary tables on one tensor parallel rank, padding included.
int64_t VocabularyRowsPerRank(const workload::ModelArchitecture& model,
                              int64_t tensor_parallel_size);

// Ranks over which ZeRO shards what `group_size` ranks hold alike.
int64_t ShardGroupSize(const workload::ParallelPlan& plan, int64_t group_size);

// Parameters that one rank of `stage` holds after tensor and expert splits, before ZeRO.
struct RankParameters {
  double embedding = 0;    // token and position tables; 16-bit also in quantised models
  double output_head = 0;  // its own copy of a tied table on a later stage included
  double norm = 0;         // norms, biases counted with their matrices, and routers
  double matrix = 0;       // attention, dense and shared feed-forward
  double expert = 0;       // routed experts

  double Dense() const { return embedding + output_head + norm + matrix; }
  double Total() const { return Dense() + expert; }
};
RankParameters CountRankParameters(const workload::Job& job, const StageClass& stage);

// Those of them that are trained: all, or the low-rank adapters.
RankParameters CountTrainedParameters(const workload::Job& job, const StageClass& stage);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_STAGE_LAYOUT_H_
