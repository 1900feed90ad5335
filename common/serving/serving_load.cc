// SPDX-License-Identifier: Apache-2.0
#include "common/serving/serving_load.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/violations.h"

namespace sextant::serving {
namespace {

constexpr int64_t kMaxRequests = 1'000'000;

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every platform and library.
class Random {
 public:
  explicit Random(int64_t seed) : state_(static_cast<uint64_t>(seed)) {}
  // In [0, 1).
  double Uniform() {
    state_ += 0x9E3779B97F4A7C15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1.0p-53;
  }

 private:
  uint64_t state_;
};

int64_t Spread(int64_t tokens, double spread, Random& random) {
  if (spread <= 0) return tokens;
  const double factor = 1 + spread * (2 * random.Uniform() - 1);
  return std::max<int64_t>(tokens > 0 ? 1 : 0, std::llround(static_cast<double>(tokens) * factor));
}

// Draws adapters by their popularity.
class AdapterChoice {
 public:
  explicit AdapterChoice(const Adapters& adapters) {
    double sum = 0;
    for (int64_t i = 1; i <= adapters.count; ++i) {
      sum += std::pow(static_cast<double>(i), -adapters.popularity_exponent);
      cumulative_.push_back(sum);
    }
  }
  int64_t Draw(Random& random) const {
    if (cumulative_.empty()) return 0;
    const double at = random.Uniform() * cumulative_.back();
    return std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, at) - cumulative_.begin();
  }

 private:
  std::vector<double> cumulative_;
};

template <typename T>
void Between(base::Violations& violations, absl::string_view field, T value, T low, T high) {
  if (value >= low && value <= high) return;
  violations.Add(field, absl::StrCat("is ", value, " but must be between ", low, " and ", high));
}

void ValidateTrace(base::Violations& violations, const ServingLoad& load) {
  if (load.trace.empty()) violations.Add("trace", "is empty; an arrival of trace needs requests");
  if (static_cast<int64_t>(load.trace.size()) > kMaxRequests) {
    violations.Add("trace", absl::StrCat("has ", load.trace.size(), " requests but at most ",
                                         kMaxRequests, " are simulated"));
    return;
  }
  for (size_t i = 0; i < load.trace.size(); ++i) {
    const Request& request = load.trace[i];
    const std::string path = absl::StrCat("trace[", i, "].");
    Between(violations, path + "arrival_seconds", request.arrival_seconds, 0.0, 1e9);
    Between<int64_t>(violations, path + "prompt_tokens", request.prompt_tokens, 1,
                     int64_t{1} << 30);
    Between<int64_t>(violations, path + "output_tokens", request.output_tokens, 0,
                     int64_t{1} << 30);
  }
}

void ValidateAdapters(base::Violations& violations, const Adapters& a) {
  Between<int64_t>(violations, "adapters.count", a.count, 0, kMaxRequests);
  Between<int64_t>(violations, "adapters.rank", a.rank, 1, 1024);
  Between<int64_t>(violations, "adapters.resident_count", a.resident_count, 0, kMaxRequests);
  Between(violations, "adapters.popularity_exponent", a.popularity_exponent, 0.0, 10.0);
}

void ValidateImages(base::Violations& violations, const Images& i) {
  Between<int64_t>(violations, "images.per_request", i.per_request, 0, 1024);
  Between<int64_t>(violations, "images.prompt_tokens", i.prompt_tokens, 0, 1 << 20);
  Between<int64_t>(violations, "images.encoder_layer_count", i.encoder_layer_count, 1, 1000);
  Between<int64_t>(violations, "images.encoder_hidden_size", i.encoder_hidden_size, 1, 1 << 16);
  Between<int64_t>(violations, "images.encoder_ffn_size", i.encoder_ffn_size, 1, 1 << 18);
  Between<int64_t>(violations, "images.encoder_head_count", i.encoder_head_count, 1, 1024);
  Between<int64_t>(violations, "images.encoder_tokens", i.encoder_tokens, 1, 1 << 20);
  Between<int64_t>(violations, "images.encoder_gpu_count", i.encoder_gpu_count, 0, 100'000);
  if (i.encoder_head_count > 0 && i.encoder_hidden_size % i.encoder_head_count != 0) {
    violations.Add("images.encoder_head_count",
                   absl::StrCat("is ", i.encoder_head_count,
                                " but must divide encoder_hidden_size ", i.encoder_hidden_size));
  }
}

}  // namespace

absl::string_view ArrivalName(Arrival arrival) {
  switch (arrival) {
    case Arrival::kClosedLoop:
      return "closed_loop";
    case Arrival::kPoisson:
      return "poisson";
    case Arrival::kBurst:
      return "burst";
    case Arrival::kTrace:
      return "trace";
  }
  return "closed_loop";
}

absl::StatusOr<Arrival> ParseArrival(absl::string_view name) {
  for (const Arrival arrival :
       {Arrival::kClosedLoop, Arrival::kPoisson, Arrival::kBurst, Arrival::kTrace}) {
    if (name == ArrivalName(arrival)) return arrival;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of closed_loop, poisson, burst, trace"));
}

absl::Status ValidateServingLoad(const ServingLoad& load, int64_t replica_count) {
  base::Violations violations;
  Between<int64_t>(violations, "concurrency", load.concurrency, 1, kMaxRequests);
  if (load.arrival == Arrival::kPoisson &&
      !(load.requests_per_second > 0 && load.requests_per_second <= 1e6)) {
    violations.Add("requests_per_second",
                   absl::StrCat("is ", load.requests_per_second,
                                " but a poisson arrival needs a rate in (0, 1000000]"));
  }
  if (load.arrival == Arrival::kTrace) {
    ValidateTrace(violations, load);
  } else if (!load.trace.empty()) {
    violations.Add("trace", "is given but arrival is not trace");
  }
  Between<int64_t>(violations, "request_count", load.request_count, 0, kMaxRequests);
  Between(violations, "length_spread", load.length_spread, 0.0, 1.0);
  Between<int64_t>(violations, "max_batch_tokens", load.max_batch_tokens.value_or(1), 1,
                   int64_t{1} << 24);
  Between<int64_t>(violations, "max_batch_sequences", load.max_batch_sequences.value_or(1), 1,
                   int64_t{1} << 20);
  Between(violations, "think_seconds", load.think_seconds, 0.0, 1e6);
  Between<int64_t>(violations, "shared_prefix_tokens", load.shared_prefix_tokens, 0,
                   int64_t{1} << 30);
  ValidateAdapters(violations, load.adapters);
  ValidateImages(violations, load.images);
  Between(violations, "time_to_first_token_limit_seconds", load.time_to_first_token_limit_seconds,
          0.0, 1e9);
  Between(violations, "inter_token_latency_limit_seconds", load.inter_token_latency_limit_seconds,
          0.0, 1e9);
  if (load.prefill_replica_count < 0 ||
      (load.prefill_replica_count > 0 && load.prefill_replica_count >= replica_count)) {
    violations.Add("prefill_replica_count",
                   absl::StrCat("is ", load.prefill_replica_count, " but of ", replica_count,
                                " replicas (plan.data_parallel_size) at least one must decode"));
  }
  return violations.ToStatus();
}

EngineSchedule ScheduleOf(const ServingLoad& load, const EngineSchedule& profile) {
  return {.max_batch_tokens = load.max_batch_tokens.value_or(profile.max_batch_tokens),
          .max_batch_sequences = load.max_batch_sequences.value_or(profile.max_batch_sequences),
          .chunked_prefill = load.chunked_prefill.value_or(profile.chunked_prefill),
          .prefill_first = load.prefill_first.value_or(profile.prefill_first)};
}

int64_t RequestCount(const ServingLoad& load) {
  if (load.arrival == Arrival::kTrace) return static_cast<int64_t>(load.trace.size());
  if (load.request_count > 0) return load.request_count;
  if (load.arrival != Arrival::kClosedLoop) return 1000;
  return std::max<int64_t>(64, 8 * load.concurrency);
}

std::vector<Request> MakeRequests(const ServingLoad& load, int64_t prompt_tokens,
                                  int64_t output_tokens) {
  // A stream of its own: adapters change neither arrivals nor lengths.
  Random adapter_random(~load.seed);
  const AdapterChoice adapters(load.adapters);
  if (load.arrival == Arrival::kTrace) {
    std::vector<Request> requests = load.trace;
    std::stable_sort(requests.begin(), requests.end(), [](const Request& a, const Request& b) {
      return a.arrival_seconds < b.arrival_seconds;
    });
    for (Request& request : requests) request.adapter = adapters.Draw(adapter_random);
    return requests;
  }
  Random random(load.seed);
  const int64_t count = RequestCount(load);
  std::vector<Request> requests(static_cast<size_t>(count));
  double now = 0;
  for (int64_t i = 0; i < count; ++i) {
    Request& request = requests[static_cast<size_t>(i)];
    request.prompt_tokens = Spread(prompt_tokens, load.length_spread, random);
    request.output_tokens = Spread(output_tokens, load.length_spread, random);
    request.adapter = adapters.Draw(adapter_random);
    if (load.arrival == Arrival::kPoisson) {
      now += -std::log1p(-random.Uniform()) / load.requests_per_second;
      request.arrival_seconds = now;
    } else if (load.arrival == Arrival::kClosedLoop && i >= load.concurrency) {
      request.arrival_seconds = std::numeric_limits<double>::infinity();
      if (load.think_seconds > 0) {
        request.think_seconds = -std::log1p(-random.Uniform()) * load.think_seconds;
      }
    }
  }
  return requests;
}

}  // namespace sextant::serving
