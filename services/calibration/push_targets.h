// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_PUSH_TARGETS_H_
#define SEXTANT_SERVICES_CALIBRATION_PUSH_TARGETS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/client/client.h"
#include "services/parameter_store/parameter_store.h"

namespace sextant::calibration_service {

// What one target said.
struct PushResult {
  std::string target;
  std::string acknowledged_version;  // empty where it failed
  absl::Status status;
};

// The servers that parameter sets are pushed to, in order. Thread-safe.
class PushTargets {
 public:
  explicit PushTargets(std::vector<client::Client> targets) : targets_(std::move(targets)) {}
  static PushTargets To(const std::vector<std::string>& targets, std::chrono::milliseconds timeout);

  // Every target is asked, also after one has failed.
  std::vector<PushResult> Push(const parameters::ParameterSet& set) const;
  std::vector<PushResult> Rollback() const;

 private:
  std::vector<client::Client> targets_;
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_PUSH_TARGETS_H_
