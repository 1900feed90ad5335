// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_METRICS_H_
#define SEXTANT_SERVICES_RUNTIME_METRICS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace prometheus {
class Collectable;
class Exposer;
class Registry;
}  // namespace prometheus

namespace sextant::runtime {

// The metrics of one process: a registry, and the HTTP endpoint /metrics that exposes it. Carries
// sextant_build_info{version,compiler} and the process_* metrics from the start. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  prometheus::Registry& registry() { return *registry_; }

  // Serves /metrics on `address` ("127.0.0.1:9090"; port 0: any free one) and returns the port.
  // UNAVAILABLE where the address cannot be bound.
  absl::StatusOr<int> Expose(const std::string& address);
  // Stops serving.
  void Close();
  // The text that /metrics would answer now.
  std::string Text() const;

 private:
  std::shared_ptr<prometheus::Registry> registry_;
  std::shared_ptr<prometheus::Collectable> process_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

// A counter of something countable, for example operators estimated. A name ends in "_total".
class CounterMetric {
 public:
  CounterMetric(Metrics& metrics, const std::string& name, const std::string& help,
                const std::map<std::string, std::string>& labels = {});
  void Increment(double amount = 1);

 private:
  void* counter_;  // prometheus::Counter, owned by the registry
};

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_METRICS_H_
