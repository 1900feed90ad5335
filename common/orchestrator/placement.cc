// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/placement.h"

#include <algorithm>
#include <numeric>

namespace sextant::orchestrator {

using hardware::Precision;
using workload::Job;

Placement Place(const Job& job, int64_t size, int64_t stride) {
  const int64_t node = job.cluster.gpus_per_node;
  Placement placement{.group_size = size};
  if (size * stride <= node) {
    placement.ranks_per_node = size;
  } else if (stride < node) {
    // Every node must hold equally many ranks; a stride that does not divide the node leaves some
    // nodes with fewer, which the greatest common divisor covers from the slow side.
    placement.ranks_per_node = std::gcd(size, std::max<int64_t>(1, node / stride));
  }
  placement.groups_per_node =
      std::max<int64_t>(1, std::min(node, job.gpu_count) / placement.ranks_per_node);
  return placement;
}

Precisions PrecisionsOf(const Job& job) {
  const Precision p = job.precision;
  switch (p) {
    case Precision::kFp4:
      if (!job.cluster.accelerator.Supports(p)) return {Precision::kBf16, p, Precision::kBf16};
      return {p, p, Precision::kBf16};
    case Precision::kFp8:
    case Precision::kInt8:
      return {p, p, Precision::kBf16};
    case Precision::kInt4:  // weights alone; activations stay in 16 bits
      return {Precision::kBf16, p, Precision::kBf16};
    case Precision::kTf32:
      return {p, p, Precision::kFp32};
    default:
      return {p, p, p};
  }
}

}  // namespace sextant::orchestrator
