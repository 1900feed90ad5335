// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/mapping.h"

#include <utility>

namespace sextant::network_sim {

std::vector<NetworkJob> JobsOfLayout(absl::Span<const ParallelDimension> layout) {
  int64_t ranks = 1;
  for (const ParallelDimension& dimension : layout) ranks *= dimension.size;
  std::vector<NetworkJob> jobs;
  int64_t stride = 1;
  for (const ParallelDimension& dimension : layout) {
    NetworkJob job = dimension.job;
    for (int64_t first = 0; first < ranks; ++first) {
      if (first / stride % dimension.size != 0) continue;
      std::vector<int64_t>& group = job.groups.emplace_back();
      for (int64_t k = 0; k < dimension.size; ++k) group.push_back(first + k * stride);
    }
    stride *= dimension.size;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace sextant::network_sim
