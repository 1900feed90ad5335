// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_LOCAL_PORTS_H_
#define SEXTANT_COMMON_ORCHESTRATOR_LOCAL_PORTS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/operator_cost/operator_parameters.h"
#include "common/orchestrator/ports.h"

namespace sextant::orchestrator {

// The ports answered in process by the libraries, under one parameter set. Resolved parameters are
// kept per (accelerator, donor, profile). Thread-safe.
class LocalOperatorCost : public OperatorCostPort {
 public:
  explicit LocalOperatorCost(std::shared_ptr<const parameters::ParameterSet> set);
  absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> EstimateOperators(
      absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
      absl::string_view profile) override;
  absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> CurrentParameters() override;

 private:
  using Resolved = std::shared_ptr<const operator_cost::OperatorParameters<double>>;
  const std::shared_ptr<const parameters::ParameterSet> set_;
  std::mutex mutex_;
  std::map<std::string, Resolved> resolved_;  // guarded by mutex_
};

class LocalNetworkTime : public NetworkTimePort {
 public:
  explicit LocalNetworkTime(std::shared_ptr<const parameters::ParameterSet> set);
  absl::StatusOr<std::vector<collectives::CollectiveEstimate>> EstimateCollectives(
      absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
      absl::string_view profile) override;

 private:
  using Resolved = std::shared_ptr<const collectives::CollectiveParameters<double>>;
  const std::shared_ptr<const parameters::ParameterSet> set_;
  std::mutex mutex_;
  std::map<std::string, Resolved> resolved_;  // guarded by mutex_
};

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_LOCAL_PORTS_H_
