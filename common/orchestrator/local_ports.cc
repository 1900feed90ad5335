// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/local_ports.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/operator_cost/operator_cost.h"

namespace sextant::orchestrator {
namespace {

// Names come from callers; without a bound a server's memory would be theirs to fill.
constexpr size_t kMaxResolved = 256;

template <typename Resolved, typename Resolve>
Resolved FindOrResolve(std::mutex& mutex, std::map<std::string, Resolved>& resolved,
                       const hardware::Accelerator& accelerator, absl::string_view profile,
                       Resolve resolve) {
  const std::string key =
      absl::StrCat(accelerator.name, "\n", accelerator.parameter_donor, "\n", profile);
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = resolved.find(key); found != resolved.end()) return found->second;
  if (resolved.size() >= kMaxResolved) resolved.clear();
  Resolved fresh = resolve();
  resolved.emplace(key, fresh);
  return fresh;
}

}  // namespace

LocalOperatorCost::LocalOperatorCost(std::shared_ptr<const parameters::ParameterSet> set)
    : set_(std::move(set)) {}

absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> LocalOperatorCost::EstimateOperators(
    absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
    absl::string_view profile) {
  const Resolved parameters = FindOrResolve(mutex_, resolved_, accelerator, profile, [&] {
    return std::make_shared<const operator_cost::OperatorParameters<double>>(
        operator_cost::ResolveOperatorParameters(*set_, accelerator, profile));
  });
  return operator_cost::EstimateOperators(operators, accelerator, *parameters);
}

absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>>
LocalOperatorCost::CurrentParameters() {
  return set_;
}

LocalNetworkTime::LocalNetworkTime(std::shared_ptr<const parameters::ParameterSet> set)
    : set_(std::move(set)) {}

absl::StatusOr<std::vector<collectives::CollectiveEstimate>> LocalNetworkTime::EstimateCollectives(
    absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
    absl::string_view profile) {
  const Resolved parameters = FindOrResolve(mutex_, resolved_, cluster.accelerator, profile, [&] {
    return std::make_shared<const collectives::CollectiveParameters<double>>(
        collectives::ResolveCollectiveParameters(*set_, cluster, profile));
  });
  return collectives::EstimateCollectives(collectives, cluster, *parameters);
}

}  // namespace sextant::orchestrator
