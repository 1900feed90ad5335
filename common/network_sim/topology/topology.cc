// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/topology.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::network_sim {
namespace {

// Links that leave a server cost ten, so that traffic inside a server stays on NVSwitch.
constexpr int32_t kOutsideCost = 10;

}  // namespace

absl::StatusOr<Topology> Topology::Create(const TopologySpec& spec,
                                          absl::Span<const LinkFault> faults) {
  Topology topology;
  topology.Build(spec);
  topology.IndexLinks();
  base::Violations violations;
  for (size_t i = 0; i < faults.size(); ++i) {
    const LinkFault& fault = faults[i];
    const bool nodes_exist =
        std::min(fault.a, fault.b) >= 0 && std::max(fault.a, fault.b) < topology.node_count_;
    const int32_t link = nodes_exist ? topology.FindLink(static_cast<int32_t>(fault.a),
                                                         static_cast<int32_t>(fault.b))
                                     : -1;
    if (link < 0) {
      violations.Add(
          absl::StrCat("link_faults[", i, "]"),
          absl::StrCat("names nodes ", fault.a, " and ", fault.b,
                       " but no link joins them; nodes are 0 to ", topology.node_count_ - 1));
      continue;
    }
    for (const int32_t direction : {link, link ^ 1}) {
      topology.links_[static_cast<size_t>(direction)].bandwidth_bytes_per_second *=
          fault.bandwidth_fraction;
    }
    topology.has_removed_links_ |= fault.bandwidth_fraction == 0;
  }
  if (!violations.empty()) return violations.ToStatus();
  if (topology.has_removed_links_) topology.IndexLinks();
  return topology;
}

void Topology::Build(const TopologySpec& spec) {
  endpoint_count_ = node_count_ = static_cast<int32_t>(spec.EndpointCount());
  switch (spec.kind) {
    case TopologyKind::kRing:
    case TopologyKind::kLine:
    case TopologyKind::kTorus:
    case TopologyKind::kMesh:
      return BuildGrid(spec);
    case TopologyKind::kFullyConnected:
      for (int32_t i = 0; i < endpoint_count_; ++i) {
        for (int32_t j = i + 1; j < endpoint_count_; ++j) AddLink(i, j, spec.links[0], 1);
      }
      return;
    case TopologyKind::kSwitch: {
      const int32_t center = AddSwitches("switch", 1, /*numbered=*/false);
      for (int32_t i = 0; i < endpoint_count_; ++i) AddLink(i, center, spec.links[0], 1);
      return;
    }
    case TopologyKind::kLeafSpine:
      return BuildLeafSpine(spec, spec.leaf_count, spec.endpoints_per_leaf, 1);
    case TopologyKind::kNvSwitchRails: {
      BuildServers(spec);
      const int32_t rails = AddSwitches("rail", spec.gpus_per_server);
      for (int64_t r = 0; r < spec.gpus_per_server; ++r) {
        for (int64_t s = 0; s < spec.server_count; ++s) {
          AddLink(s * spec.gpus_per_server + r, rails + r, spec.nic, kOutsideCost);
        }
      }
      return;
    }
    case TopologyKind::kNvSwitchLeafSpine:
      break;
  }
  BuildServers(spec);
  BuildLeafSpine(spec, spec.server_count / spec.servers_per_leaf,
                 spec.servers_per_leaf * spec.gpus_per_server, kOutsideCost);
}

void Topology::BuildGrid(const TopologySpec& spec) {
  grid_ = spec.dimensions;
  wraps_ = spec.kind == TopologyKind::kRing || spec.kind == TopologyKind::kTorus;
  for (int64_t node = 0; node < endpoint_count_; ++node) {
    int64_t stride = 1;
    for (size_t k = 0; k < grid_.size(); ++k) {
      const int64_t position = node / stride % grid_[k];
      if (position + 1 < grid_[k]) {
        AddLink(node, node + stride, spec.links[k], 1);
      } else if (wraps_ && grid_[k] > 2) {  // a dimension of two has one link, not two
        AddLink(node, node - position * stride, spec.links[k], 1);
      }
      stride *= grid_[k];
    }
  }
}

void Topology::BuildServers(const TopologySpec& spec) {
  const int32_t first = AddSwitches("nvswitch", spec.server_count);
  for (int64_t s = 0; s < spec.server_count; ++s) {
    for (int64_t g = 0; g < spec.gpus_per_server; ++g) {
      AddLink(s * spec.gpus_per_server + g, first + s, spec.nvlink, 1);
    }
  }
}

void Topology::BuildLeafSpine(const TopologySpec& spec, int64_t leaves, int64_t per_leaf,
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

int32_t Topology::AddSwitches(const char* name, int64_t count, bool numbered) {
  const int32_t first = node_count_;
  switches_.push_back({name, first, numbered});
  node_count_ += static_cast<int32_t>(count);
  return first;
}

void Topology::AddLink(int64_t a, int64_t b, const LinkClass& link, int32_t cost) {
  const int32_t from = static_cast<int32_t>(a);
  const int32_t to = static_cast<int32_t>(b);
  links_.push_back({from, to, link.bandwidth_bytes_per_second, link.latency_seconds, cost});
  links_.push_back({to, from, link.bandwidth_bytes_per_second, link.latency_seconds, cost});
}

void Topology::IndexLinks() {
  offsets_.assign(static_cast<size_t>(node_count_) + 1, 0);
  out_.clear();
  for (size_t i = 0; i < links_.size(); ++i) {
    if (!(links_[i].bandwidth_bytes_per_second > 0)) continue;
    out_.push_back(static_cast<int32_t>(i));
    ++offsets_[static_cast<size_t>(links_[i].from) + 1];
  }
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  std::sort(out_.begin(), out_.end(), [&](int32_t x, int32_t y) {
    const DirectedLink& a = links_[static_cast<size_t>(x)];
    const DirectedLink& b = links_[static_cast<size_t>(y)];
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
}

int32_t Topology::FindLink(int32_t from, int32_t to) const {
  const absl::Span<const int32_t> candidates = LinksFrom(from);
  const auto found = std::lower_bound(
      candidates.begin(), candidates.end(), to,
      [&](int32_t link, int32_t node) { return links_[static_cast<size_t>(link)].to < node; });
  return found != candidates.end() && links_[static_cast<size_t>(*found)].to == to ? *found : -1;
}

std::string Topology::NodeName(int32_t node) const {
  if (node < endpoint_count_) return absl::StrCat("ep", node);
  const auto after =
      std::upper_bound(switches_.begin(), switches_.end(), node,
                       [](int32_t n, const SwitchGroup& group) { return n < group.first; });
  const SwitchGroup& group = *(after - 1);
  return group.numbered ? absl::StrCat(group.name, node - group.first) : group.name;
}

}  // namespace sextant::network_sim
