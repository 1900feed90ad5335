// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_PATTERNS_TREES_H_
#define SEXTANT_COMMON_NETWORK_SIM_PATTERNS_TREES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// The largest power of two that is not above `count` (>= 1).
int64_t PowerOfTwoBelow(size_t count);

// One step of recursive doubling or halving: bytes exchanged with the rank at index xor distance.
struct ExchangeStep {
  int64_t distance = 1;
  int64_t bytes = 0;
};
// The steps of pattern kRecursiveDoublingAllReduce or kHalvingDoublingAllReduce among the largest
// power of two of n ranks.
std::vector<ExchangeStep> ExchangeSteps(Pattern pattern, int64_t n, int64_t bytes);

// Binary tree in heap order: the parent of i is (i - 1) / 2, of the root -1.
std::vector<int32_t> HeapParents(size_t count);

// Binary search tree over positions 0 .. count-1 in which every other position (1, 3, ...) is an
// inner node and even ones are leaves but for the last, parents before children.
struct InOrderTree {
  std::vector<int32_t> positions;
  std::vector<int32_t> parents;  // indices into positions; -1: the root
};
InOrderTree MakeInOrderTree(size_t count);

// Tree of the nodes that carry a reduction in the network: from a root switch to all ranks,
// parents before children. Ranks that lie between others add up as well.
struct ReductionTree {
  std::vector<int64_t> nodes;
  std::vector<int32_t> parents;  // indices into nodes; -1: the root
};
// The root is the switch of least total cost to all ranks, the lowest of equals; without switches,
// the first rank. UNAVAILABLE where a rank is cut off. O(links), and switches near the first rank.
absl::StatusOr<ReductionTree> MakeReductionTree(const Topology& topology,
                                                absl::Span<const int64_t> ranks);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_PATTERNS_TREES_H_
