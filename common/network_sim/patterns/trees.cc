// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/patterns/trees.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sextant::network_sim {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;

// Least cost from `root` to every node and the neighbour on the way to it. Endpoints that are no
// ranks forward for nobody.
struct Reach {
  std::vector<int64_t> cost;
  std::vector<int32_t> towards_root;
};
Reach ReachFrom(const Topology& topology, int32_t root, const std::vector<char>& may_forward) {
  Reach reach;
  reach.cost.assign(static_cast<size_t>(topology.node_count()), kFar);
  reach.towards_root.assign(static_cast<size_t>(topology.node_count()), -1);
  using Entry = std::pair<int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  reach.cost[static_cast<size_t>(root)] = 0;
  queue.push({0, root});
  while (!queue.empty()) {
    const auto [cost, node] = queue.top();
    queue.pop();
    if (cost > reach.cost[static_cast<size_t>(node)]) continue;
    if (node != root && !may_forward[static_cast<size_t>(node)]) continue;
    for (const int32_t index : topology.LinksFrom(node)) {
      const DirectedLink& link = topology.links()[static_cast<size_t>(index)];
      int64_t& known = reach.cost[static_cast<size_t>(link.to)];
      if (cost + link.cost >= known) continue;
      known = cost + link.cost;
      reach.towards_root[static_cast<size_t>(link.to)] = node;
      queue.push({known, link.to});
    }
  }
  return reach;
}

}  // namespace

int64_t PowerOfTwoBelow(size_t count) {
  int64_t power = 1;
  while (2 * power <= static_cast<int64_t>(count)) power *= 2;
  return power;
}

std::vector<ExchangeStep> ExchangeSteps(Pattern pattern, int64_t n, int64_t bytes) {
  std::vector<ExchangeStep> steps;
  const int64_t two = PowerOfTwoBelow(static_cast<size_t>(n));
  if (pattern == Pattern::kRecursiveDoublingAllReduce) {
    for (int64_t distance = 1; distance < two; distance *= 2) steps.push_back({distance, bytes});
    return steps;
  }
  int64_t part = bytes;
  for (int64_t distance = two / 2; distance >= 1; distance /= 2) {
    part /= 2;
    steps.push_back({distance, part});
  }
  for (size_t i = steps.size(); i-- > 0;) steps.push_back(steps[i]);
  return steps;
}

std::vector<int32_t> HeapParents(size_t count) {
  std::vector<int32_t> parents(count, -1);
  for (size_t i = 1; i < count; ++i) parents[i] = static_cast<int32_t>((i - 1) / 2);
  return parents;
}

InOrderTree MakeInOrderTree(size_t count) {
  InOrderTree tree;
  struct Range {
    int32_t first;
    int32_t last;  // inclusive
    int32_t parent;
  };
  std::vector<Range> pending = {{0, static_cast<int32_t>(count) - 1, -1}};
  for (size_t next = 0; next < pending.size(); ++next) {
    const Range range = pending[next];
    // The middle, on an odd position where the range has one.
    int32_t middle = (range.first + range.last) / 2;
    if (middle % 2 == 0 && range.first < range.last) middle += middle < range.last ? 1 : -1;
    const int32_t index = static_cast<int32_t>(tree.positions.size());
    tree.positions.push_back(middle);
    tree.parents.push_back(range.parent);
    if (range.first < middle) pending.push_back({range.first, middle - 1, index});
    if (middle < range.last) pending.push_back({middle + 1, range.last, index});
  }
  return tree;
}

absl::StatusOr<ReductionTree> MakeReductionTree(const Topology& topology,
                                                absl::Span<const int64_t> ranks) {
  std::vector<char> may_forward(static_cast<size_t>(topology.node_count()), 0);
  for (int32_t n = topology.endpoint_count(); n < topology.node_count(); ++n) {
    may_forward[static_cast<size_t>(n)] = 1;
  }
  for (const int64_t rank : ranks) may_forward[static_cast<size_t>(rank)] = 1;
  // The root lies near the middle of the ranks: a switch for which the farthest of a few ranks is
  // nearest, then the nearest in sum.
  std::vector<Reach> probes;
  const size_t probe_count = std::min<size_t>(ranks.size(), 8);
  for (size_t i = 0; i < probe_count; ++i) {
    const int64_t rank = ranks[i * (ranks.size() - 1) / std::max<size_t>(1, probe_count - 1)];
    probes.push_back(ReachFrom(topology, static_cast<int32_t>(rank), may_forward));
  }
  int32_t root = static_cast<int32_t>(ranks[0]);
  std::pair<int64_t, int64_t> least = {kFar, kFar};
  for (int32_t n = topology.endpoint_count(); n < topology.node_count(); ++n) {
    std::pair<int64_t, int64_t> cost = {0, 0};
    for (const Reach& probe : probes) {
      cost.first = std::max(cost.first, probe.cost[static_cast<size_t>(n)]);
      cost.second = std::min(kFar, cost.second + probe.cost[static_cast<size_t>(n)]);
    }
    if (cost < least) {
      least = cost;
      root = n;
    }
  }
  const Reach reach = ReachFrom(topology, root, may_forward);
  std::vector<int64_t> needed;
  std::vector<char> in_tree(may_forward.size(), 0);
  for (const int64_t rank : ranks) {
    if (reach.cost[static_cast<size_t>(rank)] == kFar) {
      return absl::UnavailableError(absl::StrCat("unreachable: no surviving path from ",
                                                 topology.NodeName(static_cast<int32_t>(rank)),
                                                 " to ", topology.NodeName(root)));
    }
    for (int32_t node = static_cast<int32_t>(rank);
         node >= 0 && !in_tree[static_cast<size_t>(node)];
         node = reach.towards_root[static_cast<size_t>(node)]) {
      in_tree[static_cast<size_t>(node)] = 1;
      needed.push_back(node);
    }
  }
  std::sort(needed.begin(), needed.end(), [&](int64_t a, int64_t b) {
    return std::pair(reach.cost[static_cast<size_t>(a)], a) <
           std::pair(reach.cost[static_cast<size_t>(b)], b);
  });
  ReductionTree tree;
  std::vector<int32_t> index(may_forward.size(), -1);
  for (const int64_t node : needed) {
    const int32_t towards = reach.towards_root[static_cast<size_t>(node)];
    index[static_cast<size_t>(node)] = static_cast<int32_t>(tree.nodes.size());
    tree.nodes.push_back(node);
    tree.parents.push_back(towards < 0 ? -1 : index[static_cast<size_t>(towards)]);
  }
  return tree;
}

}  // namespace sextant::network_sim
