// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/topology_builder.h"

#include <map>
#include <utility>

namespace sextant::network_sim {
namespace {

// Links that leave a server cost ten, so that traffic inside a server stays on NVSwitch; so do
// those between the groups of a dragonfly, so that a least-cost path takes one of them.
constexpr int32_t kOutsideCost = 10;

}  // namespace

Topology TopologyBuilder::Build(const TopologySpec& spec) {
  shape_.endpoint_count = shape_.node_count = static_cast<int32_t>(spec.EndpointCount());
  AddKind(spec);
  links_.Index(shape_.node_count);
  Topology topology;
  topology.shape_ = std::make_shared<const Topology::Shape>(std::move(shape_));
  topology.healthy_ = std::make_shared<const Topology::Links>(std::move(links_));
  topology.links_ = topology.healthy_;
  return topology;
}

void TopologyBuilder::AddKind(const TopologySpec& spec) {
  switch (spec.kind) {
    case TopologyKind::kRing:
    case TopologyKind::kLine:
    case TopologyKind::kTorus:
    case TopologyKind::kMesh:
      return AddGrid(spec);
    case TopologyKind::kFullyConnected:
      for (int32_t i = 0; i < shape_.endpoint_count; ++i) {
        for (int32_t j = i + 1; j < shape_.endpoint_count; ++j) AddLink(i, j, spec.links[0], 1);
      }
      return;
    case TopologyKind::kSwitch: {
      const int32_t center = AddSwitches("switch", 1, /*numbered=*/false);
      for (int32_t i = 0; i < shape_.endpoint_count; ++i) AddLink(i, center, spec.links[0], 1);
      return;
    }
    case TopologyKind::kLeafSpine:
      return AddLeafSpine(spec, spec.leaf_count, spec.endpoints_per_leaf, 1);
    case TopologyKind::kNvSwitchRails:
      return AddRails(spec);
    case TopologyKind::kNvSwitchLeafSpine:
      AddServers(spec);
      return AddLeafSpine(spec, spec.server_count / spec.servers_per_leaf,
                          spec.servers_per_leaf * spec.gpus_per_server, kOutsideCost);
    case TopologyKind::kFatTree:
      return AddFatTree(spec);
    case TopologyKind::kDragonfly:
      return AddDragonfly(spec);
    case TopologyKind::kGraph:
      return AddGraph(spec);
  }
}

void TopologyBuilder::AddGrid(const TopologySpec& spec) {
  shape_.grid = spec.dimensions;
  shape_.wraps = spec.kind == TopologyKind::kRing || spec.kind == TopologyKind::kTorus;
  const std::vector<int64_t>& grid = shape_.grid;
  for (int64_t node = 0; node < shape_.endpoint_count; ++node) {
    int64_t stride = 1;
    for (size_t k = 0; k < grid.size(); ++k) {
      const int64_t position = node / stride % grid[k];
      if (position + 1 < grid[k]) {
        AddLink(node, node + stride, spec.links[k], 1);
      } else if (shape_.wraps && grid[k] > 2) {  // a dimension of two has one link, not two
        AddLink(node, node - position * stride, spec.links[k], 1);
      }
      stride *= grid[k];
    }
  }
}

void TopologyBuilder::AddServers(const TopologySpec& spec) {
  const int32_t first = AddSwitches("nvswitch", spec.server_count);
  for (int64_t s = 0; s < spec.server_count; ++s) {
    for (int64_t g = 0; g < spec.gpus_per_server; ++g) {
      AddLink(s * spec.gpus_per_server + g, first + s, spec.nvlink, 1);
    }
  }
}

void TopologyBuilder::AddRails(const TopologySpec& spec) {
  AddServers(spec);
  const int32_t rails = AddSwitches("rail", spec.gpus_per_server);
  for (int64_t r = 0; r < spec.gpus_per_server; ++r) {
    for (int64_t s = 0; s < spec.server_count; ++s) {
      AddLink(s * spec.gpus_per_server + r, rails + r, spec.nic, kOutsideCost);
    }
  }
}

void TopologyBuilder::AddLeafSpine(const TopologySpec& spec, int64_t leaves, int64_t per_leaf,
                                   int32_t cost) {
  const int32_t first_leaf = AddSwitches("leaf", leaves);
  for (int64_t l = 0; l < leaves; ++l) {
    for (int64_t i = 0; i < per_leaf; ++i)
      AddLink(l * per_leaf + i, first_leaf + l, spec.nic, cost);
  }
  const int32_t first_spine = AddSwitches("spine", spec.spine_count);
  for (int64_t s = 0; s < spec.spine_count; ++s) {
    for (int64_t l = 0; l < leaves; ++l) {
      AddLink(first_leaf + l, first_spine + s, spec.uplink, cost);
    }
  }
}

// Every leaf of a pod reaches every spine of the pod; spine s of every pod the same cores.
void TopologyBuilder::AddFatTree(const TopologySpec& spec) {
  const int64_t leaves = spec.pod_count * spec.leaves_per_pod;
  const int32_t first_leaf = AddSwitches("leaf", leaves);
  const int32_t first_spine = AddSwitches("spine", spec.pod_count * spec.spines_per_pod);
  const int32_t first_core = AddSwitches("core", spec.spine_count);
  const int64_t cores_per_spine = spec.spine_count / spec.spines_per_pod;
  for (int64_t l = 0; l < leaves; ++l) {
    for (int64_t i = 0; i < spec.endpoints_per_leaf; ++i) {
      AddLink(l * spec.endpoints_per_leaf + i, first_leaf + l, spec.nic, 1);
    }
    const int64_t pod = l / spec.leaves_per_pod;
    for (int64_t s = 0; s < spec.spines_per_pod; ++s) {
      AddLink(first_leaf + l, first_spine + pod * spec.spines_per_pod + s, spec.uplink, 1);
    }
  }
  for (int64_t s = 0; s < spec.pod_count * spec.spines_per_pod; ++s) {
    const int64_t first = first_core + s % spec.spines_per_pod * cores_per_spine;
    for (int64_t c = 0; c < cores_per_spine; ++c) {
      AddLink(first_spine + s, first + c, spec.core_uplink, 1);
    }
  }
}

// Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", 2008:
// routers of a group are fully connected; every pair of groups has as many global links as the
// ports allow, at least one. Port p of a group belongs to its router p / global_links_per_router;
// the k-th link to the group that is `offset` further uses port k (groups - 1) + offset - 1. Links
// between the same two routers become one of their joint bandwidth.
void TopologyBuilder::AddDragonfly(const TopologySpec& spec) {
  const int64_t groups = spec.group_count;
  const int64_t routers = spec.routers_per_group;
  const int32_t first = AddSwitches("router", groups * routers);
  for (int64_t r = 0; r < groups * routers; ++r) {
    for (int64_t e = 0; e < spec.endpoints_per_router; ++e) {
      AddLink(r * spec.endpoints_per_router + e, first + r, spec.nic, 1);
    }
    for (int64_t other = r + 1; other < (r / routers + 1) * routers; ++other) {
      AddLink(first + r, first + other, spec.local, 1);
    }
  }
  if (groups < 2) return;
  const int64_t per_pair = routers * spec.global_links_per_router / (groups - 1);
  std::map<std::pair<int64_t, int64_t>, int64_t> copies;
  for (int64_t a = 0; a < groups; ++a) {
    for (int64_t b = a + 1; b < groups; ++b) {
      for (int64_t k = 0; k < per_pair; ++k) {
        const auto router = [&](int64_t group, int64_t offset) {
          const int64_t port = k * (groups - 1) + offset - 1;
          return first + group * routers + port / spec.global_links_per_router;
        };
        ++copies[{router(a, b - a), router(b, groups - (b - a))}];
      }
    }
  }
  for (const auto& [ends, count] : copies) {
    LinkClass link = spec.global;
    link.bandwidth_bytes_per_second *= static_cast<double>(count);
    AddLink(ends.first, ends.second, link, kOutsideCost);
  }
}

void TopologyBuilder::AddGraph(const TopologySpec& spec) {
  if (spec.switch_count > 0) AddSwitches("switch", spec.switch_count);
  for (const GraphLink& link : spec.graph_links) {
    AddLink(link.a, link.b, link.forward, static_cast<int32_t>(link.cost));
    DirectedLink& back = links_.links.back();
    back.bandwidth_bytes_per_second = link.backward.bandwidth_bytes_per_second;
    back.latency_seconds = link.backward.latency_seconds;
  }
}

int32_t TopologyBuilder::AddSwitches(const char* name, int64_t count, bool numbered) {
  const int32_t first = shape_.node_count;
  shape_.switches.push_back({name, first, numbered});
  shape_.node_count += static_cast<int32_t>(count);
  return first;
}

void TopologyBuilder::AddLink(int64_t a, int64_t b, const LinkClass& link, int32_t cost) {
  const int32_t from = static_cast<int32_t>(a);
  const int32_t to = static_cast<int32_t>(b);
  links_.links.push_back({from, to, link.bandwidth_bytes_per_second, link.latency_seconds, cost});
  links_.links.push_back({to, from, link.bandwidth_bytes_per_second, link.latency_seconds, cost});
}

}  // namespace sextant::network_sim
