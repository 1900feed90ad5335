// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_IMAGE_ENCODER_H_
#define SEXTANT_COMMON_ORCHESTRATOR_IMAGE_ENCODER_H_

#include "common/workload/job.h"

namespace sextant::orchestrator {

// The encoder of a serving job's images as a job of its own: one transformer without causal mask on
// one GPU, in 16 bits. A replica of several GPUs encodes on each of them alike.
workload::Job EncoderJob(const workload::Job& job);

// Bytes of its weights on every GPU that encodes for a job's replicas; 0 where others do, and
// without images.
double EncoderBytes(const workload::Job& job);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_IMAGE_ENCODER_H_
