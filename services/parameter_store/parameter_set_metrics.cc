// SPDX-License-Identifier: Apache-2.0
#include "services/parameter_store/parameter_set_metrics.h"

#include "prometheus/registry.h"

namespace sextant::parameter_store {

ParameterSetMetrics::ParameterSetMetrics(runtime::Metrics& metrics, absl::string_view component)
    : component_(component),
      info_(prometheus::BuildGauge()
                .Name("sextant_parameter_set_info")
                .Help("Parameter set in service, by its version; always 1.")
                .Register(metrics.registry())),
      since_(prometheus::BuildGauge()
                 .Name("sextant_parameter_set_in_service_timestamp_seconds")
                 .Help("When the parameter set in service was put there, seconds since 1970.")
                 .Register(metrics.registry())
                 .Add({{"component", component_}})) {}

void ParameterSetMetrics::Set(absl::string_view version, double since_seconds) {
  const std::lock_guard lock(mutex_);
  if (current_ != nullptr) info_.Remove(current_);
  current_ = &info_.Add({{"component", component_}, {"version", std::string(version)}});
  current_->Set(1);
  since_.Set(since_seconds);
}

}  // namespace sextant::parameter_store
