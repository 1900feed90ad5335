// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_CHANNEL_H_
#define SEXTANT_SERVICES_RUNTIME_CHANNEL_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace sextant::runtime {

// Largest message accepted by servers and clients of the suite.
inline constexpr int kMaxReceiveBytes = 16 * 1024 * 1024;

// How every client of the suite calls: UNAVAILABLE is tried up to three times (0.1 s to 1 s apart)
// within the deadline, a lost connection is looked for again within a second, and answers may be
// kMaxReceiveBytes long. Where a name has several addresses, calls go round them.
grpc::ChannelArguments ClientArguments();

// A channel to "host:port". Never fails; calls on it do. Plaintext without `credentials`
// (MakeChannelCredentials). `server_name` is what the server's certificate must say where that is
// not the host of `target`.
std::shared_ptr<grpc::Channel> Connect(
    const std::string& target,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials = nullptr,
    const std::string& server_name = "");

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_CHANNEL_H_
