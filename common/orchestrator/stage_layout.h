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

  int64_t LayerCount() const { return dense_layer_count + mixture_layer_count; }
};

// Layers of each of `chunk_count` model chunks in model order; they sum to layer_count. An uneven
// remainder goes to the middle chunks first, since the ends also hold embedding and head.
// O(chunk_count).
std::vector<int64_t> ChunkLayerCounts(int64_t layer_count, int64_t chunk_count);

// The classes of equal pipeline ranks of a valid job, in order of first_rank. Chunk c of an
// interleaved schedule lies on rank c modulo pipeline size. O(chunks x classes).
std::vector<StageClass> StageClasses(const workload::Job& job);

// Ways in which one routed expert is split: the tensor parallel size where expert groups lie in
// the data and context parallel ranks (the usual default), 1 where they reach into the tensor
// parallel ranks.
int64_t ExpertTensorParallelSize(const workload::ParallelPlan& plan);

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

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_STAGE_LAYOUT_H_
