// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/push_targets.h"

#include "services/runtime/log.h"

namespace sextant::calibration_service {
namespace {

PushResult ResultOf(const client::Client& target,
                    const absl::StatusOr<std::vector<client::ServiceVersion>>& versions) {
  PushResult result{.target = target.target(), .status = versions.status()};
  if (versions.ok() && !versions->empty()) {
    result.acknowledged_version = versions->front().version;
    runtime::Log(runtime::Severity::kInfo, "push acknowledged",
                 {{"target", result.target}, {"version", result.acknowledged_version}});
  } else {
    runtime::Log(runtime::Severity::kWarning, "push failed",
                 {{"target", result.target}, {"reason", versions.status().message()}});
  }
  return result;
}

}  // namespace

PushTargets PushTargets::To(const std::vector<std::string>& targets,
                            std::chrono::milliseconds timeout) {
  std::vector<client::Client> clients;
  for (const std::string& target : targets) clients.emplace_back(target, timeout);
  return PushTargets(std::move(clients));
}

std::vector<PushResult> PushTargets::Push(const parameters::ParameterSet& set) const {
  std::vector<PushResult> results;
  for (const client::Client& target : targets_) {
    results.push_back(ResultOf(target, target.PushParameterSet(set)));
  }
  return results;
}

std::vector<PushResult> PushTargets::Rollback() const {
  std::vector<PushResult> results;
  for (const client::Client& target : targets_) {
    results.push_back(ResultOf(target, target.RollbackParameterSet()));
  }
  return results;
}

}  // namespace sextant::calibration_service
