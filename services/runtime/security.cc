// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/security.h"

#include <grpc/grpc_security_constants.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "services/runtime/access_policy.h"
#include "services/runtime/metrics.h"

namespace sextant::runtime {
namespace {

constexpr unsigned int kRefreshSeconds = 1;

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(stream), {}};
}

template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* value) const { Free(value); }
};
using Certificate = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
struct BioFreer {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::unique_ptr<BIO, BioFreer> BioOf(const std::string& text) {
  return std::unique_ptr<BIO, BioFreer>(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key that is encrypted must not make the program ask the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

Certificate ReadCertificate(const std::string& field, const std::string& path,
                            base::Violations* violations) {
  const auto text = ReadFile(path);
  if (!text.has_value()) {
    violations->Add(field, absl::StrCat("is \"", path, "\" but cannot be read"));
    return nullptr;
  }
  Certificate certificate(PEM_read_bio_X509(BioOf(*text).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) {
    violations->Add(field, absl::StrCat("is \"", path, "\" but holds no PEM certificate"));
  } else if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    violations->Add(field, absl::StrCat("is \"", path, "\" but has expired"));
  }
  return certificate;
}

// A certificate and its key: both or none.
void CheckIdentity(const std::string& certificate_field, const std::string& certificate_file,
                   const std::string& key_field, const std::string& key_file,
                   base::Violations* violations) {
  if (certificate_file.empty() && key_file.empty()) return;
  if (certificate_file.empty()) violations->Add(certificate_field, "is needed with a key");
  if (key_file.empty()) violations->Add(key_field, "is needed with a certificate");
  Certificate certificate;
  if (!certificate_file.empty()) {
    certificate = ReadCertificate(certificate_field, certificate_file, violations);
  }
  if (key_file.empty()) return;
  const auto text = ReadFile(key_file);
  if (!text.has_value()) {
    violations->Add(key_field, absl::StrCat("is \"", key_file, "\" but cannot be read"));
    return;
  }
  const Key key(PEM_read_bio_PrivateKey(BioOf(*text).get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    violations->Add(key_field,
                    absl::StrCat("is \"", key_file, "\" but holds no PEM key without password"));
  } else if (certificate != nullptr && X509_check_private_key(certificate.get(), key.get()) != 1) {
    violations->Add(key_field,
                    absl::StrCat("is \"", key_file, "\" but is not the key of the certificate"));
  }
  ERR_clear_error();
}

std::string ReadToken(const std::string& path) {
  return std::string(absl::StripAsciiWhitespace(ReadFile(path).value_or("")));
}

// Names that a peer's certificate proves.
std::vector<std::string> CertificateNames(const grpc::AuthContext& context) {
  std::vector<std::string> names;
  for (const char* property : {GRPC_X509_CN_PROPERTY_NAME, GRPC_X509_SAN_PROPERTY_NAME,
                               GRPC_PEER_SPIFFE_ID_PROPERTY_NAME}) {
    for (const grpc::string_ref& value : context.FindPropertyValues(property)) {
      names.emplace_back(value.data(), value.size());
    }
  }
  return names;
}

// Asks the policy before a call reaches its handler.
class PolicyProcessor : public grpc::AuthMetadataProcessor {
 public:
  PolicyProcessor(std::unique_ptr<PolicyFile> policy, Metrics& metrics)
      : policy_(std::move(policy)),
        unauthenticated_(metrics, kName, kHelp, {{"reason", "unauthenticated"}}),
        denied_(metrics, kName, kHelp, {{"reason", "permission_denied"}}) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata*) override {
    std::string method, token;
    for (const auto& [key_reference, value_reference] : metadata) {
      const absl::string_view key(key_reference.data(), key_reference.size());
      const absl::string_view value(value_reference.data(), value_reference.size());
      if (key == ":path") method = std::string(value);
      if (key != "authorization") continue;
      constexpr absl::string_view kBearer = "Bearer ";
      if (absl::StartsWithIgnoreCase(value, kBearer)) {
        token = std::string(absl::StripAsciiWhitespace(value.substr(kBearer.size())));
      }
      consumed->emplace(std::string(key), std::string(value));  // no handler can log it
    }
    const absl::Status status =
        policy_->Current()->Authorize(method, CertificateNames(*context), token);
    if (status.ok()) return grpc::Status::OK;
    const bool unauthenticated = absl::IsUnauthenticated(status);
    (unauthenticated ? unauthenticated_ : denied_).Increment();
    return grpc::Status(
        unauthenticated ? grpc::StatusCode::UNAUTHENTICATED : grpc::StatusCode::PERMISSION_DENIED,
        std::string(status.message()));
  }

 private:
  static constexpr char kName[] = "sextant_calls_refused_total";
  static constexpr char kHelp[] = "Calls that the access policy refused.";

  const std::unique_ptr<PolicyFile> policy_;
  CounterMetric unauthenticated_;
  CounterMetric denied_;
};

// Sends the token that a file holds, over TLS only.
class TokenPlugin : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(std::string path) : path_(std::move(path)), token_(ReadToken(path_)) {}

  bool IsBlocking() const override { return false; }
  const char* GetType() const override { return "sextant-token-file"; }

  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<std::string, std::string>* metadata) override {
    std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - read_at_ >= std::chrono::seconds(kRefreshSeconds)) {
      read_at_ = now;
      // Empty while it is being replaced: the old one serves until then.
      if (std::string token = ReadToken(path_); !token.empty()) token_ = std::move(token);
    }
    metadata->emplace("authorization", absl::StrCat("Bearer ", token_));
    return grpc::Status::OK;
  }

 private:
  const std::string path_;
  std::mutex mutex_;
  std::string token_;
  std::chrono::steady_clock::time_point read_at_ = std::chrono::steady_clock::now();
};

}  // namespace

bool IsLoopback(absl::string_view listen) {
  const absl::string_view host = listen.substr(0, listen.rfind(':'));
  return host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.");
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ServerSecurity& security, Metrics& metrics) {
  base::Violations violations;
  if (!security.tls()) {
    if (!security.insecure) {
      violations.Add("tls_cert",
                     "is missing but required: give tls_cert and tls_key, or ask for plaintext by "
                     "name with insecure");
    }
    const char* kNeedsTls =
        "needs tls_cert and tls_key: names and tokens prove nothing in plaintext";
    if (!security.client_ca_file.empty()) violations.Add("tls_client_ca", kNeedsTls);
    if (!security.policy_file.empty()) violations.Add("policy", kNeedsTls);
    SEXTANT_RETURN_IF_ERROR(violations.ToStatus());
    return grpc::InsecureServerCredentials();
  }
  if (security.insecure) violations.Add("insecure", "contradicts tls_cert: give one of them");
  CheckIdentity("tls_cert", security.certificate_file, "tls_key", security.key_file, &violations);
  if (!security.client_ca_file.empty()) {
    ReadCertificate("tls_client_ca", security.client_ca_file, &violations);
  }
  std::unique_ptr<PolicyFile> policy;
  if (!security.policy_file.empty()) {
    auto opened = PolicyFile::Open(security.policy_file);
    if (opened.ok()) {
      policy = *std::move(opened);
    } else {
      violations.AddStatus("policy", opened.status());
    }
  }
  SEXTANT_RETURN_IF_ERROR(violations.ToStatus());

  namespace tls = grpc::experimental;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      security.key_file, security.certificate_file, security.client_ca_file, kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  if (!security.client_ca_file.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  options.set_check_call_host(false);
  auto credentials = tls::TlsServerCredentials(options);
  if (policy != nullptr) {
    credentials->SetAuthMetadataProcessor(
        std::make_shared<PolicyProcessor>(std::move(policy), metrics));
  }
  return credentials;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const ClientSecurity& security) {
  if (security.empty()) return grpc::InsecureChannelCredentials();
  base::Violations violations;
  if (security.ca_file.empty()) {
    violations.Add("tls_ca",
                   "is missing but required with a certificate or token: the roots that "
                   "servers are checked against");
  } else {
    ReadCertificate("tls_ca", security.ca_file, &violations);
  }
  CheckIdentity("tls_cert", security.certificate_file, "tls_key", security.key_file, &violations);
  if (!security.token_file.empty() && ReadToken(security.token_file).empty()) {
    violations.Add("token_file",
                   absl::StrCat("is \"", security.token_file, "\" but cannot be read or is empty"));
  }
  SEXTANT_RETURN_IF_ERROR(violations.ToStatus());

  namespace tls = grpc::experimental;
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<tls::FileWatcherCertificateProvider>(
      security.key_file, security.certificate_file, security.ca_file, kRefreshSeconds));
  options.watch_root_certs();
  if (!security.certificate_file.empty()) options.watch_identity_key_cert_pairs();
  auto credentials = tls::TlsCredentials(options);
  if (security.token_file.empty()) return credentials;
  return grpc::CompositeChannelCredentials(
      credentials,
      grpc::MetadataCredentialsFromPlugin(std::make_unique<TokenPlugin>(security.token_file)));
}

}  // namespace sextant::runtime
