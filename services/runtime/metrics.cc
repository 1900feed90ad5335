// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/metrics.h"

#include <exception>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "prometheus/counter.h"
#include "prometheus/exposer.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"
#include "services/runtime/process_metrics.h"

namespace sextant::runtime {

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()), process_(NewProcessMetrics()) {
  prometheus::BuildGauge()
      .Name("sextant_build_info")
      .Help("What this process was built from; always 1.")
      .Register(*registry_)
      .Add({{"version", SEXTANT_VERSION}, {"compiler", __VERSION__}})
      .Set(1);
}

Metrics::~Metrics() = default;

absl::StatusOr<int> Metrics::Expose(const std::string& address) {
  try {
    exposer_ = std::make_unique<prometheus::Exposer>(address, 2);
    exposer_->RegisterCollectable(registry_);
    exposer_->RegisterCollectable(process_);
    const std::vector<int> ports = exposer_->GetListeningPorts();
    if (ports.empty()) return absl::UnavailableError("no port");
    return ports.front();
  } catch (const std::exception& error) {  // civetweb reports by exception
    return absl::UnavailableError(absl::StrCat("metrics_listen is \"", address,
                                               "\" but cannot be bound (", error.what(),
                                               "); use a free host:port, or port 0 for any"));
  }
}

void Metrics::Close() { exposer_.reset(); }

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

CounterMetric::CounterMetric(Metrics& metrics, const std::string& name, const std::string& help,
                             const std::map<std::string, std::string>& labels)
    : counter_(&prometheus::BuildCounter()
                    .Name(name)
                    .Help(help)
                    .Register(metrics.registry())
                    .Add(labels)) {}

void CounterMetric::Increment(double amount) {
  static_cast<prometheus::Counter*>(counter_)->Increment(amount);
}

}  // namespace sextant::runtime
