// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_STEP_GRAPH_H_
#define SEXTANT_COMMON_ORCHESTRATOR_STEP_GRAPH_H_

#include <cstdint>
#include <vector>

#include "common/orchestrator/graph.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// All layers' work on some tokens of one engine step, without attention cores and head.
struct PassPoint {
  int64_t token_count = 0;
  Block embedding;
  Block dense;
  Block mixture;
  std::vector<CollectiveUse> send;  // all stage boundaries
};
struct HeadPoint {
  int64_t token_count = 0;
  Block head;
};
// One attention kernel of a layer.
struct AttentionPoint {
  int full_index = -1;  // of a layer that sees all keys; -1: the model has none
  int windowed_index = -1;
};

// What an engine that batches continuously is priced from: operators at few sizes of a step,
// between which times are taken as straight.
struct StepGraph : Graph {
  std::vector<PassPoint> prompt_passes;  // increasing
  std::vector<PassPoint> decode_passes;
  std::vector<HeadPoint> heads;
  std::vector<int64_t> decode_sequences;  // axes of decode_attention, sequences outermost
  std::vector<int64_t> decode_contexts;
  std::vector<AttentionPoint> decode_attention;
  std::vector<int64_t> chunk_tokens;  // axes of the two below, tokens of the chunk outermost
  std::vector<int64_t> tokens_before;
  std::vector<AttentionPoint> chunk_alone;
  std::vector<AttentionPoint> chunks_filled;  // of chunks_per_fill sequences together
  std::vector<int64_t> chunks_per_fill;       // by chunk_tokens
  AttentionPoint smallest_chunk;
  std::vector<int64_t> transfer_tokens;  // caches handed from one replica to another
  std::vector<int> transfer;             // collective of each
  Block adapter_kernels;                 // that one layer's attention needs for its adapters
  std::vector<int64_t> image_counts;     // encoded together, increasing
  std::vector<Block> image_layers;       // one layer of the encoder over so many
  int embedding_transfer = -1;           // collective that hands a request's images to a replica
  int64_t dense_layer_count = 0;
  int64_t mixture_layer_count = 0;
  int64_t full_attention_layer_count = 0;
  int64_t windowed_layer_count = 0;
};

// The step graph of a valid job with a serving load. O(sizes x operators of a layer): independent
// of requests, layers and GPU count.
StepGraph BuildStepGraph(const workload::Job& job, const GraphOptions& options);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_STEP_GRAPH_H_
