// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_SET_METRICS_H_
#define SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_SET_METRICS_H_

#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "services/runtime/metrics.h"

namespace sextant::parameter_store {

// Which set a service has, and since when: sextant_parameter_set_info{component,version} is 1 for
// the set in service and absent for all others; sextant_parameter_set_in_service_timestamp_seconds
// {component} is when it was put there. `component` is not called `service`, which scrapers use
// for their own. Thread-safe.
class ParameterSetMetrics {
 public:
  // `metrics` must outlive this.
  ParameterSetMetrics(runtime::Metrics& metrics, absl::string_view component);
  void Set(absl::string_view version, double since_seconds);

 private:
  const std::string component_;
  prometheus::Family<prometheus::Gauge>& info_;
  prometheus::Gauge& since_;
  std::mutex mutex_;
  prometheus::Gauge* current_ = nullptr;  // of info_
};

}  // namespace sextant::parameter_store

#endif  // SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_SET_METRICS_H_
