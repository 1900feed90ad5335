// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/topology.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/network_sim/topology/fault_overlay.h"
#include "common/network_sim/topology/topology_builder.h"

namespace sextant::network_sim {

Topology Topology::Create(const TopologySpec& spec) { return TopologyBuilder().Build(spec); }

absl::StatusOr<Topology> Topology::WithFaults(const Faults& faults) const {
  Topology faulty = Healthy();
  if (faults.empty()) return faulty;
  absl::StatusOr<std::vector<double>> fractions = RemainingFractions(faulty, faults);
  if (!fractions.ok()) return fractions.status();
  auto links = std::make_shared<Links>(*healthy_);
  for (size_t i = 0; i < links->links.size(); ++i) {
    const double fraction = (*fractions)[i / 2];
    links->links[i].bandwidth_bytes_per_second *= fraction;
    if (fraction == 0 && i % 2 == 0) links->removed.push_back(static_cast<int32_t>(i));
  }
  if (!links->removed.empty()) links->Index(shape_->node_count);
  faulty.links_ = std::move(links);
  return faulty;
}

Topology Topology::Healthy() const {
  Topology healthy = *this;
  healthy.links_ = healthy_;
  return healthy;
}

void Topology::Links::Index(int32_t node_count) {
  offsets.assign(static_cast<size_t>(node_count) + 1, 0);
  out.clear();
  for (size_t i = 0; i < links.size(); ++i) {
    if (!(links[i].bandwidth_bytes_per_second > 0)) continue;
    out.push_back(static_cast<int32_t>(i));
    ++offsets[static_cast<size_t>(links[i].from) + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::sort(out.begin(), out.end(), [&](int32_t x, int32_t y) {
    const DirectedLink& a = links[static_cast<size_t>(x)];
    const DirectedLink& b = links[static_cast<size_t>(y)];
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
}

int32_t Topology::FindLink(int32_t from, int32_t to) const {
  const absl::Span<const int32_t> candidates = LinksFrom(from);
  const auto found = std::lower_bound(
      candidates.begin(), candidates.end(), to,
      [&](int32_t link, int32_t node) { return links()[static_cast<size_t>(link)].to < node; });
  return found != candidates.end() && links()[static_cast<size_t>(*found)].to == to ? *found : -1;
}

std::string Topology::NodeName(int32_t node) const {
  if (node < shape_->endpoint_count) return absl::StrCat("ep", node);
  const auto after =
      std::upper_bound(shape_->switches.begin(), shape_->switches.end(), node,
                       [](int32_t n, const SwitchGroup& group) { return n < group.first; });
  const SwitchGroup& group = *(after - 1);
  return group.numbered ? absl::StrCat(group.name, node - group.first) : group.name;
}

std::string Topology::LinkName(int32_t link) const {
  const DirectedLink& l = links()[static_cast<size_t>(link)];
  return absl::StrCat(NodeName(l.from), "->", NodeName(l.to));
}

}  // namespace sextant::network_sim
