// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/flow/dependencies.h"

namespace sextant::network_sim {

Dependencies::Dependencies(const Schedule& schedule, size_t job_count)
    : schedule_(schedule),
      remaining_(schedule.join_sizes),
      offsets_(schedule.join_sizes.size() + 1, 0),
      first_messages_(job_count) {
  const size_t count = schedule.messages.size();
  for (size_t m = 0; m < count; ++m) {
    const Message& message = schedule.messages[m];
    if (message.after == kNone) {
      first_messages_[static_cast<size_t>(message.job)].push_back(static_cast<int32_t>(m));
    } else {
      ++offsets_[static_cast<size_t>(message.after) + 1];
    }
  }
  for (size_t j = 1; j < offsets_.size(); ++j) offsets_[j] += offsets_[j - 1];
  waiters_.resize(offsets_.back());
  std::vector<size_t> fill(offsets_.begin(), offsets_.end() - 1);
  for (size_t m = 0; m < count; ++m) {
    const int32_t after = schedule.messages[m].after;
    if (after != kNone) waiters_[fill[static_cast<size_t>(after)]++] = static_cast<int32_t>(m);
  }
  if (schedule.join_arrivals.empty()) return;
  forward_offsets_.assign(schedule.join_sizes.size() + 1, 0);
  for (const auto& [from, to] : schedule.join_arrivals) {
    ++forward_offsets_[static_cast<size_t>(from) + 1];
  }
  for (size_t j = 1; j < forward_offsets_.size(); ++j) {
    forward_offsets_[j] += forward_offsets_[j - 1];
  }
  forwards_.resize(schedule.join_arrivals.size());
  fill.assign(forward_offsets_.begin(), forward_offsets_.end() - 1);
  for (const auto& [from, to] : schedule.join_arrivals) {
    forwards_[fill[static_cast<size_t>(from)]++] = to;
  }
}

}  // namespace sextant::network_sim
