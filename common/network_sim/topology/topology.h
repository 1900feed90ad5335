// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_H_
#define SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_H_

#include <cstdint>
#include <memory>
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

// An interconnect as a graph. Immutable: safe to share between threads, O(1) to copy. Faults are an
// overlay on the shared graph.
class Topology {
 public:
  // Builds the healthy graph of a valid spec. O(links log links).
  static Topology Create(const TopologySpec& spec);

  // The same interconnect with these faults and no others. INVALID_ARGUMENT where one names no
  // link ("link_faults[i]") or node, with all violations. O(links).
  absl::StatusOr<Topology> WithFaults(const Faults& faults) const;
  // Without faults. O(1).
  Topology Healthy() const;

  int32_t node_count() const { return shape_->node_count; }
  int32_t endpoint_count() const { return shape_->endpoint_count; }
  absl::Span<const DirectedLink> links() const { return links_->links; }
  bool has_removed_links() const { return !links_->removed.empty(); }
  // Physical links that are gone, by their first direction (an even index).
  absl::Span<const int32_t> removed_links() const { return links_->removed; }
  bool has_faults() const { return links_ != healthy_; }

  // Sizes of a ring, line, torus or mesh, on which routing is by dimension; else empty.
  absl::Span<const int64_t> grid() const { return shape_->grid; }
  bool wraps() const { return shape_->wraps; }

  // Surviving links out of `node`, by increasing neighbour.
  absl::Span<const int32_t> LinksFrom(int32_t node) const {
    const size_t first = links_->offsets[static_cast<size_t>(node)];
    return absl::MakeConstSpan(links_->out)
        .subspan(first, links_->offsets[static_cast<size_t>(node) + 1] - first);
  }
  // Index of the surviving link from -> to, or -1. O(log degree).
  int32_t FindLink(int32_t from, int32_t to) const;

  // "ep3", "nvswitch0", "rail1", "leaf2", "spine0", "core1", "router5", "switch".
  std::string NodeName(int32_t node) const;
  std::string LinkName(int32_t link) const;  // "ep3->leaf0"

 private:
  friend class TopologyBuilder;
  struct SwitchGroup {
    std::string name;
    int32_t first = 0;
    bool numbered = true;
  };
  struct Shape {
    int32_t node_count = 0;
    int32_t endpoint_count = 0;
    bool wraps = false;
    std::vector<int64_t> grid;
    std::vector<SwitchGroup> switches;
  };
  struct Links {
    std::vector<DirectedLink> links;
    std::vector<int32_t> out;     // indices of surviving links by source node
    std::vector<size_t> offsets;  // of a node's links in out
    std::vector<int32_t> removed;

    void Index(int32_t node_count);
  };

  std::shared_ptr<const Shape> shape_;
  std::shared_ptr<const Links> healthy_;
  std::shared_ptr<const Links> links_;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_H_
