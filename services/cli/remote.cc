// SPDX-License-Identifier: Apache-2.0
#include "services/cli/remote.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "common/base/status_macros.h"

namespace sextant::cli {

client::Client ClientOf(const CommonOptions& common, const std::string& target) {
  constexpr double kLongestSeconds = 1e6;  // beyond, a clock would overflow
  const double seconds = common.timeout_seconds > 0
                             ? std::min(common.timeout_seconds, kLongestSeconds)
                             : kServerTimeoutSeconds;
  const std::chrono::milliseconds timeout(std::max<int64_t>(1, std::llround(seconds * 1e3)));
  return client::Client(target, timeout, common.credentials);
}

client::Client ConnectedClient(const CommonOptions& common, Terminal& terminal) {
  if (common.parameters_given) {
    terminal.Warn("--parameters is not used with --server: the server answers with its own set");
  }
  return ClientOf(common, common.server);
}

absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> RemoteOperatorCost::EstimateOperators(
    absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
    absl::string_view profile) {
  return client_.EstimateOperators(operators, accelerator, profile);
}

absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>>
RemoteOperatorCost::CurrentParameters() {
  SEXTANT_ASSIGN_OR_RETURN(parameters::ParameterSet set, client_.GetParameterSet());
  return std::make_shared<const parameters::ParameterSet>(std::move(set));
}

absl::StatusOr<std::vector<collectives::CollectiveEstimate>> RemoteNetworkTime::EstimateCollectives(
    absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
    absl::string_view profile) {
  return client_.EstimateCollectives(collectives, cluster, profile);
}

}  // namespace sextant::cli
