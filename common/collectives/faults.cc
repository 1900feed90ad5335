// SPDX-License-Identifier: Apache-2.0
#include "common/collectives/faults.h"

namespace sextant::collectives {

hardware::Cluster ApplyFaults(hardware::Cluster cluster, absl::Span<const workload::Fault> faults) {
  for (const workload::Fault& fault : faults) {
    const double fraction = fault.bandwidth_fraction;
    if (!(fraction > 0 && fraction <= 1)) continue;
    if (fault.scope == "network") {
      cluster.network_bandwidth_bytes_per_second *= fraction;
    } else if (fault.scope == "node") {
      cluster.node_bandwidth_bytes_per_second *= fraction;
      cluster.accelerator.nvlink_bandwidth_bytes_per_second *= fraction;
      cluster.accelerator.pcie_bandwidth_bytes_per_second *= fraction;
    }
  }
  return cluster;
}

}  // namespace sextant::collectives
