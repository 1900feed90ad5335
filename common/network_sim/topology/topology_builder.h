// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_BUILDER_H_
#define SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_BUILDER_H_

#include <cstdint>

#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// Lays out the nodes and links of each kind of interconnect; the order of nodes is README.md's.
// Serves Topology::Create; one builder makes one topology.
class TopologyBuilder {
 public:
  // Needs a valid spec.
  Topology Build(const TopologySpec& spec);

 private:
  void AddKind(const TopologySpec& spec);
  void AddGrid(const TopologySpec& spec);
  void AddServers(const TopologySpec& spec);
  void AddRails(const TopologySpec& spec);
  void AddLeafSpine(const TopologySpec& spec, int64_t leaves, int64_t per_leaf, int32_t cost);
  void AddFatTree(const TopologySpec& spec);
  void AddDragonfly(const TopologySpec& spec);
  void AddGraph(const TopologySpec& spec);
  int32_t AddSwitches(const char* name, int64_t count, bool numbered = true);
  void AddLink(int64_t a, int64_t b, const LinkClass& link, int32_t cost);

  Topology::Shape shape_;
  Topology::Links links_;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_TOPOLOGY_TOPOLOGY_BUILDER_H_
