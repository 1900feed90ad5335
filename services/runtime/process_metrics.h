// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_PROCESS_METRICS_H_
#define SEXTANT_SERVICES_RUNTIME_PROCESS_METRICS_H_

#include <memory>

#include "prometheus/collectable.h"

namespace sextant::runtime {

// Seconds since 1970: what metrics named *_time_seconds and *_timestamp_seconds hold.
double UnixSeconds();

// What this process uses, read from /proc at each scrape, under the names that Prometheus' own
// clients give: process_resident_memory_bytes, process_cpu_seconds_total,
// process_start_time_seconds, process_open_fds, process_threads. Thread-safe.
std::shared_ptr<prometheus::Collectable> NewProcessMetrics();

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_PROCESS_METRICS_H_
