// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_PATTERNS_ROUNDS_H_
#define SEXTANT_COMMON_NETWORK_SIM_PATTERNS_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "common/network_sim/network_case.h"

namespace sextant::network_sim {

// One message of a round. Blocks that differ by a byte count as the larger.
struct Transfer {
  int64_t source = 0;
  int64_t destination = 0;
  int64_t bytes = 0;
  int32_t group = 0;
  int32_t lane = 0;  // the two directions of a bidirectional ring do not wait for each other
};

// A job as rounds: in each, every rank sends after it has received what the round before brought
// it. Rounds of equal messages are listed once.
struct RoundPlan {
  struct Step {
    size_t round = 0;
    int64_t repeat = 1;
  };
  std::vector<std::vector<Transfer>> rounds;
  std::vector<Step> steps;
  // False where a rank sits out some round while others go on: rounds then need not keep in step.
  bool all_take_part = true;
};

// The plan of a job all of whose groups have n ranks (n >= 2; flows: any n). No steps where the
// pattern is not made of rounds: trees, chains, reduction in the network, chunked hierarchies and
// automatic patterns. O(messages of the distinct rounds).
RoundPlan PlanRounds(const NetworkJob& job, size_t n);

// The size of the job's groups of two and more: 0 where there are none, -1 where they differ.
int64_t CommonGroupSize(const NetworkJob& job);

// The largest block of `bytes` in `parts` parts.
inline int64_t LargestBlock(int64_t bytes, int64_t parts) { return (bytes + parts - 1) / parts; }

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_PATTERNS_ROUNDS_H_
