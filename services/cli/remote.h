// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_REMOTE_H_
#define SEXTANT_SERVICES_CLI_REMOTE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/orchestrator/ports.h"
#include "services/cli/common_options.h"
#include "services/cli/terminal.h"
#include "services/client/client.h"

namespace sextant::cli {

// Asks `target` within the common timeout. gRPC starts here and nowhere else, so that a command
// that needs no server does not pay for it.
client::Client ClientOf(const CommonOptions& common, const std::string& target);

// The same for --server. Its own parameter set answers: --parameters is then of no use, which is
// said.
client::Client ConnectedClient(const CommonOptions& common, Terminal& terminal);

// The orchestrator's ports, answered by a server.
class RemoteOperatorCost : public orchestrator::OperatorCostPort {
 public:
  explicit RemoteOperatorCost(client::Client client) : client_(std::move(client)) {}
  absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> EstimateOperators(
      absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
      absl::string_view profile) override;
  absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> CurrentParameters() override;

 private:
  const client::Client client_;
};

class RemoteNetworkTime : public orchestrator::NetworkTimePort {
 public:
  explicit RemoteNetworkTime(client::Client client) : client_(std::move(client)) {}
  absl::StatusOr<std::vector<collectives::CollectiveEstimate>> EstimateCollectives(
      absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
      absl::string_view profile) override;

 private:
  const client::Client client_;
};

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_REMOTE_H_
