// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_SENSITIVITY_H_
#define SEXTANT_COMMON_ORCHESTRATOR_SENSITIVITY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/ports.h"
#include "common/orchestrator/prediction.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// What faster hardware would change: d ln(total_seconds) / d ln(resource) of a valid job, as central
// differences of 1 %; where a choice flips in between, their mean. Of a serving load: of the mean
// whole request of its first thousand, as central differences of 10 %. Matrix
// rates of all precisions move together; node_bandwidth is NVLink or PCIe inside a node,
// network_bandwidth what a node has to others, launch_overhead the host's time for a kernel. Each
// port is asked twice for each resource that it depends on. Errors of the ports pass through.
absl::StatusOr<std::vector<Sensitivity>> Sensitivities(
    const workload::Job& job, const FrameworkParameters<double>& parameters,
    OperatorCostPort& operator_cost, NetworkTimePort& network_time);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_SENSITIVITY_H_
