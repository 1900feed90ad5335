// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_ENGINE_EVENT_QUEUE_H_
#define SEXTANT_COMMON_NETWORK_SIM_ENGINE_EVENT_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sextant::network_sim {

// Simulated time in picoseconds: 106 days fit. Equal moments compare equal, as no sum of doubles
// would, so that symmetric flows end in one step.
using SimTime = int64_t;
inline constexpr double kPicosecondsPerSecond = 1e12;
// The simulated range: far enough from overflow that a few delays may still be added.
inline constexpr SimTime kSimTimeLimit = SimTime{1} << 62;

// Nearest picosecond. Values beyond the range become kSimTimeLimit.
inline SimTime ToSimTime(double seconds) {
  const double picoseconds = seconds * kPicosecondsPerSecond + 0.5;
  return picoseconds < static_cast<double>(kSimTimeLimit) ? static_cast<SimTime>(picoseconds)
                                                          : kSimTimeLimit;
}
inline double ToSeconds(SimTime time) { return static_cast<double>(time) / kPicosecondsPerSecond; }

// Events by time, and in the order of pushing where times are equal: runs are deterministic.
template <typename Payload>
class EventQueue {
 public:
  struct Event {
    SimTime time = 0;
    uint64_t sequence = 0;
    Payload payload{};
  };

  bool empty() const { return heap_.empty(); }
  const Event& Top() const { return heap_.front(); }

  void Push(SimTime time, const Payload& payload) {
    heap_.push_back({time, sequence_++, payload});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }
  Event Pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  static bool Later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }

  std::vector<Event> heap_;
  uint64_t sequence_ = 0;
};

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_ENGINE_EVENT_QUEUE_H_
