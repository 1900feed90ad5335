// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SERVING_SERVING_SIMULATION_H_
#define SEXTANT_COMMON_SERVING_SERVING_SIMULATION_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/serving/engine.h"
#include "common/serving/progress.h"
#include "common/serving/serving_load.h"
#include "common/serving/step_cost.h"

namespace sextant::serving {

// Of a set of seconds; zero where the set is empty. Percentiles by the nearest rank.
struct Percentiles {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;

  friend bool operator==(const Percentiles&, const Percentiles&) = default;
};

// A fleet: replicas of one engine, and what it takes to hand a sequence from one to another.
struct Fleet {
  EngineLimits limits;  // kv_capacity_tokens of one replica
  int64_t replica_count = 1;
  int64_t prefill_replica_count = 0;  // of them; 0: each replica does both
  Line transfer_seconds;              // of a sequence's cache over its tokens
  int64_t encoder_count = 0;          // of images, apart from the replicas; 0: those encode
  double encoder_seconds = 0;         // of one request's images on one of them
  double embedding_seconds = 0;       // to hand what came out to a replica
};

struct ServingReport {
  // completed + refused == offered.
  int64_t offered_request_count = 0;
  int64_t completed_request_count = 0;
  int64_t refused_request_count = 0;  // would not fit alone
  int64_t preemption_count = 0;
  int64_t step_count = 0;
  double makespan_seconds = 0;
  Percentiles time_to_first_token_seconds;
  Percentiles inter_token_latency_seconds;  // of requests' means; those of two tokens or more
  Percentiles end_to_end_seconds;
  double requests_per_second = 0;  // completed over the makespan
  double output_tokens_per_second = 0;
  double goodput_requests_per_second = 0;  // completed within the limits
  double utilization = 0;                  // share of the replicas' time with a step under way
  double peak_kv_fraction = 0;             // of pages, on the fullest replica
  // Shares of the replicas' time by what the step held; with `idle` they sum to the makespan.
  double prefill_seconds = 0;
  double mixed_seconds = 0;
  double decode_seconds = 0;
  double idle_seconds = 0;
  // Open loops: what the fleet completes when there is always work, and the offered rate over it.
  std::optional<double> capacity_requests_per_second;
  std::optional<double> load_fraction;
  int64_t adapter_load_count = 0;  // adapters that were fetched because they were not resident
  std::optional<double> encoder_utilization;  // share of the encoders' time at work
  // With drafts: mean tokens that a decoding sequence got of a step.
  std::optional<double> tokens_per_decode_step;
  bool saturated = false;  // load_fraction >= 0.95: latencies grow with the run, they are bounds

  friend bool operator==(const ServingReport&, const ServingReport&) = default;
};

// Runs the load to its end. Deterministic. O(steps x running sequences + requests log requests).
// `load` and `fleet` are valid.
ServingReport Simulate(const ServingLoad& load, int64_t prompt_tokens, int64_t output_tokens,
                       const Fleet& fleet, const StepCost& cost);
// The same, telling `check` how far it is. Errors are those of `check`; it may be empty.
absl::StatusOr<ServingReport> Simulate(const ServingLoad& load, int64_t prompt_tokens,
                                       int64_t output_tokens, const Fleet& fleet,
                                       const StepCost& cost, const ProgressCheck& check);

}  // namespace sextant::serving

#endif  // SEXTANT_COMMON_SERVING_SERVING_SIMULATION_H_
