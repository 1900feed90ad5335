// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_LOG_H_
#define SEXTANT_SERVICES_RUNTIME_LOG_H_

#include <initializer_list>
#include <utility>

#include "absl/strings/string_view.h"

namespace sextant::runtime {

enum class Severity : int { kInfo, kWarning, kError };

// Which calls leave a line when they end.
enum class LoggedCalls : int { kNone, kFailed, kAll };

using LogField = std::pair<absl::string_view, absl::string_view>;

// Names the service in every later line. Call once, before threads start.
void SetLogService(absl::string_view service);

// Writes one JSON line to stdout:
//   {"time":"...","severity":"info","service":"...","event":"listening","grpc_port":"50051"}
// `event` is constant and lower-case; what varies goes into fields. Thread-safe.
void Log(Severity severity, absl::string_view event, std::initializer_list<LogField> fields = {});

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_LOG_H_
