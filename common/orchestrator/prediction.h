// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_PREDICTION_H_
#define SEXTANT_COMMON_ORCHESTRATOR_PREDICTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/parameters/spread.h"
#include "common/serving/serving_simulation.h"

namespace sextant::orchestrator {

// One named part of a total, in the order in which a report lists them.
struct TimePart {
  std::string name;  // "matrix_multiply", "attention", "memory_bound", "tensor_parallel_exposed",
                     // "pipeline_bubble", "data_parallel_exposed", "optimizer", "framework", ...
  double seconds = 0;

  friend bool operator==(const TimePart&, const TimePart&) = default;
};
struct MemoryPart {
  std::string name;  // "weights", "gradients", "optimizer", "activations", "kv_cache", ...
  int64_t bytes = 0;

  friend bool operator==(const MemoryPart&, const MemoryPart&) = default;
};

// Bytes on the heaviest rank against what its accelerator has. Parts sum to total_bytes.
struct MemoryPrediction {
  int64_t total_bytes = 0;     // peak allocated
  int64_t capacity_bytes = 0;  // HBM of the accelerator
  bool fits = true;
  int64_t shortfall_bytes = 0;  // 0 when it fits
  std::vector<MemoryPart> breakdown;
  int64_t reserved_bytes = 0;  // what the caching allocator holds: total_bytes and fragmentation
  // Training: largest micro_batch_size that fits with the rest of the plan as it is; 0: none.
  std::optional<int64_t> largest_micro_batch_size;

  friend bool operator==(const MemoryPrediction&, const MemoryPrediction&) = default;
};

// Relative change of the total for a relative change of one resource.
struct Sensitivity {
  std::string resource;   // "matrix_rate", "l2_bandwidth", "hbm_bandwidth", "node_bandwidth",
                          // "network_bandwidth", "launch_overhead"
  double elasticity = 0;  // d ln(total_seconds) / d ln(resource); of a serving load: of the mean
                          // whole request

  friend bool operator==(const Sensitivity&, const Sensitivity&) = default;
};

// The answer to one job. Times are given whether or not the job fits.
struct Prediction {
  double total_seconds = 0;         // one optimizer step, or one whole batch of requests
  double interval_low_seconds = 0;  // 90 % interval of total_seconds
  double interval_high_seconds = 0;
  std::vector<TimePart> breakdown;  // sums to total_seconds

  double tokens_per_second = 0;  // training: trained tokens; inference: output tokens (prompt
                                 // tokens when nothing is generated)
  double tokens_per_second_per_gpu = 0;
  // Flops that the model needs (no recomputation, causal attention counted as half) over what the
  // GPUs could do at their dense matrix rate.
  double model_flops_utilization = 0;

  MemoryPrediction memory;
  std::vector<std::string> binding;  // resources that limit, largest share first

  // Inference only.
  std::optional<double> time_to_first_token_seconds;
  std::optional<double> inter_token_latency_seconds;  // mean over the decode steps
  // Their own 90 % intervals; there where they are.
  std::optional<parameters::Interval> time_to_first_token_interval;  // seconds
  std::optional<parameters::Interval> inter_token_latency_interval;
  std::optional<int64_t> kv_cache_capacity_tokens;    // of the whole instance

  // With a serving load: total_seconds is the run, the two latencies above are means over its
  // requests, and absent where the load saturates the fleet.
  std::optional<serving::ServingReport> serving;

  std::string parameter_set;  // version
  bool extrapolated = false;
  std::vector<std::string> warnings;
  std::vector<Sensitivity> sensitivities;  // empty unless asked for

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_PREDICTION_H_
