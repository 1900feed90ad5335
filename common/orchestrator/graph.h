// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_GRAPH_H_
#define SEXTANT_COMMON_ORCHESTRATOR_GRAPH_H_

#include <cstdint>
#include <vector>

#include "common/collectives/collective.h"
#include "common/operator_cost/operator.h"
#include "common/orchestrator/stage_layout.h"
#include "common/serving/serving_load.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// What a use of an operator counts as in a breakdown.
enum class OperatorClass : int { kMatrixMultiply, kAttention, kMemoryBound };
// Which parallelism a collective serves.
enum class CommunicationClass : int { kTensor, kContext, kExpert, kShardedData };

struct OperatorUse {
  int index = 0;     // into Graph::operators
  double count = 1;  // times in one pass through the block
  OperatorClass category = OperatorClass::kMatrixMultiply;
  bool weight_gradient = false;  // may wait until a pipeline would be idle
};
struct CollectiveUse {
  int index = 0;  // into Graph::collectives
  double count = 1;
  CommunicationClass category = CommunicationClass::kTensor;
};

// Work done back to back by one rank.
struct Block {
  std::vector<OperatorUse> operators;
  std::vector<CollectiveUse> collectives;
};

// One piece of the model (a layer, the embedding, the head) in each pass of a training step.
// `recompute` is what the plan runs again before `backward`.
struct TrainingBlocks {
  Block forward;
  Block backward;
  Block recompute;
};

// The distinct operators and collectives of a job: what the ports are asked for, once.
struct Graph {
  std::vector<operator_cost::Operator> operators;
  std::vector<collectives::Collective> collectives;
};

// How a framework lowers a layer.
struct GraphOptions {
  bool fused_attention = true;       // one FlashAttention kernel; false: scores, softmax, context
  double gradient_bytes = 4;         // per parameter on the wire between data parallel ranks
  int64_t pass_tokens = 2048;        // prompt tokens of a micro-batch of a pipelined engine
  serving::EngineSchedule schedule;  // of a serving load
  double loss_pass_factor = 1;       // memory traffic of cross-entropy over that of one kernel
  bool fused_gradient_sum = true;    // micro-batches' gradients are summed inside matrix kernels
  double shard_messages_per_layer = 0;  // of ZeRO-1 and 2 once a step; 0: one for all layers
  double reduce_bucket_bytes = 0;       // of a message of an all-reduce of gradients; 0: all
  bool pipeline_send_split = true;      // tensor parallel ranks share a pipeline send
  bool node_level_dispatch = false;     // a token goes once to each node of its experts
};

// Once per optimizer step on one rank of a stage class.
struct StageStep {
  StageClass stage;
  Block optimizer;                    // update and clipping of this rank's shard
  std::vector<CollectiveUse> reduce;  // gradients over data parallel ranks, parameters back
};

// One training step. A micro-batch on a rank passes through `embedding` and `head` where the rank
// has them, `dense` and `mixture` as often as it has such layers.
struct TrainingGraph : Graph {
  TrainingBlocks embedding;
  TrainingBlocks dense;
  TrainingBlocks mixture;
  TrainingBlocks head;
  std::vector<StageStep> stages;    // per class of equal pipeline ranks
  std::vector<CollectiveUse> send;  // pipeline sends of one micro-batch on one rank, both ways
  std::vector<CollectiveUse> tied_embedding;  // gradient of a table on both ends, once a step
  int64_t micro_batch_count = 1;
};

// One static batch of requests. Decode attention is asked at few context lengths, between which it
// is linear.
struct DecodePoint {
  int64_t context_tokens = 0;
  int full_index = -1;      // of the attention operator of a layer that sees all keys
  int windowed_index = -1;  // of one that sees a window; -1: the model has no such layers
};
struct InferenceGraph : Graph {
  Block prefill_embedding;
  Block prefill_dense;
  Block prefill_mixture;
  Block decode_embedding;
  Block decode_dense;  // without the attention core
  Block decode_mixture;
  Block prefill_head;  // for the last token of each sequence, with sampling
  Block decode_head;
  std::vector<DecodePoint> decode_points;  // increasing; empty when nothing is decoded
  int64_t decode_step_count = 0;           // output tokens after the first
  double tokens_per_step = 1;              // above 1: drafts are checked together
  double step_over_pass = 1;               // time of a step over that of its checking pass
  int64_t sequence_count = 1;              // of one replica
  int64_t prefill_sequence_count = 1;      // of one micro-batch of it
  int64_t decode_sequence_count = 1;
  int64_t prompt_tokens = 0;
  std::vector<CollectiveUse> prefill_send;  // all stage boundaries of one pass
  std::vector<CollectiveUse> decode_send;
  int64_t dense_layer_count = 0;  // over all stages
  int64_t mixture_layer_count = 0;
  int64_t full_attention_layer_count = 0;  // of both together
  int64_t windowed_layer_count = 0;
  double slowest_stage_share = 1;  // layers of the longest pipeline stage over all layers
};

// Sequences of a micro-batch into which a pipelined engine splits `sequence_count` sequences of
// `tokens` new tokens each: an even share per stage where there is one, halved while a micro-batch
// has more than `pass_tokens` tokens (FasterTransformer's getLocalBatchSize).
int64_t MicroBatchSequences(int64_t sequence_count, int64_t tokens, int64_t pipeline_parallel_size,
                            int64_t pass_tokens);

// The graph of a valid training or inference job. Deterministic. O(operators of one layer of each
// kind + pipeline ranks): independent of layers, micro-batches and GPU count.
TrainingGraph BuildTrainingGraph(const workload::Job& job, const GraphOptions& options);
InferenceGraph BuildInferenceGraph(const workload::Job& job, const GraphOptions& options);

// Floating-point operations that the model needs for one step (training) or one batch
// (inference): no recomputation, routed experts only as visited, causal attention counted as half
// of the full matrix, the output head as often as it is evaluated whether tied or not.
double ModelFlopCount(const workload::Job& job);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_GRAPH_H_
