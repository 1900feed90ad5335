// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SERVING_SERVING_LOAD_H_
#define SEXTANT_COMMON_SERVING_SERVING_LOAD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sextant::serving {

enum class Arrival : int { kClosedLoop, kPoisson, kBurst, kTrace };
absl::string_view ArrivalName(Arrival);  // "closed_loop", "poisson", "burst", "trace"
absl::StatusOr<Arrival> ParseArrival(absl::string_view name);

struct Request {
  double arrival_seconds = 0;
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int64_t priority = 0;      // smaller goes first
  double think_seconds = 0;  // closed loop: of the client, before this request
  int64_t adapter = 0;       // of ServingLoad::adapters, the most popular first

  friend bool operator==(const Request&, const Request&) = default;
};

// What an engine may do in one step.
struct EngineSchedule {
  int64_t max_batch_tokens = 8192;  // budget of one step
  int64_t max_batch_sequences = 256;
  bool chunked_prefill = true;  // false: a prompt goes through in one piece
  bool prefill_first = false;   // true: decode waits while prompts are at hand

  friend bool operator==(const EngineSchedule&, const EngineSchedule&) = default;
};

// Low-rank adapters of one base model (LoRA, Hu et al. 2021) on its attention projections; each
// request uses one of them.
struct Adapters {
  int64_t count = 0;  // that requests ask for; 0: none
  int64_t rank = 16;
  int64_t resident_count = 0;      // that a replica holds at once; 0: all
  double popularity_exponent = 0;  // the i-th of them is asked for in proportion to i^-x (Zipf)

  int64_t Resident() const { return resident_count > 0 ? resident_count : count; }
  friend bool operator==(const Adapters&, const Adapters&) = default;
};

// Images of a request, and the encoder that turns each of them into tokens of the prompt. The
// defaults are CLIP ViT-L/14 at 336 pixels (Radford et al. 2021), as LLaVA-1.5 uses it.
struct Images {
  int64_t per_request = 0;
  int64_t prompt_tokens = 576;  // of the stated prompt that one image becomes
  int64_t encoder_layer_count = 24;
  int64_t encoder_hidden_size = 1024;
  int64_t encoder_ffn_size = 4096;
  int64_t encoder_head_count = 16;
  int64_t encoder_tokens = 577;   // patches and class token of one image
  int64_t encoder_gpu_count = 0;  // beside the job's, an encoder on each; 0: the replicas encode

  friend bool operator==(const Images&, const Images&) = default;
};

// How requests come, and what the engine is told to do with them.
struct ServingLoad {
  Arrival arrival = Arrival::kClosedLoop;
  int64_t concurrency = 1;         // closed loop: requests under way at any time
  double requests_per_second = 0;  // Poisson: mean rate
  int64_t request_count = 0;       // 0: enough for a steady state (8 x concurrency, at least 64)
  int64_t seed = 1;                // of arrivals and lengths
  double length_spread = 0;        // lengths are uniform in (1 - s, 1 + s) times the stated ones
  std::vector<Request> trace;      // arrival == kTrace
  // Closed loop: mean seconds from a client's last token to its next request, exponentially
  // distributed.
  double think_seconds = 0;
  // Of EngineSchedule; absent: as the engine's profile says.
  std::optional<int64_t> max_batch_tokens;
  std::optional<int64_t> max_batch_sequences;
  std::optional<bool> chunked_prefill;
  std::optional<bool> prefill_first;
  int64_t shared_prefix_tokens = 0;   // of every prompt; computed once, then found in the cache
  int64_t prefill_replica_count = 0;  // of the replicas; above 0: prefill and decode apart
  Adapters adapters;
  Images images;
  double time_to_first_token_limit_seconds = 0;  // 0: none. Goodput counts requests within limits
  double inter_token_latency_limit_seconds = 0;

  friend bool operator==(const ServingLoad&, const ServingLoad&) = default;
};

// Every rule that the load breaks, by field name, for `replica_count` replicas.
absl::Status ValidateServingLoad(const ServingLoad& load, int64_t replica_count);

// `profile` with what the load states.
EngineSchedule ScheduleOf(const ServingLoad& load, const EngineSchedule& profile);

// Number of requests of a run.
int64_t RequestCount(const ServingLoad& load);

// The requests in order of arrival; those of a closed loop beyond the first `concurrency` have no
// arrival of their own (infinity): they come when another ends and its client has thought.
// Deterministic for a seed. O(n).
std::vector<Request> MakeRequests(const ServingLoad& load, int64_t prompt_tokens,
                                  int64_t output_tokens);

}  // namespace sextant::serving

#endif  // SEXTANT_COMMON_SERVING_SERVING_LOAD_H_
