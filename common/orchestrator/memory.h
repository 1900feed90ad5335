// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_MEMORY_H_
#define SEXTANT_COMMON_ORCHESTRATOR_MEMORY_H_

#include <cstdint>

#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/prediction.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// Bytes on the heaviest rank of a valid job: the only model behind every out-of-memory verdict.
// The verdict also counts what the device holds beside allocated memory (context, fragmentation).
// Not differentiated: memory parameters are fitted on its parts. O(pipeline ranks).
// `fused_attention` false: the scores of every head are saved for the backward pass.
MemoryPrediction PredictMemory(const workload::Job& job, const MemoryParameters<double>& p,
                               bool fused_attention);

// Bytes of a valid training job on the rank that holds most between micro-batches: weights,
// gradients, optimizer states and workspaces. What the statistics of frameworks that reset them
// before the optimizer step call the peak. O(pipeline ranks).
double ResidentTrainingBytes(const workload::Job& job, const MemoryParameters<double>& p);

// Bytes of activations that one layer saves for one micro-batch on one rank, with 16-bit elements
// (Korthikanti et al. 2022, equations 1 to 5, generalised to grouped heads and gated networks).
// Training in 8 bits saves the inputs of its matrix products in 8 bits.
double LayerActivationBytes(const workload::Job& job, bool mixture, bool fused_attention);

// Micro-batches (in units of one rank's whole share of layers) whose activations pipeline rank
// `rank` holds at once.
double MicroBatchesInFlight(const workload::ParallelPlan& plan, int64_t micro_batch_count,
                            int64_t rank);

// Tokens for which the whole instance of a valid inference job can hold keys and values. 0 when
// weights alone do not fit.
int64_t KvCacheCapacityTokens(const workload::Job& job, const MemoryParameters<double>& p);

// The largest micro-batch size that divides a data parallel rank's share of the batch and with
// which a valid training job fits, the rest of its plan as it is; 0 where not even one sequence
// does. O(log divisors) memory predictions.
int64_t LargestMicroBatchSize(const workload::Job& job, const MemoryParameters<double>& p,
                              bool fused_attention);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_MEMORY_H_
