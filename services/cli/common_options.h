// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_COMMON_OPTIONS_H_
#define SEXTANT_SERVICES_CLI_COMMON_OPTIONS_H_

#include <memory>
#include <string>

#include "services/runtime/security.h"

namespace sextant::cli {

// Flags that every verb takes. Each has a twin in the environment: SEXTANT_<NAME>.
struct CommonOptions {
  std::string parameters = "default";  // name or file of a parameter set
  bool parameters_given = false;       // by flag or environment; false: the default above
  std::string server;                  // HOST:PORT; empty: the embedded library answers
  double timeout_seconds = 0;          // 0: no limit embedded, kServerTimeoutSeconds for a server
  runtime::ClientSecurity security;    // of calls to servers
  std::shared_ptr<grpc::ChannelCredentials> credentials;  // made of it; null: plaintext
  bool quiet = false;
  bool no_color = false;
  std::string output = "text";  // of the verbs that answer: text, json, and for some csv
};

inline constexpr double kServerTimeoutSeconds = 30;

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_COMMON_OPTIONS_H_
