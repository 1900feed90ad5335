// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_FLOW_DEPENDENCIES_H_
#define SEXTANT_COMMON_NETWORK_SIM_FLOW_DEPENDENCIES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/network_sim/patterns/schedule.h"

namespace sextant::network_sim {

// Which messages of a schedule may be sent when. Borrows the schedule.
class Dependencies {
 public:
  Dependencies(const Schedule& schedule, size_t job_count);

  // Messages of a job that wait for nothing, in order.
  absl::Span<const int32_t> FirstMessages(int32_t job) const {
    return first_messages_[static_cast<size_t>(job)];
  }
  // Calls `send` for every message that may be sent now that `message` has arrived. O(their
  // number).
  template <typename Send>
  void Arrive(int32_t message, const Send& send) {
    const int32_t arrives = schedule_.messages[static_cast<size_t>(message)].arrives;
    if (arrives != kNone) Complete(arrives, send);
  }

 private:
  template <typename Send>
  void Complete(int32_t index, const Send& send) {
    const size_t join = static_cast<size_t>(index);
    if (--remaining_[join] > 0) return;
    for (size_t i = offsets_[join]; i < offsets_[join + 1]; ++i) send(waiters_[i]);
    if (schedule_.join_arrivals.empty()) return;
    for (size_t i = forward_offsets_[join]; i < forward_offsets_[join + 1]; ++i) {
      Complete(forwards_[i], send);  // a join of joins waits for messages of one rank: not deep
    }
  }

  const Schedule& schedule_;
  std::vector<int32_t> remaining_;  // arrivals that each join still waits for
  std::vector<size_t> offsets_;     // of each join's messages in waiters_
  std::vector<int32_t> waiters_;
  std::vector<size_t> forward_offsets_;  // of the joins that a join counts towards
  std::vector<int32_t> forwards_;
  std::vector<std::vector<int32_t>> first_messages_;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_FLOW_DEPENDENCIES_H_
