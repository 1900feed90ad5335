// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_FLAGS_H_
#define SEXTANT_SERVICES_RUNTIME_FLAGS_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "services/runtime/server.h"

namespace sextant::runtime {

// The flags of a server program. Every flag --x has the environment twin SEXTANT_X, and a line x =
// ... in the file of --config; the flag wins over the environment, that over the file.
//
//   Flags flags("operator_cost", "127.0.0.1:50051", "127.0.0.1:9090");
//   flags.Add("state_directory", &state_directory, "where pushed sets are kept");
//   if (const auto exit_code = flags.Parse(argc, argv)) return *exit_code;
//
// Thread-compatible.
class Flags {
 public:
  // Brings --listen, --metrics_listen (with these defaults), --reflection, --drain_seconds,
  // --default_deadline_seconds, --log_calls, --max_calls, --config, and those of ServerSecurity and
  // ClientSecurity: --insecure,
  // --tls_cert, --tls_key, --tls_client_ca, --policy; --tls_ca, --token_file.
  Flags(const std::string& service_name, const std::string& listen,
        const std::string& metrics_listen);
  ~Flags();

  // `*value` is the default; it must outlive Parse.
  void Add(const std::string& name, std::string* value, const std::string& help);
  // May be given several times; values in the environment are separated by commas.
  void Add(const std::string& name, std::vector<std::string>* values, const std::string& help);

  // Nothing where the program should go on; else its exit code: 0 after --help, 2 for wrong usage.
  // Logs the effective values.
  std::optional<int> Parse(int argc, char** argv);

  // After Parse.
  const ServerOptions& server() const;
  std::chrono::milliseconds default_deadline() const;
  // How this server calls others: --tls_ca, --token_file, and its own certificate where it has one.
  ClientSecurity client() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_FLAGS_H_
