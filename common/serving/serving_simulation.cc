// SPDX-License-Identifier: Apache-2.0
#include "common/serving/serving_simulation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace sextant::serving {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSaturatedFraction = 0.95;
constexpr int64_t kStepsPerCheck = 1000;

Percentiles Summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  const double count = static_cast<double>(values.size());
  const auto rank = [&](double share) {
    const double index = std::ceil(share * count) - 1;
    return values[static_cast<size_t>(std::max(0.0, index))];
  };
  return {.mean = sum / count, .p50 = rank(0.5), .p90 = rank(0.9), .p99 = rank(0.99)};
}

class Simulation {
 public:
  Simulation(const ServingLoad& load, std::vector<Request> requests, const Fleet& fleet,
             const StepCost& cost)
      : load_(load), fleet_(fleet), requests_(std::move(requests)), seen_(requests_.size()) {
    EngineLimits limits = fleet.limits;
    for (int64_t i = 0; i < fleet.replica_count; ++i) {
      limits.prefill_only = i < fleet.prefill_replica_count;
      replicas_.push_back({Engine(limits, requests_, cost)});
    }
    report_.offered_request_count = static_cast<int64_t>(requests_.size());
  }

  absl::StatusOr<ServingReport> Run(const ProgressCheck& check) {
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].arrival_seconds == kNever) break;
      arrivals_.push({requests_[i].arrival_seconds, static_cast<int64_t>(i), Ready::kArrived});
      next_request_ = static_cast<int64_t>(i) + 1;
    }
    while (true) {
      const double event = arrivals_.empty() ? kNever : arrivals_.top().time;
      Replica* busy = nullptr;
      for (Replica& r : replicas_) {
        if (r.until < kNever && (busy == nullptr || r.until < busy->until)) busy = &r;
      }
      if (busy == nullptr && event == kNever) break;
      if (busy == nullptr || event <= busy->until) {
        now_ = event;
        // All that arrives at one time is there before a step is planned.
        while (!arrivals_.empty() && arrivals_.top().time <= now_) Arrive();
      } else {
        now_ = busy->until;
        End(*busy);
        while (!arrivals_.empty() && arrivals_.top().time <= now_) Arrive();
      }
      for (Replica& r : replicas_) {
        if (r.until == kNever && r.engine.HasWork()) Begin(r);
      }
      if (check && report_.step_count >= next_check_) {
        next_check_ = report_.step_count + kStepsPerCheck;
        SEXTANT_RETURN_IF_ERROR(check({.simulated_seconds = now_,
                                       .completed_request_count = report_.completed_request_count,
                                       .offered_request_count = report_.offered_request_count,
                                       .step_count = report_.step_count}));
      }
    }
    return Report();
  }

  // Completions per second in the middle of the run.
  double SteadyRate() const {
    std::vector<double> ends;
    for (const Seen& s : seen_) {
      if (s.end >= 0) ends.push_back(s.end);
    }
    if (ends.size() < 2) return 0;
    std::sort(ends.begin(), ends.end());
    const size_t first = ends.size() / 10;
    const size_t last = ends.size() - 1 - ends.size() / 10;
    if (last <= first || ends[last] <= ends[first]) {
      return static_cast<double>(ends.size()) / ends.back();
    }
    return static_cast<double>(last - first) / (ends[last] - ends[first]);
  }

 private:
  struct Replica {
    Engine engine;
    double until = kNever;  // end of the step under way
    double begun = 0;
    double busy_seconds = 0;
  };
  enum class Ready : int { kArrived, kEncoded, kPrefilled };
  struct Event {
    double time = 0;
    int64_t request = 0;
    Ready ready = Ready::kArrived;
    friend bool operator>(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.request > b.request;
    }
  };
  struct Seen {
    double arrival = 0;
    double first = -1;
    double end = -1;
  };

  void Arrive() {
    const Event event = arrivals_.top();
    arrivals_.pop();
    const bool prefilled = event.ready == Ready::kPrefilled;
    const size_t begin = prefilled ? static_cast<size_t>(fleet_.prefill_replica_count) : size_t{0};
    const size_t end = prefilled || fleet_.prefill_replica_count == 0
                           ? replicas_.size()
                           : static_cast<size_t>(fleet_.prefill_replica_count);
    if (event.ready == Ready::kArrived) {
      seen_[static_cast<size_t>(event.request)].arrival = now_;
      if (!replicas_.front().engine.CanServe(event.request) ||
          !replicas_.back().engine.CanServe(event.request)) {
        ++report_.refused_request_count;
        NextOfTheLoop();
        return;
      }
      if (fleet_.encoder_count > 0) return Encode(event.request);
    }
    size_t best = begin;
    for (size_t i = begin + 1; i < end; ++i) {
      if (replicas_[i].engine.UnfinishedCount() < replicas_[best].engine.UnfinishedCount()) {
        best = i;
      }
    }
    replicas_[best].engine.Submit(event.request, prefilled);
  }

  // First come, first served, by whichever encoder is free first.
  void Encode(int64_t request) {
    double start = now_;
    if (static_cast<int64_t>(encoders_.size()) == fleet_.encoder_count) {
      start = std::max(now_, encoders_.top());
      encoders_.pop();
    }
    encoders_.push(start + fleet_.encoder_seconds);
    encoding_seconds_ += fleet_.encoder_seconds;
    arrivals_.push(
        {start + fleet_.encoder_seconds + fleet_.embedding_seconds, request, Ready::kEncoded});
  }

  void NextOfTheLoop() {
    if (load_.arrival != Arrival::kClosedLoop) return;
    if (next_request_ >= static_cast<int64_t>(requests_.size())) return;
    const size_t next = static_cast<size_t>(next_request_++);
    arrivals_.push(
        {now_ + requests_[next].think_seconds, static_cast<int64_t>(next), Ready::kArrived});
  }

  void Begin(Replica& r) {
    r.begun = now_;
    r.until = now_ + r.engine.StartStep();
    ++report_.step_count;
  }

  void End(Replica& r) {
    const StepLoad& step = r.engine.last_step();
    const double seconds = r.until - r.begun;
    r.busy_seconds += seconds;
    double& kind = step.prompt_tokens == 0     ? report_.decode_seconds
                   : step.decode_sequences > 0 ? report_.mixed_seconds
                                               : report_.prefill_seconds;
    kind += seconds;
    r.until = kNever;
    events_.clear();
    r.engine.FinishStep(&events_);
    for (const StepEvent& event : events_) {
      Seen& seen = seen_[static_cast<size_t>(event.request)];
      if (event.first_token) seen.first = now_;
      if (!event.finished) continue;
      const Request& request = requests_[static_cast<size_t>(event.request)];
      const bool handed_on = event.first_token && request.output_tokens > 1 &&
                             &r < &replicas_.front() + fleet_.prefill_replica_count;
      if (handed_on) {
        const double transfer =
            fleet_.transfer_seconds.At(static_cast<double>(request.prompt_tokens));
        arrivals_.push({now_ + transfer, event.request, Ready::kPrefilled});
        continue;
      }
      seen.end = now_;
      ++report_.completed_request_count;
      NextOfTheLoop();
    }
  }

  ServingReport Report() {
    std::vector<double> first;
    std::vector<double> between;
    std::vector<double> total;
    double tokens = 0;
    int64_t good = 0;
    for (size_t i = 0; i < seen_.size(); ++i) {
      const Seen& s = seen_[i];
      if (s.end < 0) continue;
      const double ttft = s.first - s.arrival;
      const double output = static_cast<double>(requests_[i].output_tokens);
      const double itl = output > 1 ? (s.end - s.first) / (output - 1) : 0;
      first.push_back(ttft);
      total.push_back(s.end - s.arrival);
      if (output > 1) between.push_back(itl);
      tokens += output;
      report_.makespan_seconds = std::max(report_.makespan_seconds, s.end);
      const double ttft_limit = load_.time_to_first_token_limit_seconds;
      const double itl_limit = load_.inter_token_latency_limit_seconds;
      good += (ttft_limit <= 0 || ttft <= ttft_limit) && (itl_limit <= 0 || itl <= itl_limit);
    }
    report_.time_to_first_token_seconds = Summarize(std::move(first));
    report_.inter_token_latency_seconds = Summarize(std::move(between));
    report_.end_to_end_seconds = Summarize(std::move(total));
    const double span = report_.makespan_seconds;
    double busy = 0;
    int64_t decoded_sequences = 0;
    int64_t decoded_tokens = 0;
    for (const Replica& r : replicas_) {
      decoded_sequences += r.engine.decoded_sequences();
      decoded_tokens += r.engine.decoded_tokens();
      busy += r.busy_seconds;
      report_.preemption_count += r.engine.preemption_count();
      report_.adapter_load_count += r.engine.adapter_load_count();
      if (r.engine.total_pages() > 0) {
        report_.peak_kv_fraction =
            std::max(report_.peak_kv_fraction, static_cast<double>(r.engine.peak_pages()) /
                                                   static_cast<double>(r.engine.total_pages()));
      }
    }
    if (fleet_.limits.speculation.draft_tokens > 0 && decoded_sequences > 0) {
      report_.tokens_per_decode_step =
          static_cast<double>(decoded_tokens) / static_cast<double>(decoded_sequences);
    }
    const double count = static_cast<double>(replicas_.size());
    for (double* part :
         {&report_.prefill_seconds, &report_.mixed_seconds, &report_.decode_seconds}) {
      *part /= count;
    }
    if (span > 0) {
      report_.requests_per_second = static_cast<double>(report_.completed_request_count) / span;
      report_.output_tokens_per_second = tokens / span;
      report_.goodput_requests_per_second = static_cast<double>(good) / span;
      report_.utilization = std::min(1.0, busy / count / span);
      if (fleet_.encoder_count > 0) {
        report_.encoder_utilization =
            encoding_seconds_ / (static_cast<double>(fleet_.encoder_count) * span);
      }
      report_.idle_seconds = std::max(0.0, span - busy / count);
    }
    return report_;
  }

  const ServingLoad& load_;
  const Fleet& fleet_;
  const std::vector<Request> requests_;
  std::vector<Seen> seen_;
  std::vector<Replica> replicas_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> arrivals_;
  // Times at which encoders become free.
  std::priority_queue<double, std::vector<double>, std::greater<>> encoders_;
  double encoding_seconds_ = 0;
  std::vector<StepEvent> events_;
  int64_t next_request_ = 0;
  int64_t next_check_ = kStepsPerCheck;
  double now_ = 0;
  ServingReport report_;
};

}  // namespace

ServingReport Simulate(const ServingLoad& load, int64_t prompt_tokens, int64_t output_tokens,
                       const Fleet& fleet, const StepCost& cost) {
  return *Simulate(load, prompt_tokens, output_tokens, fleet, cost, {});
}

absl::StatusOr<ServingReport> Simulate(const ServingLoad& load, int64_t prompt_tokens,
                                       int64_t output_tokens, const Fleet& fleet,
                                       const StepCost& cost, const ProgressCheck& check) {
  const std::vector<Request> requests = MakeRequests(load, prompt_tokens, output_tokens);
  SEXTANT_ASSIGN_OR_RETURN(ServingReport report,
                           Simulation(load, requests, fleet, cost).Run(check));
  if (load.arrival != Arrival::kPoisson && load.arrival != Arrival::kTrace) return report;

  // The same requests, all there from the start.
  std::vector<Request> burst = requests;
  for (Request& request : burst) request.arrival_seconds = 0;
  Simulation full(load, burst, fleet, cost);
  SEXTANT_RETURN_IF_ERROR(full.Run(check).status());
  const double capacity = full.SteadyRate();
  const double span = requests.empty() ? 0 : requests.back().arrival_seconds;
  const double offered = load.arrival == Arrival::kPoisson
                             ? load.requests_per_second
                             : static_cast<double>(requests.size()) / span;
  if (capacity > 0 && (load.arrival == Arrival::kPoisson || span > 0)) {
    report.capacity_requests_per_second = capacity;
    report.load_fraction = offered / capacity;
    report.saturated = *report.load_fraction >= kSaturatedFraction;
  }
  return report;
}

}  // namespace sextant::serving
