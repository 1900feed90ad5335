// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_CALL_LOG_H_
#define SEXTANT_SERVICES_RUNTIME_CALL_LOG_H_

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "services/runtime/log.h"

namespace sextant::runtime {

// Writes {"event":"call","method":...,"status":...,"seconds":...,"request_id":...,"peer":...}, for
// defects of ours (INTERNAL, UNKNOWN, DATA_LOSS) as an error with their message. At most 100 lines
// a second, so that a flood of bad calls does not fill the disk; the next second says how many were
// left out. What callers send (tokens, jobs) is never logged.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallLog(
    LoggedCalls logged);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_CALL_LOG_H_
