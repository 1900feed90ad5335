// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_SECURITY_H_
#define SEXTANT_SERVICES_RUNTIME_SECURITY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace sextant::runtime {

class Metrics;

// How a server proves itself, and whom it answers. Paths of PEM files; empty: not used.
struct ServerSecurity {
  bool insecure = false;         // plaintext, because it was asked for by name
  std::string certificate_file;  // chain of this server; turns TLS on
  std::string key_file;
  std::string client_ca_file;  // given: only clients with a certificate of these roots get through
  std::string policy_file;     // who may call what (access_policy.h); empty: all who get through

  bool tls() const { return !certificate_file.empty() || !key_file.empty(); }
};

// How a client checks servers, and proves itself.
struct ClientSecurity {
  std::string ca_file;           // roots that servers' certificates must come from; turns TLS on
  std::string certificate_file;  // of this client, for servers that ask for one
  std::string key_file;
  std::string token_file;  // holds a bearer token, sent with every call; needs TLS

  bool empty() const {
    return ca_file.empty() && certificate_file.empty() && key_file.empty() && token_file.empty();
  }
};

// Whether only this machine can connect to "host:port". A name other than localhost: false.
bool IsLoopback(absl::string_view listen);

// INVALID_ARGUMENT with every violation: neither TLS nor insecure, both, a policy or client CA
// without TLS, files that cannot be read, are no PEM, do not match or have expired. Certificates
// and keys are read again every second: they are replaced on disk without a restart, connections
// that exist go on. Where a policy is given, every call is checked against it before its handler
// runs; refusals are counted in sextant_calls_refused_total.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security, Metrics& metrics);

// Plaintext where `security` is empty. INVALID_ARGUMENT as above. The token file is read again
// within a second after it changes.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ClientSecurity& security);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_SECURITY_H_
