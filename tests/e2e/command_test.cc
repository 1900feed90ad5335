// SPDX-License-Identifier: Apache-2.0
// The command beside running servers: --server answers what the embedded library answers.
#include "tests/support/command.h"

#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/four_servers.h"
#include "tests/support/process.h"

namespace sextant {
namespace {

using nlohmann::json;
using test_support::CommandOutcome;
using test_support::RunSextant;
using test_support::ServerProcess;
using test_support::TemporaryFolder;
using testing::HasSubstr;

const std::string kSource = SEXTANT_SOURCE_DIR;
const std::string kTraining = kSource + "/datasets/scenarios/llama-3.1-70b-64xh100.yaml";
const std::string kInference = kSource + "/datasets/scenarios/llama-2-70b-inference-dgx-a100.yaml";
const std::string kTooLarge = kSource + "/datasets/scenarios/llama-3.1-70b-8xh100-too-large.yaml";

// A legal set that differs from the shipped one.
constexpr char kSlowSet[] = R"(provenance: {name: slow}
accelerators:
  a100-sxm4-80gb: {shared: {gemm.16bit.peak_efficiency: {value: 0.2}}}
  h100-sxm5-80gb: {shared: {gemm.16bit.peak_efficiency: {value: 0.2}}}
)";

// The header and every 100th row of a file of measurements.
std::string Thinned(const std::string& file) {
  std::string thinned;
  size_t line = 0;
  const std::string text = test_support::ReadWholeFile(kSource + "/datasets/measurements/" + file);
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin) + 1;
    if (line % 100 == 0) thinned += text.substr(begin, end - begin);
    begin = end;
  }
  return thinned;
}

void ExpectSameAnswer(std::vector<std::string> arguments, const std::string& server,
                      const std::string& input = "") {
  const CommandOutcome embedded = RunSextant(arguments, input);
  arguments.insert(arguments.end(), {"--server", server});
  const CommandOutcome served = RunSextant(arguments, input);
  EXPECT_EQ(served.exit_code, embedded.exit_code) << served.err;
  EXPECT_FALSE(embedded.out.empty()) << embedded.err;
  EXPECT_EQ(served.out, embedded.out);
}

TEST_F(FourServers, PredictPrintsTheBytesOfTheEmbeddedLibrary) {
  for (const std::string& job : {kTraining, kInference, kTooLarge}) {
    for (const char* format : {"json", "text"}) {
      ExpectSameAnswer({"predict", job, "--output", format}, orchestrator_->address());
    }
  }
}

TEST_F(FourServers, OperatorsAndNetworkPrintTheBytesOfTheEmbeddedLibrary) {
  ExpectSameAnswer({"operators", "-", "--output", "json"}, operator_cost_->address(),
                   Thinned("operators.csv"));
  ExpectSameAnswer({"network", kSource + "/common/network_sim/reference_cases/ring16_ar_64k.json",
                    "--output", "json"},
                   network_sim_->address());
}

// One case is watched, several are asked for in a batch; a bad file among them loses no answer.
TEST_F(FourServers, ABatchOfNetworkCasesPrintsTheBytesOfTheEmbeddedLibrary) {
  const std::string cases = kSource + "/common/network_sim/reference_cases/";
  for (const char* fidelity : {"flow", "analytic"}) {
    ExpectSameAnswer({"network", cases + "ring16_ar_64k.json", cases + "fc8_a2a_16m_failed.json",
                      cases + "SOURCES.md", cases + "sw8_two_ar_offset.json", "--fidelity",
                      fidelity, "--output", "json"},
                     network_sim_->address());
  }
}

TEST_F(FourServers, AWrongJobExitsAsWithoutServers) {
  const std::vector<std::string> wrong = {"predict", kTraining, "--set",
                                          "plan.tensor_parallel_size=7"};
  std::vector<std::string> asked = wrong;
  asked.insert(asked.end(), {"--server", orchestrator_->address()});
  const CommandOutcome served = RunSextant(asked);
  EXPECT_EQ(served.exit_code, 3);
  EXPECT_EQ(served.err, RunSextant(wrong).err);
}

TEST(Command, AServerThatIsNotThereExitsWithFive) {
  const CommandOutcome outcome =
      RunSextant({"predict", kTraining, "--server", "127.0.0.1:1", "--timeout", "5"});
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("127.0.0.1:1"));
}

// `sextant serve`: all services behind one port.
class Serve : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  ServerProcess process_{{SEXTANT_BINARY_DIR "/services/cli/sextant", "serve", "--listen", kAnyPort,
                          "--metrics-listen", kAnyPort, "--state-directory",
                          folder_.path().string()}};

  json Asked(const std::vector<std::string>& arguments) {
    const CommandOutcome outcome = RunSextant(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  json Predicted() {
    return Asked({"predict", kTraining, "--output", "json", "--server", process_.address()});
  }
};

TEST_F(Serve, IsHealthyAndEndsWithExitCodeZero) {
  const CommandOutcome health = RunSextant({"health", process_.address()});
  EXPECT_EQ(health.exit_code, 0) << health.err;
  EXPECT_EQ(process_.Stop(SIGTERM), 0);
}

TEST_F(Serve, ValidatePrintsTheBytesOfTheEmbeddedLibrary) {
  for (const char* file : {"operators.csv", "collectives.csv", "training.csv", "inference.csv"}) {
    ExpectSameAnswer({"validate", "-", "--output", "json"}, process_.address(), Thinned(file));
  }
}

TEST_F(Serve, APushIsAcknowledgedAnswersAndIsTakenBack) {
  const json before = Predicted();
  const std::string set = folder_.Write("slow.yaml", kSlowSet);
  const json pushed =
      Asked({"parameters", "push", set, process_.address(), "--output", "json"})["targets"][0];
  const std::string version = Asked({"parameters", "show", set, "--output", "json"})["version"];
  ASSERT_EQ(pushed["services"].size(), 2u);
  for (const json& service : pushed["services"]) {
    EXPECT_EQ(service["version"], version);
    EXPECT_EQ(service["previous_version"], before["parameter_set"]);
  }
  EXPECT_EQ(Predicted()["parameter_set"], version);
  EXPECT_GT(Predicted()["total_seconds"], before["total_seconds"]);
  EXPECT_EQ(Asked({"parameters", "list", "--server", process_.address(), "--output",
                   "json"})["parameter_sets"][0]["name"],
            "slow");

  Asked({"parameters", "rollback", process_.address(), "--output", "json"});
  EXPECT_EQ(Predicted(), before);
}

TEST_F(Serve, ASetThatBreaksPhysicsIsRefusedByName) {
  std::string text = kSlowSet;
  text.replace(text.find("0.2"), 3, "1.2");
  const std::string set = folder_.Write("impossible.yaml", text);
  const CommandOutcome outcome = RunSextant({"parameters", "push", set, process_.address()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("gemm.16bit.peak_efficiency"));
}

}  // namespace
}  // namespace sextant
