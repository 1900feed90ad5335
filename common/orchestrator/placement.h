// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_PLACEMENT_H_
#define SEXTANT_COMMON_ORCHESTRATOR_PLACEMENT_H_

#include <cstdint>

#include "common/hardware/precision.h"
#include "common/workload/job.h"

namespace sextant::orchestrator {

// The quotient of positive integers, rounded up.
constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A group of ranks, as it falls on nodes: every node that holds any of it holds equally many.
struct Placement {
  int64_t group_size = 1;
  int64_t ranks_per_node = 1;
  int64_t groups_per_node = 1;  // like groups that share a node's links
};
// Where a group of `size` ranks that lie `stride` apart falls on the nodes of a job's cluster.
Placement Place(const workload::Job& job, int64_t size, int64_t stride);

// Precisions of one job: what matrices multiply in, how weights are stored, what the rest runs in.
struct Precisions {
  hardware::Precision matrix;
  hardware::Precision weight;
  hardware::Precision vector;
  bool block_scaled = false;
};
Precisions PrecisionsOf(const workload::Job& job);

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_PLACEMENT_H_
