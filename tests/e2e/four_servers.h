// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_TESTS_E2E_FOUR_SERVERS_H_
#define SEXTANT_TESTS_E2E_FOUR_SERVERS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/command.h"
#include "tests/support/process.h"

namespace sextant {

inline constexpr char kAnyPort[] = "127.0.0.1:0";
inline constexpr char kDatasets[] = "--datasets_dir=" SEXTANT_SOURCE_DIR "/datasets";

// Starts <service>_server on `listen` with a free metrics port.
inline std::unique_ptr<test_support::ServerProcess> StartServer(
    const std::string& service, const std::string& listen, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      absl::StrCat(SEXTANT_BINARY_DIR "/services/", service, "/", service, "_server"),
      absl::StrCat("--listen=", listen), "--metrics_listen=127.0.0.1:0", "--insecure"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto process = std::make_unique<test_support::ServerProcess>(arguments);
  EXPECT_NE(process->port(), 0) << process->log();
  return process;
}

// The suite as it is deployed: each server program in a process of its own, the cost server with a
// folder in which pushed sets survive.
class FourServers : public testing::Test {
 protected:
  void SetUp() override {
    operator_cost_ = StartOperatorCost(kAnyPort);
    network_sim_ = StartServer("network_sim", kAnyPort, {kDatasets, "--parameters=default"});
    orchestrator_ = StartServer("orchestrator", kAnyPort,
                                {absl::StrCat("--operator_cost=", operator_cost_->address()),
                                 absl::StrCat("--network_sim=", network_sim_->address())});
    calibration_ =
        StartServer("calibration", kAnyPort,
                    {kDatasets, absl::StrCat("--push_target=", operator_cost_->address()),
                     absl::StrCat("--push_target=", network_sim_->address())});
  }

  std::unique_ptr<test_support::ServerProcess> StartOperatorCost(const std::string& listen) {
    return StartServer("operator_cost", listen,
                       {kDatasets, "--parameters=default",
                        absl::StrCat("--state_directory=", state_folder_.path().string())});
  }

  const test_support::TemporaryFolder state_folder_;
  std::unique_ptr<test_support::ServerProcess> operator_cost_, network_sim_, orchestrator_,
      calibration_;
};

}  // namespace sextant

#endif  // SEXTANT_TESTS_E2E_FOUR_SERVERS_H_
