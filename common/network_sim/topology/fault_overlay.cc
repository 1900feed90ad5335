// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/topology/fault_overlay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/split_mix.h"
#include "common/base/violations.h"

namespace sextant::network_sim {
namespace {

// Applies faults one after another; every one multiplies what is left.
class Overlay {
 public:
  explicit Overlay(const Topology& healthy)
      : topology_(healthy), fractions_(healthy.links().size() / 2, 1.0) {}

  absl::StatusOr<std::vector<double>> Apply(const Faults& faults) {
    for (size_t i = 0; i < faults.links.size(); ++i) ApplyLink(i, faults.links[i]);
    for (size_t i = 0; i < faults.patterns.size(); ++i) {
      const FaultPattern& fault = faults.patterns[i];
      const double remains = fault.bandwidth_fraction * (1 - fault.loss_fraction);
      if (ForMatching(fault.links, [&](size_t link) { fractions_[link] *= remains; }) == 0) {
        violations_.Add(absl::StrCat("link_faults[", faults.links.size() + i, "].links"),
                        NothingNamed(fault.links));
      }
    }
    for (size_t i = 0; i < faults.dead_switches.size(); ++i) {
      KillSwitch(absl::StrCat("dead_switches[", i, "]"), faults.dead_switches[i]);
    }
    for (const SlowRank& slow : faults.slow_ranks) {
      for (const int32_t link : topology_.LinksFrom(static_cast<int32_t>(slow.rank))) {
        fractions_[static_cast<size_t>(link) / 2] /= slow.slowdown;
      }
    }
    for (size_t i = 0; i < faults.random.size(); ++i) Draw(i, faults.random[i]);
    if (!violations_.empty()) return violations_.ToStatus();
    return std::move(fractions_);
  }

 private:
  std::string NothingNamed(absl::string_view pattern) const {
    return absl::StrCat("is \"", pattern, "\" but no link has such a name; links are called like ",
                        topology_.links().empty() ? "ep0-switch" : NameOf(0));
  }
  std::string NameOf(size_t link) const {
    const DirectedLink& l = topology_.links()[2 * link];
    return absl::StrCat(topology_.NodeName(l.from), "-", topology_.NodeName(l.to));
  }

  void ApplyLink(size_t index, const LinkFault& fault) {
    const bool nodes_exist =
        std::min(fault.a, fault.b) >= 0 && std::max(fault.a, fault.b) < topology_.node_count();
    const int32_t link = nodes_exist ? topology_.FindLink(static_cast<int32_t>(fault.a),
                                                          static_cast<int32_t>(fault.b))
                                     : -1;
    if (link < 0) {
      violations_.Add(
          absl::StrCat("link_faults[", index, "]"),
          absl::StrCat("names nodes ", fault.a, " and ", fault.b,
                       " but no link joins them; nodes are 0 to ", topology_.node_count() - 1));
      return;
    }
    fractions_[static_cast<size_t>(link) / 2] *=
        fault.bandwidth_fraction * (1 - fault.loss_fraction);
  }

  // "name" or "name-name". Returns how many links match.
  template <typename Visit>
  size_t ForMatching(absl::string_view pattern, const Visit& visit) const {
    const size_t dash = pattern.find('-');
    const absl::string_view one = pattern.substr(0, dash);
    const absl::string_view other =
        dash == absl::string_view::npos ? absl::string_view("*") : pattern.substr(dash + 1);
    std::vector<std::pair<bool, bool>> named(static_cast<size_t>(topology_.node_count()));
    for (size_t node = 0; node < named.size(); ++node) {
      const std::string name = topology_.NodeName(static_cast<int32_t>(node));
      named[node] = {MatchesGlob(one, name), MatchesGlob(other, name)};
    }
    size_t count = 0;
    for (size_t link = 0; link < fractions_.size(); ++link) {
      const auto [a_one, a_other] = named[static_cast<size_t>(topology_.links()[2 * link].from)];
      const auto [b_one, b_other] = named[static_cast<size_t>(topology_.links()[2 * link].to)];
      if (!(a_one && b_other) && !(b_one && a_other)) continue;
      visit(link);
      ++count;
    }
    return count;
  }

  void KillSwitch(const std::string& field, absl::string_view pattern) {
    bool found = false;
    for (int32_t node = topology_.endpoint_count(); node < topology_.node_count(); ++node) {
      if (!MatchesGlob(pattern, topology_.NodeName(node))) continue;
      found = true;
      for (const int32_t link : topology_.LinksFrom(node)) {
        fractions_[static_cast<size_t>(link) / 2] = 0;
      }
    }
    if (!found) {
      violations_.Add(
          field, absl::StrCat("is \"", pattern, "\" but no switch has such a name",
                              topology_.node_count() > topology_.endpoint_count()
                                  ? absl::StrCat("; switches are called like ",
                                                 topology_.NodeName(topology_.endpoint_count()))
                                  : "; this topology has none"));
    }
  }

  void Draw(size_t index, const RandomFaults& random) {
    const auto uniform = [&](size_t link, uint64_t salt) {
      const uint64_t bits = base::SplitMix64(base::SplitMix64(random.seed) ^ (2 * link + salt));
      return static_cast<double>(bits >> 11) * 0x1p-53;
    };
    const size_t count = ForMatching(random.links, [&](size_t link) {
      if (uniform(link, 0) < random.dead_probability) {
        fractions_[link] = 0;
      } else if (uniform(link, 1) < random.derated_probability) {
        fractions_[link] *= random.bandwidth_fraction;
      }
    });
    if (count == 0) {
      violations_.Add(absl::StrCat("random_faults[", index, "].links"), NothingNamed(random.links));
    }
  }

  const Topology& topology_;
  std::vector<double> fractions_;
  base::Violations violations_;
};

}  // namespace

absl::StatusOr<std::vector<double>> RemainingFractions(const Topology& healthy,
                                                       const Faults& faults) {
  return Overlay(healthy).Apply(faults);
}

bool MatchesGlob(absl::string_view pattern, absl::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = absl::string_view::npos;  // the last * seen, and where its text began
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::vector<int32_t>> ConnectedEndpoints(const Topology& topology) {
  std::vector<char> seen(static_cast<size_t>(topology.node_count()), 0);
  std::vector<std::vector<int32_t>> pieces;
  std::vector<int32_t> stack;
  for (int32_t start = 0; start < topology.endpoint_count(); ++start) {
    if (seen[static_cast<size_t>(start)]) continue;
    std::vector<int32_t>& piece = pieces.emplace_back();
    stack.assign(1, start);
    seen[static_cast<size_t>(start)] = 1;
    while (!stack.empty()) {
      const int32_t node = stack.back();
      stack.pop_back();
      if (node < topology.endpoint_count()) piece.push_back(node);
      for (const int32_t link : topology.LinksFrom(node)) {
        const int32_t next = topology.links()[static_cast<size_t>(link)].to;
        if (seen[static_cast<size_t>(next)]) continue;
        seen[static_cast<size_t>(next)] = 1;
        stack.push_back(next);
      }
    }
    std::sort(piece.begin(), piece.end());
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return pieces;
}

}  // namespace sextant::network_sim
