// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_RESILIENCE_CHECKPOINT_H_
#define SEXTANT_COMMON_RESILIENCE_CHECKPOINT_H_

#include "common/resilience/goodput.h"
#include "common/workload/job.h"

namespace sextant::resilience {

// Bytes of the full training state of a valid training job: of each trained parameter a 16-bit
// value, a 32-bit master copy and the optimizer's 32-bit states (two of Adam, one of SGD). The 14
// bytes of Adam make 2.24 TiB of BLOOM's 176 billion; its chronicle says 2.3 TB. O(pipeline ranks).
double CheckpointBytes(const workload::Job& job);

// How long a checkpoint of this job stops it: its bytes over what its GPUs write together, or
// profile.checkpoint_seconds where the profile states no rate.
double CheckpointSeconds(const workload::Job& job, const ReliabilityProfile& profile);

}  // namespace sextant::resilience

#endif  // SEXTANT_COMMON_RESILIENCE_CHECKPOINT_H_
