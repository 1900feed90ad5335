// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_REQUEST_ID_H_
#define SEXTANT_SERVICES_RUNTIME_REQUEST_ID_H_

#include <string>

#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"

namespace sextant::runtime {

// Names one question of a client in the logs of every server that works on it. A client may send it
// as metadata; servers pass it on to those they ask, and return it with the status.
inline constexpr char kRequestIdKey[] = "x-request-id";

// 16 random hexadecimal digits. Thread-safe.
std::string NewRequestId();

// What the client sent, where it is one value of 1 to 64 letters, digits, '.', '_' and '-' (so that
// nobody writes into our logs); else a new one.
std::string RequestIdOf(const grpc::ServerContext& context);
bool IsRequestId(absl::string_view text);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_REQUEST_ID_H_
