// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/simulate.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/network_sim/analytic/closed_form.h"
#include "common/network_sim/flow/flow_simulation.h"
#include "common/network_sim/flow/streams.h"
#include "common/network_sim/packet/packet_simulation.h"
#include "common/network_sim/patterns/schedule.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {
namespace {

constexpr std::array<absl::string_view, 2> kFidelityNames = {"analytic", "flow"};
constexpr std::array<absl::string_view, 3> kStatusNames = {"ok", "unreachable", "unsupported"};

constexpr int64_t kMaxMessages = 20'000'000;  // about 2 GB of working memory

void SetTimes(const NetworkCase& network_case, absl::Span<const double> finish_seconds,
              NetworkResult& result) {
  for (size_t j = 0; j < network_case.jobs.size(); ++j) {
    const NetworkJob& job = network_case.jobs[j];
    const double finish = std::max(finish_seconds[j], job.start_seconds);
    result.jobs.push_back({job.name, job.start_seconds, finish, finish - job.start_seconds});
    // A job that sends nothing does not lengthen the case.
    result.total_seconds = std::max(result.total_seconds, finish_seconds[j]);
  }
}

void SetLimitingLink(const Topology& topology, absl::Span<const double> busy_seconds,
                     NetworkResult& result) {
  const auto busiest = std::max_element(busy_seconds.begin(), busy_seconds.end());
  if (busiest == busy_seconds.end() || !(*busiest > 0)) return;
  const DirectedLink& link = topology.links()[static_cast<size_t>(busiest - busy_seconds.begin())];
  result.limiting_link =
      absl::StrCat(topology.NodeName(link.from), "->", topology.NodeName(link.to));
  result.limiting_link_seconds = *busiest;
}

// What is no fault of the caller's becomes part of the answer.
absl::StatusOr<NetworkResult> WithoutTimes(NetworkResult result, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      result.status = NetworkStatus::kUnreachable;
      break;
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
      result.status = NetworkStatus::kUnsupported;
      break;
    default:
      return status;
  }
  result.reason = std::string(status.message());
  return result;
}

absl::Status Simulate(const NetworkCase& network_case, NetworkResult& result) {
  SEXTANT_ASSIGN_OR_RETURN(const Topology topology,
                           Topology::Create(network_case.topology, network_case.link_faults));
  if (result.fidelity == Fidelity::kAnalytic) {
    SEXTANT_ASSIGN_OR_RETURN(const ClosedFormOutcome closed, ClosedForm(topology, network_case));
    SetTimes(network_case, closed.job_finish_seconds, result);
    SetLimitingLink(topology, closed.link_busy_seconds, result);
    return absl::OkStatus();
  }
  SEXTANT_ASSIGN_OR_RETURN(const Schedule schedule, LowerJobs(network_case.jobs, kMaxMessages));
  SEXTANT_ASSIGN_OR_RETURN(
      const Streams streams,
      BuildStreams(topology, schedule, network_case.transport, network_case.ecmp_seed));
  const bool packets = PacketsDecide(schedule, streams, network_case.transport);
  SEXTANT_ASSIGN_OR_RETURN(
      const FlowOutcome outcome,
      packets
          ? SimulatePackets(topology, schedule, streams, network_case.transport, network_case.jobs)
          : SimulateFlows(topology, schedule, streams, network_case.transport, network_case.jobs,
                          FlowLimits{}));
  result.event_count = outcome.event_count;
  SetTimes(network_case, outcome.job_finish_seconds, result);
  SetLimitingLink(topology, LinkBusySeconds(topology, schedule, streams, network_case.transport),
                  result);
  return absl::OkStatus();
}

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
                                                  Fidelity fidelity) {
  SEXTANT_RETURN_IF_ERROR(ValidateNetworkCase(network_case));
  NetworkResult result;
  result.case_id = network_case.id;
  result.fidelity = fidelity;
  const absl::Status status = Simulate(network_case, result);
  if (!status.ok()) return WithoutTimes(std::move(result), status);
  return result;
}

}  // namespace sextant::network_sim
