// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/analytic/closed_form.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/network_sim/flow/streams.h"
#include "common/network_sim/patterns/rounds.h"
#include "common/network_sim/topology/routing.h"

namespace sextant::network_sim {
namespace {

constexpr int64_t kFewPackets = 64;
constexpr int64_t kMaxRoundMessages = 20'000'000;

// Time of one transfer in its round.
struct Timed {
  double sending_seconds = 0;  // until the last byte has left the slowest link
  double tail_seconds = 0;
  double Total() const { return sending_seconds + tail_seconds; }
};

// Times jobs one by one and remembers which job used a link.
class ClosedFormTimer {
 public:
  ClosedFormTimer(const Topology& topology, const NetworkCase& network_case, double tolerance)
      : topology_(topology),
        case_(network_case),
        tolerance_(tolerance),
        router_(topology, {network_case.routing, network_case.ecmp_seed}),
        owner_(topology.links().size(), -1),
        load_bytes_(topology.links().size(), 0.0) {
    outcome_.link_busy_seconds.assign(topology.links().size(), 0.0);
  }

  absl::StatusOr<ClosedFormOutcome> Run() {
    if (case_.routing == Routing::kAdaptive) {
      return absl::UnimplementedError("analytic has no adaptive routing; use flow");
    }
    if (case_.transport.window_bytes > 0) {
      return absl::UnimplementedError(
          "analytic assumes windows that never bind (window_bytes 0); use flow");
    }
    for (size_t j = 0; j < case_.jobs.size(); ++j) {
      job_ = static_cast<int32_t>(j);
      const NetworkJob& job = case_.jobs[j];
      SEXTANT_ASSIGN_OR_RETURN(const double seconds, JobSeconds(job));
      outcome_.job_finish_seconds.push_back(seconds > 0 ? job.start_seconds + seconds : 0);
    }
    return std::move(outcome_);
  }

 private:
  absl::StatusOr<double> JobSeconds(const NetworkJob& job) {
    const int64_t n = job.pattern == Pattern::kFlows ? 2 : CommonGroupSize(job);
    if (n < 0) {
      return absl::UnimplementedError(absl::StrCat(
          "job ", job.name, " has groups of different sizes, which analytic cannot time"));
    }
    if (n == 0) return 0;
    if (job.pattern == Pattern::kPipelineChain) return ChainSeconds(job);
    if (job.pattern == Pattern::kTreeAllReduce || job.pattern == Pattern::kTreeBroadcast) {
      return TreeSeconds(job);
    }
    const RoundPlan plan = PlanRounds(job, static_cast<size_t>(n));
    if (plan.steps.empty()) {
      return absl::UnimplementedError(absl::StrCat("job ", job.name, " (", PatternName(job.pattern),
                                                   ") has no closed form; use flow"));
    }
    if (!plan.all_take_part) return Uneven(job);
    const bool one_round = plan.steps.size() == 1 && plan.steps[0].repeat == 1;
    std::vector<double> round_seconds;
    for (const std::vector<Transfer>& round : plan.rounds) {
      SEXTANT_ASSIGN_OR_RETURN(const std::vector<Timed> times,
                               Time(job, round, RepeatOf(plan, round)));
      const auto [least, most] =
          std::minmax_element(times.begin(), times.end(),
                              [](const Timed& a, const Timed& b) { return a.Total() < b.Total(); });
      // Without shared links one round lasts as long as its longest message. Otherwise all must
      // take equally long: then every rate is wire bytes / time, which fills each message's
      // busiest link and so is its max-min share, and all ranks go on together.
      if (most->Total() - least->Total() > tolerance_ * most->Total() && (shared_ || !one_round)) {
        return Uneven(job);
      }
      // Rounds of few packets that share links pack tighter than sums over rounds tell.
      if (shared_ && FewPackets(round)) return Uneven(job);
      round_seconds.push_back(most->Total());
    }
    double seconds = 0;
    for (const RoundPlan::Step& step : plan.steps) {
      seconds += static_cast<double>(step.repeat) * round_seconds[step.round];
    }
    return seconds;
  }

  bool FewPackets(const std::vector<Transfer>& round) const {
    return std::any_of(round.begin(), round.end(), [&](const Transfer& t) {
      return t.bytes <= kFewPackets * case_.transport.payload_bytes;
    });
  }

  static double RepeatOf(const RoundPlan& plan, const std::vector<Transfer>& round) {
    double repeat = 0;
    for (const RoundPlan::Step& step : plan.steps) {
      if (&plan.rounds[step.round] == &round) repeat += static_cast<double>(step.repeat);
    }
    return repeat;
  }

  static absl::Status Uneven(const NetworkJob& job) {
    return absl::UnimplementedError(
        absl::StrCat("the messages of a round of job ", job.name, " (", PatternName(job.pattern),
                     ") do not take equally long or are too short to share links "
                     "as fluids do, which analytic cannot time; use flow"));
  }

  // Time of every transfer of a round; sets shared_ where two transfers meet on a link.
  absl::StatusOr<std::vector<Timed>> Time(const NetworkJob& job,
                                          const std::vector<Transfer>& transfers, double repeat) {
    if (static_cast<int64_t>(transfers.size()) > kMaxRoundMessages) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a round of job ", job.name, " has ", transfers.size(), " messages"));
    }
    std::vector<size_t> order(transfers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return transfers[a].destination < transfers[b].destination;
    });
    std::vector<std::vector<int32_t>> paths(transfers.size());
    std::vector<int32_t> used;
    shared_ = false;
    for (const size_t i : order) {
      const Transfer& t = transfers[i];
      SEXTANT_ASSIGN_OR_RETURN(paths[i], router_.Route(static_cast<int32_t>(t.source),
                                                       static_cast<int32_t>(t.destination)));
      for (const int32_t link : paths[i]) {
        double& load = load_bytes_[static_cast<size_t>(link)];
        shared_ |= load > 0;
        if (load == 0) used.push_back(link);
        load += WireBytes(t.bytes, case_.transport);
      }
    }
    std::vector<Timed> times(transfers.size());
    for (size_t i = 0; i < times.size(); ++i) {
      for (const int32_t link : paths[i]) {
        times[i].sending_seconds = std::max(times[i].sending_seconds, LoadSeconds(link));
      }
      times[i].tail_seconds = TailSeconds(topology_, paths[i], transfers[i].bytes, case_.transport);
    }
    bool taken = false;
    for (const int32_t link : used) {
      const size_t index = static_cast<size_t>(link);
      taken |= owner_[index] != -1 && owner_[index] != job_;
      owner_[index] = job_;
      outcome_.link_busy_seconds[index] += LoadSeconds(link) * repeat;
      load_bytes_[index] = 0;
    }
    if (taken) {
      return absl::UnimplementedError(
          absl::StrCat("job ", job.name,
                       " shares links with another job, which analytic cannot time; use flow"));
    }
    return times;
  }

  double LoadSeconds(int32_t link) const {
    return load_bytes_[static_cast<size_t>(link)] /
           topology_.links()[static_cast<size_t>(link)].bandwidth_bytes_per_second;
  }

  // The first micro-batch crosses all stages; each further one follows after the slowest stage.
  absl::StatusOr<double> ChainSeconds(const NetworkJob& job) {
    double longest = 0;
    std::vector<Transfer> round;
    for (const std::vector<int64_t>& ranks : job.groups) {
      for (size_t s = 0; s + 1 < ranks.size(); ++s) {
        round.push_back({ranks[s], ranks[s + 1], job.message_bytes});
      }
    }
    SEXTANT_ASSIGN_OR_RETURN(const std::vector<Timed> times,
                             Time(job, round, static_cast<double>(job.micro_batch_count)));
    if (shared_) return Uneven(job);
    size_t next = 0;
    for (const std::vector<int64_t>& ranks : job.groups) {
      double seconds = 0;
      double slowest = 0;
      for (size_t s = 0; s + 1 < ranks.size(); ++s, ++next) {
        seconds += times[next].Total();
        slowest = std::max(slowest, times[next].sending_seconds);
      }
      longest =
          std::max(longest, seconds + static_cast<double>(job.micro_batch_count - 1) * slowest);
    }
    return longest;
  }

  // A chunk climbs `depth` steps and comes down; the others follow one sending time apart.
  absl::StatusOr<double> TreeSeconds(const NetworkJob& job) {
    const int64_t chunk = LargestBlock(job.message_bytes, job.chunk_count);
    const bool broadcast = job.pattern == Pattern::kTreeBroadcast;
    std::vector<Transfer> round;
    double depth = 0;
    for (const std::vector<int64_t>& ranks : job.groups) {
      for (size_t i = 1; i < ranks.size(); ++i) {
        if (!broadcast) round.push_back({ranks[i], ranks[(i - 1) / 2], chunk});
        round.push_back({ranks[(i - 1) / 2], ranks[i], chunk});
      }
      depth = std::max(depth, std::floor(std::log2(static_cast<double>(ranks.size()))));
    }
    SEXTANT_ASSIGN_OR_RETURN(const std::vector<Timed> times,
                             Time(job, round, static_cast<double>(job.chunk_count)));
    const auto [least, most] =
        std::minmax_element(times.begin(), times.end(),
                            [](const Timed& a, const Timed& b) { return a.Total() < b.Total(); });
    if (shared_ || most->Total() - least->Total() > tolerance_ * most->Total()) return Uneven(job);
    return (broadcast ? 1 : 2) * depth * most->Total() +
           static_cast<double>(job.chunk_count - 1) * most->sending_seconds;
  }

  const Topology& topology_;
  const NetworkCase& case_;
  const double tolerance_;
  Router router_;
  std::vector<int32_t> owner_;      // job that uses each directed link, -1: none yet
  std::vector<double> load_bytes_;  // of the round being timed
  int32_t job_ = 0;
  bool shared_ = false;
  ClosedFormOutcome outcome_;
};

}  // namespace

absl::StatusOr<ClosedFormOutcome> ClosedForm(const Topology& topology,
                                             const NetworkCase& network_case, double tolerance) {
  return ClosedFormTimer(topology, network_case, tolerance).Run();
}

}  // namespace sextant::network_sim
