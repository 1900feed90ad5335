// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_COLLECTIVES_CONCURRENT_H_
#define SEXTANT_COMMON_COLLECTIVES_CONCURRENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/collectives/collective.h"
#include "common/collectives/collective_parameters.h"
#include "common/hardware/cluster.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/simulate.h"

namespace sextant::collectives {

inline constexpr size_t kMaxConcurrentCount = 64;

// One kind of collective in equal groups of global ranks (rank r is GPU r mod gpus_per_node of node
// r / gpus_per_node), from its start on. `bytes` counts as in Collective.
struct PlacedCollective {
  std::string name;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0;
  std::vector<std::vector<int64_t>> groups;
  double start_seconds = 0;

  friend bool operator==(const PlacedCollective&, const PlacedCollective&) = default;
};

// How network_sim runs it on nodes of `gpus_per_node` GPUs: rings, trees and levels as closed forms
// assume them. Of a group that is not empty.
network_sim::NetworkJob NetworkJobOf(const PlacedCollective& placed, int64_t gpus_per_node);

// Collectives that run at the same time on `gpu_count` GPUs of the first nodes of a valid cluster.
struct ConcurrentCollectives {
  hardware::Cluster cluster;
  int64_t gpu_count = 0;
  std::string profile;  // software; empty or unknown: shared values
  std::vector<PlacedCollective> collectives;
  // Names of links as network_sim gives them: "rail3", "ep0-nvswitch0".
  network_sim::Faults faults;

  friend bool operator==(const ConcurrentCollectives&, const ConcurrentCollectives&) = default;
};

struct ConcurrentTimes {
  struct Times {
    double seconds = 0;        // from its start to its end, beside the others and with the faults
    double alone_seconds = 0;  // on a healthy, otherwise idle cluster: EstimateCollective

    friend bool operator==(const Times&, const Times&) = default;
  };
  std::vector<Times> collectives;  // in the order given
  std::string limiting_link;       // "ep3->rail3"

  friend bool operator==(const ConcurrentTimes&, const ConcurrentTimes&) = default;
};

// The interconnect of the first `node_count` nodes: every GPU on its node's fabric and with its
// share of the node's network interfaces on its rail; with oversubscription, on leaves and spines.
network_sim::TopologySpec TopologyOf(const hardware::Cluster& cluster, int64_t node_count);

// The ranks 0 to gpu_count - 1 in groups of `group_size`, `stride` apart. Sizes must be positive
// and group_size * stride must divide gpu_count.
std::vector<std::vector<int64_t>> StridedGroups(int64_t gpu_count, int64_t group_size,
                                                int64_t stride);

// How long they take, with the faults. The calibrated time alone, of which the part that grows with
// bytes is stretched as much as flows on the explicit interconnect are: equal to EstimateCollective
// where nothing is shared and nothing is broken. The cluster must be valid. INVALID_ARGUMENT with
// all other violations; FAILED_PRECONDITION, naming the ranks, where faults cut a group in two;
// RESOURCE_EXHAUSTED beyond the limits of `options`, or the status of options.check.
// One simulation, and one more for each collective. Thread-safe.
absl::StatusOr<ConcurrentTimes> TimeConcurrent(const ConcurrentCollectives& question,
                                               const CollectiveParameters<double>& parameters,
                                               const network_sim::SimulationOptions& options = {});

}  // namespace sextant::collectives

#endif  // SEXTANT_COMMON_COLLECTIVES_CONCURRENT_H_
