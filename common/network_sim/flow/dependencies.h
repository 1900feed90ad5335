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
  // Messages that may be sent now that `message` has arrived. O(their number).
  absl::Span<const int32_t> Arrive(int32_t message);

 private:
  const Schedule& schedule_;
  std::vector<int32_t> remaining_;  // arrivals that each join still waits for
  std::vector<size_t> offsets_;     // of each join's messages in waiters_
  std::vector<int32_t> waiters_;
  std::vector<std::vector<int32_t>> first_messages_;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_FLOW_DEPENDENCIES_H_
