// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_ADAPTER_WEIGHTS_H_
#define SEXTANT_COMMON_ORCHESTRATOR_ADAPTER_WEIGHTS_H_

#include <cstdint>

#include "common/workload/job.h"

namespace sextant::orchestrator {

// Weights of one low-rank adapter on the attention projections of every layer, as one tensor
// parallel rank holds them: of a projection whose output is split the first factor is whole, of one
// whose input is split the second (vLLM without fully_sharded_loras). O(1).
double AdapterParameters(const workload::ModelArchitecture& model, int64_t rank,
                         int64_t tensor_parallel_size);

// Bytes on a rank of all adapters that a replica of a job holds at once, in 16 bits, over all
// pipeline stages; 0 without a serving load of adapters.
double ResidentAdapterBytes(const workload::Job& job);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_ADAPTER_WEIGHTS_H_
