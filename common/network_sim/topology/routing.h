// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_
#define SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

struct RoutingOptions {
  Routing policy = Routing::kAutomatic;
  uint64_t ecmp_seed = 1;
};

// One fixed path per ordered pair of nodes, by the rules of README.md. A grid pair whose
// dimension-ordered path crosses a removed link takes a shortest surviving path, lowest neighbour
// first.
//
// Remembers distances to the last destination: ask for pairs in order of destination.
// Thread-compatible; borrows the topology.
class Router {
 public:
  Router(const Topology& topology, const RoutingOptions& options);

  // Links from source to destination, in order. UNAVAILABLE where no path survives.
  // O(path) on a grid, else O(links of all nodes that are nearer to the destination).
  // `choice` 0 is the policy's own path; others are further least-cost paths, drawn by hash.
  absl::StatusOr<std::vector<int32_t>> Route(int32_t source, int32_t destination,
                                             uint64_t choice = 0);

 private:
  // Empty where the path crosses a removed link.
  std::vector<int32_t> DimensionOrdered(int32_t source, int32_t destination) const;
  // Goes down the distances from `node`; ties by hash with this seed, or the lowest neighbour.
  void Descend(int32_t source, int32_t node, int32_t destination, bool hashed, uint64_t mixed_seed,
               std::vector<int32_t>& path) const;
  void StartFrom(int32_t destination);
  void Settle(int32_t node);
  void Pull(int32_t node);
  void Expand(int32_t node);
  void Relax(int32_t node, int32_t cost);
  void Reach(int32_t node, int64_t distance);

  const Topology& topology_;
  const RoutingOptions options_;
  int32_t distances_to_ = -1;
  std::vector<int64_t> distance_;          // to distances_to_; final up to settled_
  std::vector<int32_t> touched_;           // nodes whose distance was set
  static constexpr int64_t kBuckets = 11;  // one more than the largest cost of a link
  // Nodes by distance mod kBuckets; ~node: its neighbours are that far.
  std::array<std::vector<int32_t>, kBuckets> buckets_;
  std::vector<int32_t> uniform_cost_;  // of all links of a node with many; 0: not one cost
  int64_t settled_ = 0;
  int64_t queued_ = 0;
};

// Which pairs a topology's removed links touch: only their paths differ from the healthy ones.
// O(removed links x links) to make, O(removed links) to ask.
class TouchedPairs {
 public:
  explicit TouchedPairs(const Topology& faulty);

  // False: every least-cost path from source to destination survives. `healthy_path` is the path
  // under `policy` on the healthy topology.
  bool Touches(absl::Span<const int32_t> healthy_path, Routing policy) const;

 private:
  std::vector<int32_t> DistancesFrom(int32_t node) const;

  const Topology& faulty_;
  const Topology healthy_;
  bool all_ = false;  // too many to tell apart
  std::vector<char> removed_;
  struct Removed {
    std::vector<int32_t> from_a;  // cost from one end to every node
    std::vector<int32_t> from_b;
    int32_t cost = 1;
  };
  std::vector<Removed> distances_;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_ROUTING_H_
