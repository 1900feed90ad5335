// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_SIMULATE_H_
#define SEXTANT_COMMON_NETWORK_SIM_SIMULATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network_sim/network_case.h"

namespace sextant::network_sim {

//   kAnalytic: closed forms, where patterns are symmetric and jobs do not meet.
//   kFlow: event-driven, every link shared max-min fairly.
enum class Fidelity : int { kAnalytic, kFlow };
absl::string_view FidelityName(Fidelity fidelity);  // "analytic", "flow"
absl::StatusOr<Fidelity> ParseFidelity(absl::string_view name);

//   kOk: times are given.
//   kUnreachable: a removed link leaves some pair without a path.
//   kUnsupported: the fidelity has no answer for this case (reason says which has), or the case is
//   beyond its limits.
enum class NetworkStatus : int { kOk, kUnreachable, kUnsupported };
absl::string_view NetworkStatusName(NetworkStatus status);  // "ok", "unreachable", "unsupported"

struct NetworkJobResult {
  std::string name;
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

  friend bool operator==(const NetworkResult&, const NetworkResult&) = default;
};

// Times a case. INVALID_ARGUMENT with all violations where the case is not valid; what is valid but
// cannot be timed is an answer (`status`). Equal cases give equal bytes. Thread-safe.
absl::StatusOr<NetworkResult> SimulateNetworkCase(const NetworkCase& network_case,
                                                  Fidelity fidelity);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_SIMULATE_H_
