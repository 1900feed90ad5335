// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_PROGRESS_H_
#define SEXTANT_COMMON_NETWORK_SIM_PROGRESS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace sextant::network_sim {

// How far a simulation is.
struct Progress {
  double simulated_seconds = 0;
  int64_t event_count = 0;
  int64_t arrived_count = 0;  // of messages
  int64_t message_count = 0;
};

// Asked every thousand events or routes, on the calling thread. A status that is not OK stops
// the simulation, which then returns it: how a caller cancels, or keeps to a deadline.
using ProgressCheck = std::function<absl::Status(const Progress&)>;

// Polls a check that may be absent, once in `kPollInterval` steps.
class ProgressPoll {
 public:
  explicit ProgressPoll(const ProgressCheck& check) : check_(check) {}

  bool Due() { return check_ && (++steps_ & (kPollInterval - 1)) == 0; }
  absl::Status Ask(const Progress& progress) const { return check_(progress); }

 private:
  static constexpr uint32_t kPollInterval = 1024;
  const ProgressCheck& check_;
  uint32_t steps_ = 0;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_PROGRESS_H_
