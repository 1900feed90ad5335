// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/simulate.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/network_sim/case_timer.h"
#include "common/network_sim/collective_choice.h"
#include "common/network_sim/mapping.h"
#include "common/network_sim/patterns/ring_embedding.h"
#include "common/network_sim/patterns/schedule.h"
#include "common/network_sim/topology/fault_overlay.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {
namespace {

constexpr std::array<absl::string_view, 2> kFidelityNames = {"analytic", "flow"};
constexpr std::array<absl::string_view, 3> kStatusNames = {"ok", "unreachable", "unsupported"};

// Algorithms that would send more are not tried where a job leaves the choice.
constexpr double kMostTriedMessages = 2e6;

// True where the case has no time, through no fault of the caller's: part of the answer.
bool IsAnswer(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
      return true;
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

void SetTimes(const NetworkCase& network_case, absl::Span<const double> finish_seconds,
              NetworkResult& result) {
  result.jobs.clear();
  result.total_seconds = 0;
  for (size_t j = 0; j < network_case.jobs.size(); ++j) {
    const NetworkJob& job = network_case.jobs[j];
    const double finish = std::max(finish_seconds[j], job.start_seconds);
    result.jobs.push_back({job.name, std::string(PatternName(job.pattern)), job.start_seconds,
                           finish, finish - job.start_seconds});
    // A job that sends nothing does not lengthen the case.
    result.total_seconds = std::max(result.total_seconds, finish_seconds[j]);
  }
}

void SetLimitingLink(const Topology& topology, absl::Span<const double> busy_seconds,
                     NetworkResult& result) {
  const auto busiest = std::max_element(busy_seconds.begin(), busy_seconds.end());
  if (busiest == busy_seconds.end() || !(*busiest > 0)) return;
  result.limiting_link = topology.LinkName(static_cast<int32_t>(busiest - busy_seconds.begin()));
  result.limiting_link_seconds = *busiest;
}

// Ranks of the case that lie outside the largest surviving piece.
std::vector<int64_t> CutOffRanks(const Topology& topology, const NetworkCase& network_case) {
  std::set<int64_t> used;
  for (const NetworkJob& job : network_case.jobs) {
    for (const std::vector<int64_t>& group : job.groups) used.insert(group.begin(), group.end());
    for (const FlowSpec& flow : job.flows) used.insert({flow.source, flow.destination});
  }
  const auto pieces = ConnectedEndpoints(topology);
  std::vector<int64_t> cut_off;
  for (size_t p = 1; p < pieces.size(); ++p) {
    for (const int32_t rank : pieces[p]) {
      if (used.count(rank) > 0) cut_off.push_back(rank);
    }
  }
  std::sort(cut_off.begin(), cut_off.end());
  return cut_off;
}

// Answers one valid case.
class CaseSimulator {
 public:
  CaseSimulator(const NetworkCase& network_case, Fidelity fidelity,
                const SimulationOptions& options)
      : given_(network_case), fidelity_(fidelity), options_(options) {}

  absl::StatusOr<NetworkResult> Run() {
    result_.case_id = given_.id;
    result_.fidelity = fidelity_;
    healthy_ = Topology::Create(given_.topology);
    SEXTANT_ASSIGN_OR_RETURN(faulty_, healthy_->WithFaults(given_.faults));
    const absl::Status status = TimeBestLayout();
    if (status.ok()) return std::move(result_);
    if (!IsAnswer(status)) return status;
    result_.status = status.code() == absl::StatusCode::kUnavailable ? NetworkStatus::kUnreachable
                                                                     : NetworkStatus::kUnsupported;
    result_.reason = std::string(status.message());
    result_.total_seconds = 0;
    if (result_.status == NetworkStatus::kUnreachable) {
      NetworkCase expanded = given_;
      Append(JobsOfLayout(given_.parallel), expanded.jobs);
      result_.unreachable_ranks = CutOffRanks(*faulty_, expanded);
      if (!result_.unreachable_ranks.empty()) {
        absl::StrAppend(&result_.reason, "; cut off: ranks ",
                        absl::StrJoin(result_.unreachable_ranks, ", "));
      }
    }
    return std::move(result_);
  }

 private:
  static void Append(std::vector<NetworkJob> more, std::vector<NetworkJob>& jobs) {
    for (NetworkJob& job : more) jobs.push_back(std::move(job));
  }

  // Tries every order of the layout's dimensions where the mapping is to be found.
  absl::Status TimeBestLayout() {
    std::vector<size_t> order(given_.parallel.size());
    std::iota(order.begin(), order.end(), size_t{0});
    SEXTANT_RETURN_IF_ERROR(TimeLayout(order, result_));
    if (!given_.optimise_mapping) return absl::OkStatus();
    const double given_seconds = result_.total_seconds;
    while (std::next_permutation(order.begin(), order.end())) {
      NetworkResult other;
      other.case_id = given_.id;
      other.fidelity = fidelity_;
      const absl::Status status = TimeLayout(order, other);
      if (!status.ok() && !IsAnswer(status)) return status;
      if (status.ok() && other.total_seconds < result_.total_seconds) result_ = std::move(other);
    }
    if (result_.total_seconds > 0) result_.mapping_gain = given_seconds / result_.total_seconds;
    return absl::OkStatus();
  }

  absl::Status TimeLayout(const std::vector<size_t>& order, NetworkResult& result) {
    NetworkCase network_case = given_;
    std::vector<ParallelDimension> layout;
    for (const size_t i : order) {
      layout.push_back(given_.parallel[i]);
      result.mapping.push_back(given_.parallel[i].job.name);
    }
    Append(JobsOfLayout(layout), network_case.jobs);
    for (NetworkJob& job : network_case.jobs) {
      if (!LeavesAlgorithmOpen(job.pattern)) continue;
      SEXTANT_ASSIGN_OR_RETURN(job, ChooseAlgorithm(job, given_.topology, [&](const NetworkJob& j) {
                                 return SecondsAlone(j);
                               }));
    }
    return TimeCase(std::move(network_case), result);
  }

  // The job without the others, in closed form where there is one.
  absl::StatusOr<double> SecondsAlone(const NetworkJob& job) const {
    NetworkCase alone = given_;
    alone.jobs.assign(1, job);
    alone.jobs[0].start_seconds = 0;
    const CaseTimer timer(*faulty_, alone, options_);
    absl::StatusOr<CaseTimes> times = timer.Analytic();
    if (!times.ok() && times.status().code() == absl::StatusCode::kUnimplemented &&
        fidelity_ == Fidelity::kFlow && MessageCount(job) <= kMostTriedMessages) {
      times = timer.Flow();
    }
    if (!times.ok()) return times.status();
    return times->job_finish_seconds[0];
  }

  absl::StatusOr<CaseTimes> Time(const CaseTimer& timer, const Streams* healthy) const {
    return fidelity_ == Fidelity::kAnalytic ? timer.Analytic() : timer.Flow(healthy);
  }

  absl::Status TimeCase(NetworkCase network_case, NetworkResult& result) {
    const bool compare = faulty_->has_faults() && options_.compare_with_healthy;
    CaseTimes healthy;
    if (compare) {
      const CaseTimer timer(*healthy_, network_case, options_);
      absl::StatusOr<CaseTimes> times = Time(timer, nullptr);
      if (!times.ok() && !IsAnswer(times.status())) return times.status();
      if (times.ok()) healthy = *std::move(times);
    }
    if (network_case.reembed_rings) {
      for (NetworkJob& job : network_case.jobs) {
        SEXTANT_ASSIGN_OR_RETURN(
            const int64_t changed,
            ReembedRings(*faulty_, {network_case.routing, network_case.ecmp_seed}, job));
        result.reembedded_count += changed;
      }
    }
    const Streams* reuse =
        healthy.streams.has_value() && result.reembedded_count == 0 ? &*healthy.streams : nullptr;
    const CaseTimer timer(*faulty_, network_case, options_);
    SEXTANT_ASSIGN_OR_RETURN(const CaseTimes times, Time(timer, reuse));
    result.event_count = times.event_count;
    SetTimes(network_case, times.job_finish_seconds, result);
    SetLimitingLink(*faulty_, times.link_busy_seconds, result);
    if (times.streams.has_value()) result.rerouted_count = times.streams->rerouted_count;
    SetComparison(healthy, result);
    return absl::OkStatus();
  }

  void SetComparison(const CaseTimes& healthy, NetworkResult& result) const {
    for (size_t i = 0; i < faulty_->links().size(); i += 2) {
      result.faulty_link_count += faulty_->links()[i].bandwidth_bytes_per_second <
                                  healthy_->links()[i].bandwidth_bytes_per_second;
    }
    result.healthy_seconds = faulty_->has_faults() ? 0 : result.total_seconds;
    for (const double finish : healthy.job_finish_seconds) {
      result.healthy_seconds = std::max(result.healthy_seconds, finish);
    }
    if (result.healthy_seconds > 0) result.slowdown = result.total_seconds / result.healthy_seconds;
  }

  const NetworkCase& given_;
  const Fidelity fidelity_;
  const SimulationOptions& options_;
  std::optional<Topology> healthy_;
  std::optional<Topology> faulty_;
  NetworkResult result_;
};

}  // namespace

absl::string_view FidelityName(Fidelity fidelity) {
  return kFidelityNames[static_cast<size_t>(fidelity)];
}

absl::StatusOr<Fidelity> ParseFidelity(absl::string_view name) {
  for (size_t i = 0; i < kFidelityNames.size(); ++i) {
    if (kFidelityNames[i] == name) return static_cast<Fidelity>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(kFidelityNames, ", ")));
}

absl::string_view NetworkStatusName(NetworkStatus status) {
  return kStatusNames[static_cast<size_t>(status)];
}

absl::StatusOr<NetworkResult> SimulateNetworkCase(const NetworkCase& network_case,
                                                  Fidelity fidelity,
                                                  const SimulationOptions& options) {
  SEXTANT_RETURN_IF_ERROR(ValidateNetworkCase(network_case));
  return CaseSimulator(network_case, fidelity, options).Run();
}

}  // namespace sextant::network_sim
