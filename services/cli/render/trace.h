// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_TRACE_H_
#define SEXTANT_SERVICES_CLI_RENDER_TRACE_H_

#include <string>

#include "common/orchestrator/trace.h"

namespace sextant::cli {

// The trace in Chrome's Trace Event Format: complete events ("X") in microseconds, a thread for
// each track.
std::string ChromeTraceJson(const orchestrator::Trace& trace);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_TRACE_H_
