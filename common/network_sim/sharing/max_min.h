// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_SHARING_MAX_MIN_H_
#define SEXTANT_COMMON_NETWORK_SIM_SHARING_MAX_MIN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace sextant::network_sim {

// Flows over links, in compressed rows: flow f crosses links
// flow_links[flow_offsets[f] .. flow_offsets[f + 1]). Every flow crosses at least one link or has
// a finite cap.
struct SharingProblem {
  absl::Span<const double> link_capacity;  // > 0, per link
  absl::Span<const int32_t> flow_offsets;  // flows + 1
  absl::Span<const int32_t> flow_links;
  absl::Span<const double> flow_cap;  // largest rate of each flow; empty: none

  size_t FlowCount() const { return flow_offsets.empty() ? 0 : flow_offsets.size() - 1; }
};

// Max-min fair rates by progressive filling (Bertsekas and Gallager, "Data Networks", section
// 6.5.2): all rates grow together; a flow stops when a link of its path is full or its cap is
// reached. Deterministic; equal for equal problems. Keeps its working memory between calls.
// Thread-compatible.
class MaxMinSolver {
 public:
  // One rate per flow; valid until the next call. O((links + incidences) log links).
  absl::Span<const double> Solve(const SharingProblem& problem);

 private:
  void Freeze(const SharingProblem& problem, size_t flow, double rate);

  std::vector<double> rates_;
  std::vector<char> frozen_;
  std::vector<double> remaining_;      // capacity left to flows that still grow
  std::vector<int32_t> growing_;       // their number per link
  std::vector<int32_t> link_offsets_;  // flows of each link
  std::vector<int32_t> link_flows_;
  std::vector<std::pair<double, int32_t>> heap_;  // (fair share when pushed, link)
  std::vector<std::pair<double, int32_t>> caps_;  // (cap, flow), increasing
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_SHARING_MAX_MIN_H_
