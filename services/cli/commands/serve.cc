// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/serve.h"

#include <yaml-cpp/yaml.h>

#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "services/cli/library.h"
#include "services/serve/serve.h"

namespace sextant::cli {
namespace {

void ReadSeconds(const std::string& key, const YAML::Node& value, base::Violations* violations,
                 std::chrono::milliseconds* milliseconds) {
  double seconds = 0;
  if (!YAML::convert<double>::decode(value, seconds) || !(seconds > 0 && seconds <= 86400)) {
    violations->Add(key, "must be a number of seconds above 0 and at most 86400");
    return;
  }
  *milliseconds = std::chrono::milliseconds(std::llround(std::ceil(seconds * 1e3)));
}

absl::Status ReadConfig(const std::string& file, const std::string& text,
                        serve::ServeOptions* options) {
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": ", error.what()));
  }
  if (!root.IsMap()) return absl::InvalidArgumentError(absl::StrCat(file, ": must be a mapping"));
  base::Violations violations;
  for (const auto& entry : root) {
    const std::string key = entry.first.Scalar();
    const YAML::Node& value = entry.second;
    if (!value.IsScalar()) {
      violations.Add(key, "must be one value");
    } else if (key == "listen") {
      options->server.listen = value.Scalar();
    } else if (key == "metrics_listen") {
      options->server.metrics_listen = value.Scalar();
    } else if (key == "parameters") {
      options->parameters = value.Scalar();
    } else if (key == "datasets_directory") {
      options->datasets_directory = value.Scalar();
    } else if (key == "state_directory") {
      options->state_directory = value.Scalar();
    } else if (key == "tls_cert") {
      options->server.security.certificate_file = value.Scalar();
    } else if (key == "tls_key") {
      options->server.security.key_file = value.Scalar();
    } else if (key == "tls_client_ca") {
      options->server.security.client_ca_file = value.Scalar();
    } else if (key == "policy") {
      options->server.security.policy_file = value.Scalar();
    } else if (key == "insecure") {
      if (!YAML::convert<bool>::decode(value, options->server.security.insecure)) {
        violations.Add(key, "must be true or false");
      }
    } else if (key == "reflection") {
      if (!YAML::convert<bool>::decode(value, options->server.reflection)) {
        violations.Add(key, "must be true or false");
      }
    } else if (key == "drain_seconds") {
      ReadSeconds(key, value, &violations, &options->server.drain);
    } else if (key == "deadline_seconds") {
      ReadSeconds(key, value, &violations, &options->default_deadline);
    } else {
      violations.Add(key,
                     "is unknown; known are listen, metrics_listen, parameters, "
                     "datasets_directory, state_directory, insecure, tls_cert, tls_key, "
                     "tls_client_ca, policy, reflection, drain_seconds, deadline_seconds");
    }
  }
  return violations.ToStatus();
}

}  // namespace

absl::StatusOr<ExitCode> ServeAll(const CommonOptions& common, const ServeOptions& options,
                                  Terminal& terminal) {
  // First of all, while this is the only thread.
  runtime::BlockShutdownSignals();
  serve::ServeOptions serve_options;
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  serve_options.parameters =
      FallsToUncalibrated(common, catalog, terminal) ? "uncalibrated" : common.parameters;
  if (!options.config_file.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(const std::string text, terminal.Read(options.config_file));
    SEXTANT_RETURN_IF_ERROR(ReadConfig(options.config_file, text, &serve_options));
    if (common.parameters_given) serve_options.parameters = common.parameters;
  }
  if (!options.listen.empty()) serve_options.server.listen = options.listen;
  if (!options.metrics_listen.empty()) serve_options.server.metrics_listen = options.metrics_listen;
  if (!options.state_directory.empty()) serve_options.state_directory = options.state_directory;
  // On this machine alone plaintext is what `serve` means; beyond it, it must be asked for.
  runtime::ServerSecurity& security = serve_options.server.security;
  if (options.insecure) security.insecure = true;
  if (!security.tls() && runtime::IsLoopback(serve_options.server.listen)) security.insecure = true;
  return static_cast<ExitCode>(serve::RunAllServices(serve_options));
}

}  // namespace sextant::cli
