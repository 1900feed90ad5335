// SPDX-License-Identifier: Apache-2.0
// All services behind TLS and a policy, with real certificates of deploy/tls.
#include "services/runtime/metrics.h"
#include "services/runtime/security.h"

#include <google/protobuf/descriptor.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/violations.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "gtest/gtest.h"
#include "services/client/client.h"
#include "services/runtime/access_policy.h"
#include "services/runtime/channel.h"
#include "services/serve/serve.h"
#include "sextant/calibration/v1/calibration_service.pb.h"
#include "sextant/network_sim/v1/network_sim_service.pb.h"
#include "sextant/operator_cost/v1/operator_cost_service.pb.h"
#include "sextant/orchestrator/v1/orchestrator_service.pb.h"
#include "tests/support/command.h"
#include "tests/support/jobs.h"

namespace sextant {
namespace {

using std::chrono::milliseconds;
using test_support::TemporaryFolder;

constexpr char kSchedulerToken[] = "a-token-of-the-scheduler";

class Security : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v openssl >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "openssl, which makes the certificates, is not installed";
    }
    MakeCertificates("server scheduler calibration stranger");
    // A CA of somebody else.
    ASSERT_EQ(Run(absl::StrCat(kMaker, " ", Path("other"), " scheduler")), 0);
    WritePolicy("");
  }

  static int Run(const std::string& command) { return std::system(command.c_str()); }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  void MakeCertificates(const std::string& names) const {
    ASSERT_EQ(Run(absl::StrCat(kMaker, " ", Path("tls"), " ", names)), 0);
  }
  void WritePolicy(const std::string& more) const {
    folder_.Write(
        "policy.yaml",
        absl::StrCat("callers:\n"
                     "  - {name: calibration, certificate: calibration, may: "
                     "[publish, read, calibrate]}\n"
                     "  - {name: scheduler, token_sha256: ",
                     runtime::Sha256Hex(kSchedulerToken), ", may: [predict, read]}\n", more));
  }

  runtime::ServerSecurity ServerFiles() const {
    return {.certificate_file = Path("tls/server.crt"), .key_file = Path("tls/server.key")};
  }
  std::unique_ptr<serve::AllServices> Serve(const runtime::ServerSecurity& security) const {
    serve::ServeOptions options;
    options.server = {.listen = "127.0.0.1:0", .metrics_listen = "", .security = security};
    options.parameters = "uncalibrated";
    options.datasets_directory = SEXTANT_SOURCE_DIR "/datasets";
    auto services = serve::AllServices::Start(options);
    EXPECT_TRUE(services.ok()) << services.status();
    return services.ok() ? *std::move(services) : nullptr;
  }

  // As the holder of this certificate; empty: of none.
  runtime::ClientSecurity As(const std::string& name) const {
    runtime::ClientSecurity security{.ca_file = Path("tls/ca.crt")};
    if (!name.empty()) {
      security.certificate_file = Path(absl::StrCat("tls/", name, ".crt"));
      security.key_file = Path(absl::StrCat("tls/", name, ".key"));
    }
    return security;
  }
  runtime::ClientSecurity WithToken(const std::string& token) const {
    runtime::ClientSecurity security = As("");
    security.token_file = folder_.Write(absl::StrCat("token-", token.size()), token + "\n");
    return security;
  }

  static std::string Address(serve::AllServices& services) {
    return absl::StrCat("127.0.0.1:", services.server().port());
  }
  static std::shared_ptr<grpc::Channel> ChannelTo(serve::AllServices& services,
                                                  const runtime::ClientSecurity& security) {
    auto credentials = runtime::MakeChannelCredentials(security);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    return runtime::Connect(Address(services), *credentials);
  }
  static client::Client ClientTo(serve::AllServices& services,
                                 const runtime::ClientSecurity& security,
                                 milliseconds timeout = milliseconds(20000)) {
    return client::Client(ChannelTo(services, security), Address(services), timeout);
  }

  static constexpr char kMaker[] = SEXTANT_SOURCE_DIR "/deploy/tls/make_certificates.sh";
  const TemporaryFolder folder_;
};

// Paths of every method of the suite, "/package.Service/Method".
std::vector<std::string> AllMethods() {
  std::vector<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {calibration::v1::CalibrationJob::descriptor()->file(),
        network_sim::v1::SimulateCaseRequest::descriptor()->file(),
        operator_cost::v1::EstimateOperatorsRequest::descriptor()->file(),
        orchestrator::v1::PredictRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(absl::StrCat("/", file->service(s)->full_name(), "/",
                                       file->service(s)->method(m)->name()));
      }
    }
  }
  return methods;
}

// The status of an empty request to `method`, whatever its type: an empty message is of any.
grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       milliseconds timeout) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  const auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  void* const tag = nullptr;
  call->StartCall(tag);
  wait();
  grpc::Slice nothing("", 0);
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), tag);
  wait();
  grpc::Status status;
  grpc::ByteBuffer answer;
  call->Read(&answer, tag);
  const bool answered = wait();
  // A stream that answered would go on: one answer is enough to know.
  if (answered) context.TryCancel();
  call->Finish(&status, tag);
  wait();
  return answered ? grpc::Status::OK : status;
}

// A new method must be given a permission before anyone can call it where a policy is in force.
TEST(AccessPolicy, EveryMethodOfTheSuiteHasAPermission) {
  const std::vector<std::string> methods = AllMethods();
  EXPECT_GE(methods.size(), 30u);
  for (const std::string& method : methods) {
    const auto permission = runtime::PermissionOf(method);
    ASSERT_TRUE(permission.has_value()) << method << " is in no group of access_policy.cc";
    const bool changes_sets =
        absl::StrContains(method, "/Push") || absl::StrContains(method, "/Prepare") ||
        absl::StrContains(method, "/Commit") || absl::StrContains(method, "/Rollback");
    EXPECT_EQ(*permission == runtime::Permission::kPublish, changes_sets) << method;
  }
}

TEST_F(Security, NothingIsAnsweredWithoutACertificateWhereOneIsAsked) {
  runtime::ServerSecurity security = ServerFiles();
  security.client_ca_file = Path("tls/ca.crt");
  const auto services = Serve(security);
  ASSERT_NE(services, nullptr);

  EXPECT_TRUE(ClientTo(*services, As("scheduler")).GetParameterSet().ok());
  const auto without = ChannelTo(*services, As(""));
  runtime::ClientSecurity forged = As("");
  forged.certificate_file = Path("other/scheduler.crt");
  forged.key_file = Path("other/scheduler.key");
  const auto of_another_ca = ChannelTo(*services, forged);
  const auto plaintext = ChannelTo(*services, {});
  for (const auto& channel : {without, of_another_ca, plaintext}) {
    const grpc::Status health =
        CallEmpty(channel, "/grpc.health.v1.Health/Check", milliseconds(500));
    EXPECT_EQ(health.error_code(), grpc::StatusCode::UNAVAILABLE) << health.error_message();
  }
  for (const std::string& method : AllMethods()) {
    EXPECT_FALSE(CallEmpty(without, method, milliseconds(100)).ok()) << method;
  }
}

TEST_F(Security, EveryMethodAsksThePolicy) {
  runtime::ServerSecurity security = ServerFiles();
  security.policy_file = Path("policy.yaml");
  const auto services = Serve(security);
  ASSERT_NE(services, nullptr);
  const auto stranger = ChannelTo(*services, As(""));
  const auto guesser = ChannelTo(*services, WithToken("not-the-token"));
  const auto scheduler = ChannelTo(*services, WithToken(kSchedulerToken));

  for (const std::string& method : AllMethods()) {
    for (const auto& channel : {stranger, guesser}) {
      EXPECT_EQ(CallEmpty(channel, method, milliseconds(5000)).error_code(),
                grpc::StatusCode::UNAUTHENTICATED)
          << method;
    }
    const runtime::Permission needed = *runtime::PermissionOf(method);
    const bool may =
        needed == runtime::Permission::kPredict || needed == runtime::Permission::kRead;
    const grpc::Status status = CallEmpty(scheduler, method, milliseconds(5000));
    EXPECT_EQ(status.error_code() == grpc::StatusCode::PERMISSION_DENIED, !may)
        << method << ": " << status.error_message();
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
  }
  // Probes need no identity.
  EXPECT_TRUE(ClientTo(*services, As("")).CheckHealth().ok());
}

TEST_F(Security, OnlyThePublisherChangesTheSetInService) {
  runtime::ServerSecurity security = ServerFiles();
  security.client_ca_file = Path("tls/ca.crt");
  security.policy_file = Path("policy.yaml");
  const auto services = Serve(security);
  ASSERT_NE(services, nullptr);
  const auto set = test_support::SlowGemmSet(0.5);

  const client::Client reader = ClientTo(*services, As("calibration"));
  const std::string before = reader.GetParameterSet()->version();
  const auto refused = ClientTo(*services, As("stranger")).PushParameterSet(*set);
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
  EXPECT_EQ(reader.GetParameterSet()->version(), before);

  const auto pushed = ClientTo(*services, As("calibration")).PushParameterSet(*set);
  EXPECT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(reader.GetParameterSet()->version(), set->version());
}

TEST_F(Security, CertificatesAndTokensRotateUnderLoad) {
  runtime::ServerSecurity security = ServerFiles();
  security.client_ca_file = Path("tls/ca.crt");
  security.policy_file = Path("policy.yaml");
  const auto services = Serve(security);
  ASSERT_NE(services, nullptr);

  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, failures{0};
  std::thread load([&] {
    while (!stop) {
      // A new connection each time: it shakes hands with the certificates of the moment.
      const auto answer = ClientTo(*services, As("calibration")).GetParameterSet();
      ++calls;
      if (!answer.ok()) {
        ++failures;
        ADD_FAILURE() << answer.status();
      }
    }
  });
  MakeCertificates("server");
  WritePolicy(absl::StrCat("  - {name: new, token_sha256: ", runtime::Sha256Hex("new-token"),
                           ", may: [read]}\n"));
  // The new token is taken up; how soon depends on the machine, that it is does not.
  runtime::ClientSecurity with_new = As("stranger");
  with_new.token_file = folder_.Write("new-token", "new-token");
  bool taken_up = false;
  for (int i = 0; i < 100 && !taken_up; ++i) {
    taken_up = ClientTo(*services, with_new).GetParameterSet().ok();
    if (!taken_up) std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_TRUE(taken_up);
  std::this_thread::sleep_for(milliseconds(1500));  // the certificates' turn
  stop = true;
  load.join();
  EXPECT_GT(calls, 5);
  EXPECT_EQ(failures, 0);

  // A policy that is not valid leaves the last one in force.
  folder_.Write("policy.yaml", "anyone: [everything]");
  std::this_thread::sleep_for(milliseconds(1100));
  EXPECT_TRUE(ClientTo(*services, with_new).GetParameterSet().ok());
}

TEST_F(Security, StartsOnlyWithFilesThatBelongTogether) {
  const auto violations = [](const runtime::ServerSecurity& security) {
    runtime::Metrics metrics;
    std::vector<std::string> fields;
    for (const auto& violation :
         base::ViolationsOf(runtime::MakeServerCredentials(security, metrics).status())) {
      fields.push_back(violation.field);
    }
    return absl::StrJoin(fields, " ");
  };
  EXPECT_EQ(violations({}), "tls_cert");
  EXPECT_EQ(violations({.insecure = true}), "");
  EXPECT_EQ(violations({.insecure = true, .policy_file = Path("policy.yaml")}), "policy");
  EXPECT_EQ(violations(ServerFiles()), "");
  runtime::ServerSecurity mixed = ServerFiles();
  mixed.insecure = true;
  mixed.key_file = Path("tls/scheduler.key");
  mixed.client_ca_file = Path("absent.crt");
  mixed.policy_file = Path("absent.yaml");
  EXPECT_EQ(violations(mixed), "insecure tls_key tls_client_ca policy");
  runtime::ServerSecurity swapped = ServerFiles();
  std::swap(swapped.certificate_file, swapped.key_file);
  EXPECT_EQ(violations(swapped), "tls_cert tls_key");

  EXPECT_FALSE(runtime::MakeChannelCredentials({.token_file = Path("absent")}).ok());
  EXPECT_FALSE(runtime::MakeChannelCredentials({.ca_file = Path("policy.yaml")}).ok());
}

TEST_F(Security, TheCommandTakesTheSameFiles) {
  runtime::ServerSecurity security = ServerFiles();
  security.policy_file = Path("policy.yaml");
  const auto services = Serve(security);
  ASSERT_NE(services, nullptr);
  const std::string job = folder_.Write("job.yaml", test_support::JobTexts()[0]);
  const auto predict = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"predict", job, "--server", Address(*services)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test_support::RunSextant(arguments);
  };
  const auto granted = predict(
      {"--tls-ca", Path("tls/ca.crt"), "--token-file", WithToken(kSchedulerToken).token_file});
  EXPECT_EQ(granted.exit_code, 0) << granted.err;
  const auto stranger = predict({"--tls-ca", Path("tls/ca.crt")});
  EXPECT_NE(stranger.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(stranger.err, "token file")) << stranger.err;
  const auto wrong = predict({"--tls-ca", Path("absent")});
  EXPECT_EQ(wrong.exit_code, 3) << wrong.err;
}

}  // namespace
}  // namespace sextant
