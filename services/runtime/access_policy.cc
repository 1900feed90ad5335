// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/access_policy.h"

#include <openssl/sha.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "services/runtime/log.h"

namespace sextant::runtime {
namespace {

// Those that a policy file can grant.
constexpr Permission kGranted[] = {Permission::kRead, Permission::kPredict, Permission::kMeasure,
                                   Permission::kCalibrate, Permission::kPublish};

std::string GrantedNames() {
  std::vector<std::string> names;
  for (const Permission permission : kGranted) names.emplace_back(PermissionName(permission));
  return absl::StrJoin(names, ", ");
}

std::set<Permission> ReadPermissions(const YAML::Node& node, const std::string& field,
                                     base::Violations* violations) {
  std::set<Permission> permissions;
  if (!node.IsSequence()) {
    violations->Add(field, absl::StrCat("must be a list of ", GrantedNames()));
    return permissions;
  }
  for (size_t i = 0; i < node.size(); ++i) {
    const std::string word = node[i].IsScalar() ? node[i].Scalar() : "";
    const auto* found =
        std::find_if(std::begin(kGranted), std::end(kGranted),
                     [&](Permission permission) { return PermissionName(permission) == word; });
    if (found == std::end(kGranted)) {
      violations->Add(absl::StrCat(field, "[", i, "]"),
                      absl::StrCat("is \"", word, "\" but must be one of ", GrantedNames()));
    } else {
      permissions.insert(*found);
    }
  }
  return permissions;
}

bool IsSha256Hex(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

}  // namespace

absl::string_view PermissionName(Permission permission) {
  switch (permission) {
    case Permission::kHealth:
      return "health";
    case Permission::kRead:
      return "read";
    case Permission::kPredict:
      return "predict";
    case Permission::kMeasure:
      return "measure";
    case Permission::kCalibrate:
      return "calibrate";
    case Permission::kPublish:
      return "publish";
  }
  return "unknown";
}

std::optional<Permission> PermissionOf(absl::string_view method) {
  if (absl::StartsWith(method, "/grpc.health.v1.Health/")) return Permission::kHealth;
  if (absl::StartsWith(method, "/grpc.reflection.")) return Permission::kRead;
  if (!absl::StartsWith(method, "/sextant.")) return std::nullopt;
  const absl::string_view name = method.substr(method.rfind('/') + 1);
  const auto starts_with_any = [&](std::initializer_list<absl::string_view> prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
  };
  if (starts_with_any({"Push", "Prepare", "Commit", "Rollback"})) return Permission::kPublish;
  if (starts_with_any({"Ingest"})) return Permission::kMeasure;
  if (starts_with_any({"CreateCalibrationJob", "CancelCalibrationJob"})) {
    return Permission::kCalibrate;
  }
  // Watching one network case is computing it.
  if (starts_with_any({"Predict", "Estimate", "Simulate", "WatchCase", "Sweep", "Advise", "Rank",
                       "Compare", "Explain", "Analyze"})) {
    return Permission::kPredict;
  }
  if (starts_with_any({"Get", "List", "Watch"})) return Permission::kRead;
  return std::nullopt;
}

absl::StatusOr<AccessPolicy> AccessPolicy::Parse(absl::string_view text) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  if (!root.IsMap()) return absl::InvalidArgumentError("must be a mapping with callers, anyone");
  AccessPolicy policy;
  base::Violations violations;
  for (const auto& entry : root) {
    const std::string key = entry.first.Scalar();
    if (key == "anyone") {
      policy.anyone_ = ReadPermissions(entry.second, key, &violations);
    } else if (key != "callers") {
      violations.Add(key, "is unknown; known are callers, anyone");
    } else if (!entry.second.IsSequence()) {
      violations.Add(key, "must be a list");
    }
  }
  const YAML::Node callers = root["callers"];
  for (size_t i = 0; callers && callers.IsSequence() && i < callers.size(); ++i) {
    const std::string path = absl::StrCat("callers[", i, "]");
    if (!callers[i].IsMap()) {
      violations.Add(path, "must be a mapping");
      continue;
    }
    Caller caller;
    for (const auto& entry : callers[i]) {
      const std::string key = entry.first.Scalar();
      const std::string field = absl::StrCat(path, ".", key);
      const std::string value = entry.second.IsScalar() ? entry.second.Scalar() : "";
      if (key == "may") {
        caller.may = ReadPermissions(entry.second, field, &violations);
      } else if (key == "name") {
        caller.name = value;
      } else if (key == "certificate") {
        caller.certificate = value;
        if (value.empty()) violations.Add(field, "must be the name in a certificate");
      } else if (key == "token_sha256") {
        caller.token_sha256 = absl::AsciiStrToLower(value);
        // The value is not repeated: a token may have been written here by mistake.
        if (!IsSha256Hex(value)) {
          violations.Add(field, "must be 64 hexadecimal digits: printf %s TOKEN | sha256sum");
        }
      } else {
        violations.Add(field, "is unknown; known are name, certificate, token_sha256, may");
      }
    }
    if (caller.name.empty()) violations.Add(absl::StrCat(path, ".name"), "is missing but required");
    if (caller.certificate.empty() && caller.token_sha256.empty()) {
      violations.Add(path, "needs certificate or token_sha256: nobody could be it");
    }
    policy.callers_.push_back(std::move(caller));
  }
  SEXTANT_RETURN_IF_ERROR(violations.ToStatus());
  return policy;
}

absl::Status AccessPolicy::Authorize(absl::string_view method,
                                     absl::Span<const std::string> certificate_names,
                                     absl::string_view token) const {
  const std::optional<Permission> needed = PermissionOf(method);
  if (needed == Permission::kHealth) return absl::OkStatus();
  if (needed.has_value() && anyone_.count(*needed) > 0) return absl::OkStatus();
  const std::string token_sha256 = token.empty() ? "" : Sha256Hex(token);
  std::vector<std::string> known_as;
  for (const Caller& caller : callers_) {
    const bool by_certificate =
        !caller.certificate.empty() && std::find(certificate_names.begin(), certificate_names.end(),
                                                 caller.certificate) != certificate_names.end();
    const bool by_token = !token_sha256.empty() && caller.token_sha256 == token_sha256;
    if (!by_certificate && !by_token) continue;
    if (needed.has_value() && caller.may.count(*needed) > 0) return absl::OkStatus();
    known_as.push_back(caller.name);
  }
  if (known_as.empty()) {
    return absl::UnauthenticatedError(
        "no certificate or bearer token that the access policy knows; give a token file or a "
        "client certificate");
  }
  return absl::PermissionDeniedError(absl::StrCat(
      absl::StrJoin(known_as, ", "), " may not call ", method,
      needed.has_value()
          ? absl::StrCat(": the access policy does not grant \"", PermissionName(*needed), "\"")
          : ": it is not a method that a policy can grant"));
}

absl::StatusOr<std::unique_ptr<PolicyFile>> PolicyFile::Open(const std::string& path) {
  std::unique_ptr<PolicyFile> file(new PolicyFile(path));
  SEXTANT_RETURN_IF_ERROR(file->Read());
  file->checked_at_ = std::chrono::steady_clock::now();
  return file;
}

absl::Status PolicyFile::Read() {
  std::ifstream stream(path_);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat("access policy \"", path_, "\" cannot be read"));
  }
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (policy_ != nullptr && text == seen_) return absl::OkStatus();
  seen_ = text;
  auto policy = AccessPolicy::Parse(text);
  if (!policy.ok()) {
    base::Violations violations;
    violations.AddStatus(path_, policy.status());
    return violations.ToStatus();
  }
  policy_ = std::make_shared<const AccessPolicy>(*std::move(policy));
  return absl::OkStatus();
}

std::shared_ptr<const AccessPolicy> PolicyFile::Current() {
  constexpr std::chrono::seconds kCheckInterval{1};
  std::lock_guard lock(mutex_);
  if (const auto now = std::chrono::steady_clock::now(); now - checked_at_ >= kCheckInterval) {
    checked_at_ = now;
    const std::string before = seen_;
    const absl::Status status = Read();
    if (!status.ok() && seen_ != before) {
      Log(Severity::kError, "access policy not replaced", {{"reason", status.message()}});
    } else if (status.ok() && seen_ != before) {
      Log(Severity::kInfo, "access policy replaced", {{"file", path_}});
    }
  }
  return policy_;
}

std::string Sha256Hex(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

}  // namespace sextant::runtime
