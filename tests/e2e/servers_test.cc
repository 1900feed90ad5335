// SPDX-License-Identifier: Apache-2.0
// The four server programs as processes of their own.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/client/client.h"
#include "tests/e2e/four_servers.h"
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

client::Client Ask(const ServerProcess& process) {
  return client::Client(process.address(), std::chrono::seconds(20));
}

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

TEST(ServerProgram, DoesNotStartInPlaintextUnasked) {
  ServerProcess process({SEXTANT_BINARY_DIR "/services/orchestrator/orchestrator_server",
                         absl::StrCat("--listen=", kAnyPort)});
  EXPECT_EQ(process.port(), 0);
  EXPECT_EQ(process.Stop(0), 1);
  EXPECT_NE(process.log().find("insecure"), std::string::npos) << process.log();
}

TEST(ServerProgram, TakesFlagsFromTheEnvironment) {
  setenv("SEXTANT_LISTEN", kAnyPort, 1);
  setenv("SEXTANT_METRICS_LISTEN", kAnyPort, 1);
  setenv("SEXTANT_INSECURE", "true", 1);
  ServerProcess process({SEXTANT_BINARY_DIR "/services/orchestrator/orchestrator_server"});
  unsetenv("SEXTANT_LISTEN");
  unsetenv("SEXTANT_INSECURE");
  unsetenv("SEXTANT_METRICS_LISTEN");
  EXPECT_NE(process.port(), 0) << process.log();
  EXPECT_NE(process.port(), 50053);
}

}  // namespace
}  // namespace sextant
