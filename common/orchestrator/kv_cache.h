// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_KV_CACHE_H_
#define SEXTANT_COMMON_ORCHESTRATOR_KV_CACHE_H_

#include <cstdint>

#include "common/hardware/accelerator.h"
#include "common/workload/model_architecture.h"

// What an inference engine remembers of a sequence, in bytes on one tensor parallel rank, over all
// layers of the model. KV heads that tensor parallelism cannot split are replicated, a latent is
// always whole, states of linear attention are split by value heads. All O(1).
namespace sextant::orchestrator {

// One token in one layer that caches keys and values.
double KvBytesPerTokenPerLayer(const workload::ModelArchitecture& model,
                               int64_t tensor_parallel_size, hardware::Precision precision);

// One token in every layer that caches it, while the context is inside every window.
double KvBytesPerToken(const workload::ModelArchitecture& model, int64_t tensor_parallel_size,
                       hardware::Precision precision);

// States of linear attention of one sequence: a matrix for each value head and the tail of the
// convolution, in 16 bits as engines keep them. 0 for models without.
double StateBytesPerSequence(const workload::ModelArchitecture& model,
                             int64_t tensor_parallel_size);

// A sequence of `tokens` tokens: layers with a window keep no more than it, states stay as they
// are.
double KvCacheBytes(const workload::ModelArchitecture& model, int64_t tensor_parallel_size,
                    hardware::Precision precision, double tokens);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_KV_CACHE_H_
