// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/flags.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/runtime/admission.h"
#include "services/runtime/log.h"

namespace sextant::runtime {
namespace {

constexpr int kUsageExitCode = 2;

std::string EnvironmentName(const std::string& name) {
  return absl::StrCat("SEXTANT_", absl::AsciiStrToUpper(name));
}

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace

struct Flags::State {
  explicit State(const std::string& service_name)
      : app(absl::StrCat("Sextant ", service_name, " server")) {}

  CLI::Option* Named(const std::string& name, CLI::Option* option) {
    names.push_back(name);
    return option->envname(EnvironmentName(name));
  }

  CLI::App app;
  std::vector<std::string> names;
  ServerOptions server;
  ClientSecurity client;
  double drain_seconds = 5;
  double default_deadline_seconds = 30;
  std::string logged_calls = "failed";
  int max_calls = 192;
};

Flags::Flags(const std::string& service_name, const std::string& listen,
             const std::string& metrics_listen)
    : state_(std::make_unique<State>(service_name)) {
  State& s = *state_;
  s.server.service_name = service_name;
  s.server.listen = listen;
  s.server.metrics_listen = metrics_listen;
  s.app.option_defaults()->always_capture_default();
  s.app
      .set_config("--config", "", "file of lines 'flag = value' (TOML); flags and environment win")
      ->envname(EnvironmentName("config"));
  Add("listen", &s.server.listen, "host:port of gRPC; port 0 takes any free one");
  Add("metrics_listen", &s.server.metrics_listen,
      "host:port of the Prometheus endpoint /metrics; port 0 takes any free one, empty: none");
  s.Named("reflection",
          s.app.add_option("--reflection", s.server.reflection, "serve gRPC reflection"));
  s.Named(
      "log_calls",
      s.app.add_option("--log_calls", s.logged_calls, "calls that are logged: none, failed, all")
          ->check(CLI::IsMember({"none", "failed", "all"})));
  s.Named("max_calls", s.app
                           .add_option("--max_calls", s.max_calls,
                                       "calls in progress; more are told when to try again")
                           ->check(CLI::Range(1, 240)));
  s.Named("insecure", s.app.add_flag("--insecure", s.server.security.insecure,
                                     "serve plaintext: only where nobody else can connect"));
  Add("tls_cert", &s.server.security.certificate_file,
      "PEM chain that this server shows; read again when it changes");
  Add("tls_key", &s.server.security.key_file, "PEM key of tls_cert");
  Add("tls_client_ca", &s.server.security.client_ca_file,
      "PEM roots of client certificates: without one nobody connects");
  Add("policy", &s.server.security.policy_file, "YAML file that says who may call what");
  Add("tls_ca", &s.client.ca_file,
      "PEM roots that servers which this one calls are checked against; empty: plaintext");
  Add("token_file", &s.client.token_file, "holds the bearer token for calls to other servers");
  s.Named("drain_seconds", s.app
                               .add_option("--drain_seconds", s.drain_seconds,
                                           "how long calls may finish after SIGTERM")
                               ->check(CLI::Range(0.0, 3600.0)));
  s.Named("default_deadline_seconds",
          s.app
              .add_option("--default_deadline_seconds", s.default_deadline_seconds,
                          "longest time of a call, whatever its client asked for")
              ->check(CLI::Range(0.001, 86400.0)));
}

Flags::~Flags() = default;

void Flags::Add(const std::string& name, std::string* value, const std::string& help) {
  state_->Named(name, state_->app.add_option(absl::StrCat("--", name), *value, help));
}

void Flags::Add(const std::string& name, std::vector<std::string>* values,
                const std::string& help) {
  state_->Named(name,
                state_->app.add_option(absl::StrCat("--", name), *values, help)->delimiter(','));
}

std::optional<int> Flags::Parse(int argc, char** argv) {
  State& s = *state_;
  try {
    s.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return s.app.exit(error) == 0 ? 0 : kUsageExitCode;
  }
  s.server.drain = Milliseconds(s.drain_seconds);
  s.server.logged_calls = s.logged_calls == "none"  ? LoggedCalls::kNone
                          : s.logged_calls == "all" ? LoggedCalls::kAll
                                                    : LoggedCalls::kFailed;
  SetMaxCallsInProgress(s.max_calls);
  SetLogService(s.server.service_name);
  for (const std::string& name : s.names) {
    const CLI::Option* option = s.app.get_option(absl::StrCat("--", name));
    const std::string value =
        option->empty() ? option->get_default_str() : absl::StrJoin(option->results(), ",");
    Log(Severity::kInfo, "configuration",
        {{"flag", name}, {"value", value}, {"set", option->empty() ? "default" : "given"}});
  }
  return std::nullopt;
}

const ServerOptions& Flags::server() const { return state_->server; }

ClientSecurity Flags::client() const {
  ClientSecurity client = state_->client;
  if (!client.ca_file.empty()) {
    client.certificate_file = state_->server.security.certificate_file;
    client.key_file = state_->server.security.key_file;
  }
  return client;
}

std::chrono::milliseconds Flags::default_deadline() const {
  return Milliseconds(state_->default_deadline_seconds);
}

}  // namespace sextant::runtime
