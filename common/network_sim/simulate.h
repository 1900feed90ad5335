// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_SIMULATE_H_
#define SEXTANT_COMMON_NETWORK_SIM_SIMULATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/progress.h"

namespace sextant::network_sim {

//   kAnalytic: closed forms, where patterns are symmetric and jobs do not meet.
//   kFlow: event-driven, every link shared max-min fairly.
enum class Fidelity : int { kAnalytic, kFlow };
absl::string_view FidelityName(Fidelity fidelity);  // "analytic", "flow"
absl::StatusOr<Fidelity> ParseFidelity(absl::string_view name);

//   kOk: times are given.
//   kUnreachable: faults leave some pair without a path; `unreachable_ranks` says who is cut off.
//   kUnsupported: the fidelity has no answer for this case (reason says which has), or the case is
//   beyond its limits.
enum class NetworkStatus : int { kOk, kUnreachable, kUnsupported };
absl::string_view NetworkStatusName(NetworkStatus status);  // "ok", "unreachable", "unsupported"

struct NetworkJobResult {
  std::string name;
  std::string algorithm;  // the pattern, as chosen where the job left the choice
  double start_seconds = 0;
  double finish_seconds = 0;  // last byte of the last message
  double total_seconds = 0;   // finish - start

  friend bool operator==(const NetworkJobResult&, const NetworkJobResult&) = default;
};

struct NetworkResult {
  std::string case_id;
  Fidelity fidelity = Fidelity::kFlow;
  NetworkStatus status = NetworkStatus::kOk;
  std::string reason;        // empty where ok
  double total_seconds = 0;  // last byte of all jobs; 0 unless ok
  std::vector<NetworkJobResult> jobs;
  std::string limiting_link;         // "ep3->leaf0": the transmitter with most to send
  double limiting_link_seconds = 0;  // its time on the wire, a lower bound of total_seconds
  int64_t event_count = 0;           // flow only

  // Without the case's faults; equal to total_seconds where it has none, 0 where not known.
  double healthy_seconds = 0;
  double slowdown = 0;  // total_seconds / healthy_seconds
  int64_t faulty_link_count = 0;
  int64_t rerouted_count = 0;              // streams that faults forced on another path
  int64_t reembedded_count = 0;            // rings that took another order of ranks
  std::vector<int64_t> unreachable_ranks;  // cut off from the others; empty unless unreachable
  // The order of `parallel` that was simulated, the first varying fastest, and how many times
  // longer the order given would take (1 unless optimise_mapping).
  std::vector<std::string> mapping;
  double mapping_gain = 1;

  friend bool operator==(const NetworkResult&, const NetworkResult&) = default;
};

struct SimulationOptions {
  int64_t max_events = 500'000'000;
  double max_simulated_seconds = 4.6e6;  // 53 days
  // Also time the case without its faults, for `slowdown`.
  bool compare_with_healthy = true;
  // Follow one of many equal rounds and multiply (round_recursion.h).
  bool multiply_rounds = true;
  ProgressCheck check;
};

// Times a case. INVALID_ARGUMENT with all violations where the case is not valid; what is valid but
// cannot be timed is an answer (`status`). The status of options.check where that stops it. Equal
// cases give equal bytes. Thread-safe: any number of simulations may run side by side.
absl::StatusOr<NetworkResult> SimulateNetworkCase(const NetworkCase& network_case,
                                                  Fidelity fidelity,
                                                  const SimulationOptions& options = {});

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_SIMULATE_H_
