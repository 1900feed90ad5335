// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_H_
#define SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network_sim/network_case.h"

namespace sextant::network_sim {

// One direction of a physical link. Directions of one link are 2i and 2i+1.
struct DirectedLink {
  int32_t from = 0;
  int32_t to = 0;
  double bandwidth_bytes_per_second = 0;  // after faults; 0: removed
  double latency_seconds = 0;
  int32_t cost = 1;  // of least-cost routing

  friend bool operator==(const DirectedLink&, const DirectedLink&) = default;
};

// An interconnect as a graph. Immutable; safe to share between threads.
class Topology {
 public:
  // Builds the graph of a valid spec and applies the faults. INVALID_ARGUMENT where a fault names
  // no link ("link_faults[i]"). O(links log links).
  static absl::StatusOr<Topology> Create(const TopologySpec& spec,
                                         absl::Span<const LinkFault> faults);

  int32_t node_count() const { return node_count_; }
  int32_t endpoint_count() const { return endpoint_count_; }
  absl::Span<const DirectedLink> links() const { return links_; }
  bool has_removed_links() const { return has_removed_links_; }

  // Sizes of a ring, line, torus or mesh, on which routing is by dimension; else empty.
  absl::Span<const int64_t> grid() const { return grid_; }
  bool wraps() const { return wraps_; }

  // Surviving links out of `node`, by increasing neighbour.
  absl::Span<const int32_t> LinksFrom(int32_t node) const {
    const size_t first = offsets_[static_cast<size_t>(node)];
    return absl::MakeConstSpan(out_).subspan(first,
                                             offsets_[static_cast<size_t>(node) + 1] - first);
  }
  // Index of the surviving link from -> to, or -1. O(log degree).
  int32_t FindLink(int32_t from, int32_t to) const;

  // "ep3", "nvswitch0", "rail1", "leaf2", "spine0", "switch".
  std::string NodeName(int32_t node) const;

 private:
  struct SwitchGroup {
    std::string name;
    int32_t first = 0;
    bool numbered = true;
  };

  void Build(const TopologySpec& spec);
  void BuildGrid(const TopologySpec& spec);
  void BuildServers(const TopologySpec& spec);
  void BuildLeafSpine(const TopologySpec& spec, int64_t leaves, int64_t per_leaf, int32_t cost);
  int32_t AddSwitches(const char* name, int64_t count, bool numbered = true);
  void AddLink(int64_t a, int64_t b, const LinkClass& link, int32_t cost);
  void IndexLinks();

  int32_t node_count_ = 0;
  int32_t endpoint_count_ = 0;
  bool wraps_ = false;
  bool has_removed_links_ = false;
  std::vector<int64_t> grid_;
  std::vector<SwitchGroup> switches_;
  std::vector<DirectedLink> links_;
  std::vector<int32_t> out_;     // link indices by source node
  std::vector<size_t> offsets_;  // of a node's links in out_
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_H_
