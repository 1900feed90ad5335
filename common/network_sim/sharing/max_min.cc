// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/sharing/max_min.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace sextant::network_sim {

void MaxMinSolver::Freeze(const SharingProblem& problem, size_t flow, double rate) {
  rates_[flow] = rate;
  frozen_[flow] = 1;
  const size_t end = static_cast<size_t>(problem.flow_offsets[flow + 1]);
  for (size_t i = static_cast<size_t>(problem.flow_offsets[flow]); i < end; ++i) {
    const size_t link = static_cast<size_t>(problem.flow_links[i]);
    remaining_[link] -= rate;
    --growing_[link];
  }
}

absl::Span<const double> MaxMinSolver::Solve(const SharingProblem& problem) {
  const size_t flow_count = problem.FlowCount();
  const size_t link_count = problem.link_capacity.size();
  rates_.assign(flow_count, 0.0);
  frozen_.assign(flow_count, 0);
  remaining_.assign(problem.link_capacity.begin(), problem.link_capacity.end());
  growing_.assign(link_count, 0);
  for (const int32_t link : problem.flow_links) ++growing_[static_cast<size_t>(link)];

  link_offsets_.assign(link_count + 1, 0);
  for (size_t l = 0; l < link_count; ++l) link_offsets_[l + 1] = link_offsets_[l] + growing_[l];
  link_flows_.resize(problem.flow_links.size());
  for (size_t f = flow_count; f-- > 0;) {  // backwards, so that rows end up in flow order
    const size_t begin = static_cast<size_t>(problem.flow_offsets[f]);
    for (size_t i = static_cast<size_t>(problem.flow_offsets[f + 1]); i-- > begin;) {
      const size_t link = static_cast<size_t>(problem.flow_links[i]);
      link_flows_[static_cast<size_t>(--link_offsets_[link + 1])] = static_cast<int32_t>(f);
    }
  }
  // Each entry now is the start of its own row, one place late.
  const auto row_begin = [&](size_t link) { return static_cast<size_t>(link_offsets_[link + 1]); };
  const auto row_end = [&](size_t link) {
    return link + 1 < link_count ? static_cast<size_t>(link_offsets_[link + 2])
                                 : link_flows_.size();
  };

  caps_.clear();
  for (size_t f = 0; f < problem.flow_cap.size(); ++f) {
    if (problem.flow_cap[f] < std::numeric_limits<double>::infinity()) {
      caps_.push_back({problem.flow_cap[f], static_cast<int32_t>(f)});
    }
  }
  std::sort(caps_.begin(), caps_.end());
  heap_.clear();
  for (size_t l = 0; l < link_count; ++l) {
    if (growing_[l] > 0) heap_.push_back({remaining_[l] / growing_[l], static_cast<int32_t>(l)});
  }
  const std::greater<std::pair<double, int32_t>> later;
  std::make_heap(heap_.begin(), heap_.end(), later);

  size_t next_cap = 0;
  double level = 0;  // rate of all flows that still grow
  while (!heap_.empty()) {
    const auto [share, index] = heap_.front();
    const size_t link = static_cast<size_t>(index);
    if (growing_[link] == 0) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
      continue;
    }
    // Shares only grow while flows freeze below them: a stale entry is put back where it belongs.
    const double current = std::max(remaining_[link] / growing_[link], level);
    if (current > share) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.back().first = current;
      std::push_heap(heap_.begin(), heap_.end(), later);
      continue;
    }
    if (next_cap < caps_.size() && caps_[next_cap].first <= share) {
      const size_t flow = static_cast<size_t>(caps_[next_cap].second);
      if (!frozen_[flow]) {
        level = caps_[next_cap].first;
        Freeze(problem, flow, level);
      }
      ++next_cap;
      continue;
    }
    level = share;
    for (size_t i = row_begin(link); i < row_end(link); ++i) {
      const size_t flow = static_cast<size_t>(link_flows_[i]);
      if (!frozen_[flow]) Freeze(problem, flow, level);
    }
  }
  for (; next_cap < caps_.size(); ++next_cap) {  // flows that cross no link
    const size_t flow = static_cast<size_t>(caps_[next_cap].second);
    if (!frozen_[flow]) Freeze(problem, flow, caps_[next_cap].first);
  }
  return rates_;
}

}  // namespace sextant::network_sim
