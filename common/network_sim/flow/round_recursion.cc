// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/flow/round_recursion.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/status_macros.h"
#include "common/network_sim/analytic/closed_form.h"
#include "common/network_sim/engine/event_queue.h"
#include "common/network_sim/flow/streams.h"
#include "common/network_sim/patterns/rounds.h"
#include "common/network_sim/topology/routing.h"

namespace sextant::network_sim {
namespace {

constexpr double kSameTime = 1e-6;
// A link is full within rounding of its bandwidth.
constexpr double kFull = 1 + 1e-12;

// One message of a round, ready to be repeated.
struct Sending {
  size_t sender = 0;  // places in the list of (lane, rank)
  size_t receiver = 0;
  size_t stream = 0;
  SimTime duration = 0;  // on the slowest link
  SimTime tail = 0;
};

class RoundRecursion {
 public:
  RoundRecursion(const Topology& topology, const NetworkCase& network_case,
                 const FlowLimits& limits, const ProgressCheck& check)
      : topology_(topology),
        case_(network_case),
        limits_(limits),
        router_(topology, {network_case.routing, network_case.ecmp_seed}),
        check_(check),
        peak_load_(topology.links().size(), 0.0) {
    outcome_.link_busy_seconds.assign(topology.links().size(), 0.0);
  }

  absl::StatusOr<std::optional<RoundOutcome>> Run() {
    for (size_t j = 0; j < case_.jobs.size(); ++j) {
      SEXTANT_ASSIGN_OR_RETURN(const bool timed, TimeJob(static_cast<int32_t>(j)));
      if (!timed) return std::optional<RoundOutcome>();
    }
    return std::optional<RoundOutcome>(std::move(outcome_));
  }

 private:
  absl::StatusOr<bool> TimeJob(int32_t index) {
    const NetworkJob& job = case_.jobs[static_cast<size_t>(index)];
    const int64_t n = CommonGroupSize(job);
    if (job.pattern == Pattern::kFlows || n < 0 || !RanksAreDistinct(job)) return false;
    outcome_.job_finish_seconds.push_back(0);
    if (n == 0) return true;
    const RoundPlan plan = PlanRounds(job, static_cast<size_t>(n));
    if (plan.steps.empty()) return false;
    std::vector<double> repeats(plan.rounds.size(), 0.0);
    for (const RoundPlan::Step& step : plan.steps) {
      repeats[step.round] += static_cast<double>(step.repeat);
    }
    streams_.clear();
    std::vector<std::vector<Sending>> rounds;
    for (size_t r = 0; r < plan.rounds.size(); ++r) {
      rounds.emplace_back();
      SEXTANT_ASSIGN_OR_RETURN(const bool unhindered,
                               Prepare(plan.rounds[r], index, repeats[r], rounds.back()));
      if (!unhindered) return false;
    }
    SEXTANT_RETURN_IF_ERROR(Follow(plan, rounds, ToSimTime(job.start_seconds)));
    return true;
  }

  // A rank in two groups would wait for each on its own.
  bool RanksAreDistinct(const NetworkJob& job) const {
    std::vector<char> seen(static_cast<size_t>(topology_.endpoint_count()), 0);
    for (const std::vector<int64_t>& group : job.groups) {
      for (const int64_t rank : group) {
        if (std::exchange(seen[static_cast<size_t>(rank)], 1)) return false;
      }
    }
    return true;
  }

  // Routes a round. False where all streams of a link, each at the rate of its own slowest link,
  // could ask for more than the link has.
  absl::StatusOr<bool> Prepare(const std::vector<Transfer>& transfers, int32_t job, double repeat,
                               std::vector<Sending>& round) {
    std::vector<size_t> order(transfers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return transfers[a].destination < transfers[b].destination;
    });
    round.resize(transfers.size());
    const size_t endpoints = static_cast<size_t>(topology_.endpoint_count());
    for (const size_t i : order) {
      const Transfer& t = transfers[i];
      SEXTANT_ASSIGN_OR_RETURN(
          const std::vector<int32_t> path,
          router_.Route(static_cast<int32_t>(t.source), static_cast<int32_t>(t.destination)));
      const auto [entry, is_new] = streams_.try_emplace(
          std::tuple(job, t.group, t.lane, t.source, t.destination), next_stream_);
      if (is_new) ++next_stream_;
      const double wire = WireBytes(t.bytes, case_.transport);
      double peak = std::numeric_limits<double>::infinity();
      for (const int32_t link : path) {
        const size_t l = static_cast<size_t>(link);
        const double bandwidth = topology_.links()[l].bandwidth_bytes_per_second;
        peak = std::min(peak, bandwidth);
        outcome_.link_busy_seconds[l] += wire / bandwidth * repeat;
      }
      if (is_new && !Fits(path, peak)) return false;
      const size_t lane = static_cast<size_t>(t.lane) * endpoints;
      round[i] = {lane + static_cast<size_t>(t.source), lane + static_cast<size_t>(t.destination),
                  static_cast<size_t>(entry->second), ToSimTime(wire / peak),
                  ToSimTime(TailSeconds(topology_, path, t.bytes, case_.transport))};
    }
    return true;
  }

  // Adds a stream to the links of its path. False where one of them could then be asked for more
  // than it has.
  bool Fits(absl::Span<const int32_t> path, double peak) {
    bool fits = true;
    for (const int32_t link : path) {
      const size_t l = static_cast<size_t>(link);
      peak_load_[l] += peak;
      fits &= peak_load_[l] <= kFull * topology_.links()[l].bandwidth_bytes_per_second;
    }
    return fits;
  }

  absl::Status Follow(const RoundPlan& plan, const std::vector<std::vector<Sending>>& rounds,
                      SimTime start) {
    ready_.assign(2 * static_cast<size_t>(topology_.endpoint_count()), start);
    free_.assign(static_cast<size_t>(next_stream_), start);
    finish_ = 0;
    for (const RoundPlan::Step& step : plan.steps) {
      const std::vector<Sending>& round = rounds[step.round];
      arrivals_.assign(round.size(), 0);
      for (int64_t k = 0; k < step.repeat; ++k) {
        SimTime delay = 0;
        const bool steady = Advance(round, delay);
        outcome_.event_count += static_cast<int64_t>(round.size());
        if (steady && k + 1 < step.repeat) {
          Skip(round, (step.repeat - k - 1), delay);
          break;
        }
        if (check_) {
          SEXTANT_RETURN_IF_ERROR(check_({ToSeconds(finish_), outcome_.event_count}));
        }
        if (outcome_.event_count > limits_.max_events) return BeyondEvents(limits_, finish_);
        if (ToSeconds(finish_) > limits_.max_simulated_seconds) return BeyondTime(limits_);
      }
    }
    outcome_.job_finish_seconds.back() = ToSeconds(finish_);
    return absl::OkStatus();
  }

  // One round. True where every receiver and every stream is `delay` later than a round ago.
  bool Advance(const std::vector<Sending>& round, SimTime& delay) {
    bool steady = true;
    for (size_t i = 0; i < round.size(); ++i) {
      const Sending& s = round[i];
      const SimTime sent = std::max(ready_[s.sender], free_[s.stream]) + s.duration;
      arrivals_[i] = sent + s.tail;
      if (i == 0) delay = sent - free_[s.stream];
      steady &= sent - free_[s.stream] == delay;
      free_[s.stream] = sent;
    }
    for (size_t i = 0; i < round.size(); ++i) {
      SimTime& ready = ready_[round[i].receiver];
      steady &= arrivals_[i] - ready == delay;
      ready = arrivals_[i];
      finish_ = std::max(finish_, arrivals_[i]);
    }
    return steady;
  }

  void Skip(const std::vector<Sending>& round, int64_t repeat, SimTime delay) {
    if (repeat > 0 && delay > (kSimTimeLimit - finish_) / repeat) {
      finish_ = kSimTimeLimit;
      return;
    }
    for (const Sending& s : round) {
      free_[s.stream] += repeat * delay;
      ready_[s.receiver] += repeat * delay;
      finish_ = std::max(finish_, ready_[s.receiver]);
    }
  }

  const Topology& topology_;
  const NetworkCase& case_;
  const FlowLimits& limits_;
  Router router_;
  const ProgressCheck& check_;
  std::vector<double> peak_load_;  // per directed link: what its streams could ask for
  using StreamKey = std::tuple<int32_t, int32_t, int32_t, int64_t, int64_t>;
  absl::flat_hash_map<StreamKey, int32_t> streams_;
  int32_t next_stream_ = 0;
  std::vector<SimTime> ready_;  // per (lane, rank): what it waited for has arrived
  std::vector<SimTime> free_;   // per stream: its last message has been sent
  std::vector<SimTime> arrivals_;
  SimTime finish_ = 0;
  RoundOutcome outcome_;
};

}  // namespace

absl::StatusOr<std::optional<RoundOutcome>> TimeRounds(const Topology& topology,
                                                       const NetworkCase& network_case,
                                                       const FlowLimits& limits,
                                                       const ProgressCheck& check) {
  if (network_case.transport.window_bytes > 0 || network_case.routing == Routing::kAdaptive) {
    return std::optional<RoundOutcome>();
  }
  absl::StatusOr<ClosedFormOutcome> closed = ClosedForm(topology, network_case, kSameTime);
  if (closed.ok()) {
    return std::optional<RoundOutcome>(
        {std::move(closed->job_finish_seconds), std::move(closed->link_busy_seconds), 0});
  }
  if (closed.status().code() != absl::StatusCode::kUnimplemented) return closed.status();
  return RoundRecursion(topology, network_case, limits, check).Run();
}

}  // namespace sextant::network_sim
