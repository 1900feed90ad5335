// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_COLLECTIVES_FAULTS_H_
#define SEXTANT_COMMON_COLLECTIVES_FAULTS_H_

#include "absl/types/span.h"
#include "common/hardware/cluster.h"
#include "common/workload/job.h"

namespace sextant::collectives {

// `cluster` with what the faults leave of its bandwidths: scope "network" scales the network,
// scope "node" everything inside a node. Faults of one scope multiply. A collective waits for its
// slowest member, so one derated link is felt as if all were. Unknown scopes and fractions outside
// (0, 1] are rejected by workload::ValidateJob and ignored here.
hardware::Cluster ApplyFaults(hardware::Cluster cluster, absl::Span<const workload::Fault> faults);

}  // namespace sextant::collectives

#endif  // SEXTANT_COMMON_COLLECTIVES_FAULTS_H_
