// SPDX-License-Identifier: Apache-2.0
// The four server programs as processes of their own.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/client/client.h"
#include "tests/support/jobs.h"
#include "tests/support/process.h"

namespace sextant {
namespace {

using parameters::ParameterSet;
using test_support::JobTexts;
using test_support::PredictEmbedded;
using test_support::ReadJobText;
using test_support::ServerProcess;
using test_support::SlowGemmSet;

// The set that this project ships.
std::shared_ptr<const ParameterSet> Shipped() {
  const auto catalog = catalog::Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  auto set = catalog->FindParameterSet("default");
  EXPECT_TRUE(set.ok()) << set.status();
  return std::make_shared<const ParameterSet>(*std::move(set));
}

std::string TemporaryDirectory() {
  std::string path = (std::filesystem::temp_directory_path() / "sextant_e2e_XXXXXX").string();
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

// Starts <service>_server on `listen` with free metrics port.
std::unique_ptr<ServerProcess> Start(const std::string& service, const std::string& listen,
                                     std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      absl::StrCat(SEXTANT_BINARY_DIR "/services/", service, "/", service, "_server"),
      absl::StrCat("--listen=", listen), "--metrics_listen=127.0.0.1:0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto process = std::make_unique<ServerProcess>(arguments);
  EXPECT_NE(process->port(), 0) << process->log();
  return process;
}

constexpr char kAnyPort[] = "127.0.0.1:0";
constexpr char kDatasets[] = "--datasets_dir=" SEXTANT_SOURCE_DIR "/datasets";
constexpr char kParameters[] = "--parameters=default";

client::Client Ask(const ServerProcess& process) {
  return client::Client(process.address(), std::chrono::seconds(20));
}

class FourServers : public testing::Test {
 protected:
  void SetUp() override {
    operator_cost_ = StartOperatorCost(kAnyPort);
    network_sim_ = Start("network_sim", kAnyPort, {kDatasets, kParameters});
    orchestrator_ = Start("orchestrator", kAnyPort,
                          {absl::StrCat("--operator_cost=", operator_cost_->address()),
                           absl::StrCat("--network_sim=", network_sim_->address())});
    calibration_ = Start("calibration", kAnyPort,
                         {kDatasets, absl::StrCat("--push_target=", operator_cost_->address()),
                          absl::StrCat("--push_target=", network_sim_->address())});
  }

  void TearDown() override {
    operator_cost_.reset();
    std::filesystem::remove_all(state_directory_);
  }

  std::unique_ptr<ServerProcess> StartOperatorCost(const std::string& listen) {
    return Start("operator_cost", listen,
                 {kDatasets, kParameters, absl::StrCat("--state_directory=", state_directory_)});
  }

  const std::string state_directory_ = TemporaryDirectory();
  std::unique_ptr<ServerProcess> operator_cost_, network_sim_, orchestrator_, calibration_;
};

TEST_F(FourServers, AnswerWhatTheEmbeddedLibraryAnswersBitForBit) {
  for (const std::string& text : JobTexts()) {
    const auto job = ReadJobText(text);
    ASSERT_TRUE(job.ok()) << job.status();
    const auto embedded = PredictEmbedded(*job, Shipped());
    ASSERT_TRUE(embedded.ok()) << embedded.status();
    const auto served = Ask(*orchestrator_).Predict(*job);
    ASSERT_TRUE(served.ok()) << served.status();
    EXPECT_EQ(*served, *embedded) << text;
  }
}

TEST_F(FourServers, KillingTheCostServerLosesNothing) {
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto slow = SlowGemmSet(0.2);
  for (const ServerProcess* process : {operator_cost_.get(), network_sim_.get()}) {
    const auto acknowledged = Ask(*process).PushParameterSet(*slow);
    ASSERT_TRUE(acknowledged.ok()) << acknowledged.status();
  }
  const auto before = Ask(*orchestrator_).Predict(*job);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(before->parameter_set, slow->version());

  const std::string address = operator_cost_->address();
  EXPECT_EQ(operator_cost_->Stop(SIGKILL), -SIGKILL);
  const auto down = Ask(*orchestrator_).Predict(*job);
  EXPECT_EQ(down.status().code(), absl::StatusCode::kUnavailable) << down.status();

  operator_cost_ = StartOperatorCost(address);
  EXPECT_EQ(Ask(*operator_cost_).GetVersions()->front().version, slow->version());
  // The orchestrator looks for the lost connection within a second; until then it says UNAVAILABLE.
  absl::StatusOr<orchestrator::Prediction> after = absl::UnknownError("not asked");
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    after = Ask(*orchestrator_).Predict(*job);
  } while (absl::IsUnavailable(after.status()) && std::chrono::steady_clock::now() < limit);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*after, *before);
}

TEST_F(FourServers, EndWithExitCodeZeroOnSigterm) {
  for (ServerProcess* process :
       {orchestrator_.get(), calibration_.get(), network_sim_.get(), operator_cost_.get()}) {
    EXPECT_EQ(process->Stop(SIGTERM), 0);
  }
}

TEST_F(FourServers, ExposeRateErrorsAndDurationOfCalls) {
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(Ask(*orchestrator_).Predict(*job).ok());
  const std::string metrics = test_support::HttpGet(orchestrator_->metrics_port(), "/metrics");
  for (const char* expected :
       {"HTTP/1.1 200", "sextant_build_info{",
        "grpc_server_call_started_total{grpc_method=\"sextant.orchestrator.v1.OrchestratorService/"
        "Predict\"} 1",
        "grpc_server_call_duration_seconds_count{grpc_method=\"sextant.orchestrator.v1."
        "OrchestratorService/Predict\",grpc_status=\"OK\"} 1",
        "sextant_orchestrator_cache_requests_total{result=\"miss\"}"}) {
    EXPECT_NE(metrics.find(expected), std::string::npos) << expected << "\n" << metrics;
  }
  const std::string cost = test_support::HttpGet(operator_cost_->metrics_port(), "/metrics");
  EXPECT_NE(cost.find(absl::StrCat("version=\"", Shipped()->version(), "\"} 1")), std::string::npos)
      << cost;
}

TEST(ServerProgram, RefusesWrongUsageWithExitCodeTwo) {
  ServerProcess process(
      {SEXTANT_BINARY_DIR "/services/orchestrator/orchestrator_server", "--no_such_flag"});
  EXPECT_EQ(process.port(), 0);
  EXPECT_EQ(process.Stop(0), 2);
}

TEST(ServerProgram, TakesFlagsFromTheEnvironment) {
  setenv("SEXTANT_LISTEN", kAnyPort, 1);
  setenv("SEXTANT_METRICS_LISTEN", kAnyPort, 1);
  ServerProcess process({SEXTANT_BINARY_DIR "/services/orchestrator/orchestrator_server"});
  unsetenv("SEXTANT_LISTEN");
  unsetenv("SEXTANT_METRICS_LISTEN");
  EXPECT_NE(process.port(), 0) << process.log();
  EXPECT_NE(process.port(), 50053);
}

}  // namespace
}  // namespace sextant
