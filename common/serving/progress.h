// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SERVING_PROGRESS_H_
#define SEXTANT_COMMON_SERVING_PROGRESS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace sextant::serving {

// How far a run is. Counts start anew for the second run, which finds the capacity of an open loop.
struct Progress {
  double simulated_seconds = 0;
  int64_t completed_request_count = 0;
  int64_t offered_request_count = 0;
  int64_t step_count = 0;
};

// Asked every thousand engine steps, on the calling thread. A status that is not OK stops the run,
// which then returns it: how a caller cancels, or keeps to a deadline.
using ProgressCheck = std::function<absl::Status(const Progress&)>;

}  // namespace sextant::serving

#endif  // SEXTANT_COMMON_SERVING_PROGRESS_H_
