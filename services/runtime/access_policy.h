// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_ACCESS_POLICY_H_
#define SEXTANT_SERVICES_RUNTIME_ACCESS_POLICY_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sextant::runtime {

// What a caller may do. Every method of the suite needs exactly one.
enum class Permission : int {
  kHealth,     // grpc.health.v1: always granted to who can connect
  kRead,       // Get*, List*, Watch*, and reflection
  kPredict,    // everything that computes an answer and changes nothing
  kMeasure,    // hand in measurements
  kCalibrate,  // start and cancel calibration jobs
  kPublish,    // change the parameter set in service
};

// "predict"; the words of a policy file.
absl::string_view PermissionName(Permission permission);

// What "/package.Service/Method" needs. A method that nobody classified has none: it is refused to
// all.
std::optional<Permission> PermissionOf(absl::string_view method);

// Who may do what. Immutable, thread-safe. A policy file:
//
//   callers:
//     - name: scheduler                        # in logs
//       certificate: scheduler.example.org     # common name, DNS name or URI of its certificate
//       may: [predict, read]
//     - name: job-epilog
//       token_sha256: 9f86d08...               # of its bearer token, 64 hexadecimal digits
//       may: [measure]
//   anyone: [read]                             # without certificate or token; default: nothing
class AccessPolicy {
 public:
  // INVALID_ARGUMENT with every violation at once.
  static absl::StatusOr<AccessPolicy> Parse(absl::string_view text);

  // OK where a caller with one of `certificate_names` or this bearer token may call `method`.
  // UNAUTHENTICATED where it showed nothing that the policy knows and "anyone" may not;
  // PERMISSION_DENIED, with the caller's name, where it is known but may not. O(callers).
  absl::Status Authorize(absl::string_view method, absl::Span<const std::string> certificate_names,
                         absl::string_view token) const;

 private:
  struct Caller {
    std::string name;
    std::string certificate;
    std::string token_sha256;
    std::set<Permission> may;
  };

  std::vector<Caller> callers_;
  std::set<Permission> anyone_;
};

// The policy in a file, read again within a second after it changes: tokens are replaced without a
// restart. A file that becomes invalid leaves the last good policy in force, and is logged.
// Thread-safe.
class PolicyFile {
 public:
  static absl::StatusOr<std::unique_ptr<PolicyFile>> Open(const std::string& path);
  std::shared_ptr<const AccessPolicy> Current();

 private:
  explicit PolicyFile(std::string path) : path_(std::move(path)) {}
  absl::Status Read();

  const std::string path_;
  std::mutex mutex_;
  std::shared_ptr<const AccessPolicy> policy_;
  std::string seen_;  // content of policy_
  std::chrono::steady_clock::time_point checked_at_;
};

// SHA-256 of `text` in lower-case hexadecimal.
std::string Sha256Hex(absl::string_view text);

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_ACCESS_POLICY_H_
