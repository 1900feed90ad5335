// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_HARDWARE_WHAT_IF_H_
#define SEXTANT_COMMON_HARDWARE_WHAT_IF_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/hardware/cluster.h"

namespace sextant::hardware {

template <typename Value>
using ByName = std::map<std::string, Value, std::less<>>;

// One stack of memory of a generation.
struct MemoryStack {
  double bandwidth_bytes_per_second = 0;
  int64_t capacity_bytes = 0;

  friend bool operator==(const MemoryStack&, const MemoryStack&) = default;
};

// Generations of technology. The shipped tables and their sources: datasets/technology.
struct Technologies {
  ByName<double> logic_rate;  // arithmetic at equal area and power, over that of any one node
  ByName<std::string> logic_of_architecture;
  ByName<MemoryStack> memory;
  ByName<int64_t> stacks_of_accelerator;
  ByName<double> node_fabric_bytes_per_second;  // of one GPU, per direction
  ByName<double> network_bytes_per_second;      // of one interface, one for each GPU; per direction

  friend bool operator==(const Technologies&, const Technologies&) = default;
};
// Every rule that the tables break: rates above 0, architectures with a known node.
absl::Status ValidateTechnologies(const Technologies& technologies);

// Hypothetical hardware: generations that replace the cluster's own (empty: as it is), and factors
// on top of them.
struct WhatIf {
  std::string logic;        // arithmetic, multiprocessors and L2 bandwidth of this node
  std::string memory;       // device memory of as many stacks as the accelerator has
  std::string node_fabric;  // links inside a node
  std::string network;      // interfaces between nodes
  ByName<double> scale;     // by property: "hbm_bandwidth" -> 2

  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

// Properties that `scale` knows: "matrix_rate" (of all precisions), "vector_rate", "sm_count",
// "l2_bandwidth", "l2_capacity", "hbm_bandwidth", "hbm_capacity", "node_bandwidth",
// "node_latency", "network_bandwidth", "network_latency".
std::vector<std::string> ScalableProperties();

// Changes `cluster` accordingly. An accelerator that changes is no longer the measured one: it is
// renamed ("h100-sxm5-80gb-what-if"), and keeps the fitted parameters of the original as its
// donor's, so that answers count as extrapolated. INVALID_ARGUMENT with every violation, unknown
// names with the nearest; paths "logic", "scale[hbm_bandwidth]", ...
absl::Status Apply(const WhatIf& what_if, const Technologies& technologies, Cluster& cluster);

}  // namespace sextant::hardware

#endif  // SEXTANT_COMMON_HARDWARE_WHAT_IF_H_
