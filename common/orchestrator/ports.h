// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_PORTS_H_
#define SEXTANT_COMMON_ORCHESTRATOR_PORTS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/collectives/collective.h"
#include "common/hardware/cluster.h"
#include "common/operator_cost/operator.h"
#include "common/parameters/parameter_set.h"

namespace sextant::orchestrator {

// The orchestrator's two questions to the world, each asked once per prediction in a batch.
// Answered in process by local_ports.h, over gRPC by services/orchestrator. Implementations are
// thread-safe.
class OperatorCostPort {
 public:
  virtual ~OperatorCostPort() = default;
  // Times of `operators` on `accelerator` under the software profile, in order.
  virtual absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> EstimateOperators(
      absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
      absl::string_view profile) = 0;
  // The parameter set in service: framework and memory parameters are read from it.
  virtual absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> CurrentParameters() = 0;
};

class NetworkTimePort {
 public:
  virtual ~NetworkTimePort() = default;
  // Times of `collectives` on `cluster` under the software profile, in order.
  virtual absl::StatusOr<std::vector<collectives::CollectiveEstimate>> EstimateCollectives(
      absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
      absl::string_view profile) = 0;
};

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_PORTS_H_
