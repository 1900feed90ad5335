// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_PATTERNS_SCHEDULE_H_
#define SEXTANT_COMMON_NETWORK_SIM_PATTERNS_SCHEDULE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// Index of a join; kNone: nothing to wait for, nobody waits.
inline constexpr int32_t kNone = -1;

// One message. It may be sent once the join `after` is complete, and counts towards the join
// `arrives` when its last byte has arrived.
struct Message {
  int32_t source = 0;
  int32_t destination = 0;
  int64_t bytes = 0;
  int32_t job = 0;
  int32_t group = 0;
  int32_t after = kNone;
  int32_t arrives = kNone;

  friend bool operator==(const Message&, const Message&) = default;
};

// What jobs send and in which order. A join is a set of messages that a rank must have received
// before it goes on (a round of a ring): it keeps dependencies linear where every message of one
// phase waits for every message of the last.
struct Schedule {
  std::vector<Message> messages;
  std::vector<int32_t> join_sizes;  // messages and joins that each join waits for
  // (from, to): when `from` is complete, it counts towards `to`. Few.
  std::vector<std::pair<int32_t, int32_t>> join_arrivals;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Lowers jobs to messages by the rules of README.md. RESOURCE_EXHAUSTED beyond `max_messages`,
// before anything is built. Reduction in the network needs the topology, for its tree of switches:
// UNAVAILABLE where ranks are cut off. Automatic patterns were replaced before
// (collective_choice.h). O(messages).
absl::StatusOr<Schedule> LowerJobs(absl::Span<const NetworkJob> jobs, int64_t max_messages,
                                   const Topology* topology = nullptr);

// Number of messages of a job, by formula.
double MessageCount(const NetworkJob& job);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_PATTERNS_SCHEDULE_H_
