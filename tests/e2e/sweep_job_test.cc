// SPDX-License-Identifier: Apache-2.0
// The job files of deploy/sweep, run as Slurm and Kubernetes would run them.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/command.h"
#include "yaml-cpp/yaml.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const std::string kSextant = std::string(SEXTANT_BINARY_DIR) + "/services/cli/sextant";
const std::string kJobs = std::string(SEXTANT_SOURCE_DIR) + "/deploy/sweep/";

constexpr char kSweep[] = R"(
job:
  model: llama-2-7b
  cluster: dgx-a100
  gpu_count: 8
  training: {global_batch_size: 32, sequence_length: 2048}
vary: {plan: all}
)";

class SweepJob : public testing::Test {
 protected:
  int Shell(const std::string& command) {
    return std::system(("cd '" + folder_.path().string() + "' && " + command + " 2>log").c_str());
  }
  void ExpectMergedIsWhole(int shard_count) {
    std::vector<std::string> merge = {"sweep", "merge", "--output", "json"};
    for (int i = 0; i < shard_count; ++i) {
      merge.push_back(
          (folder_.path() / "results" / ("shard-" + std::to_string(i) + ".json")).string());
    }
    const auto merged = test_support::RunSextant(merge);
    EXPECT_EQ(merged.exit_code, 0) << merged.err;
    EXPECT_EQ(merged.out,
              test_support::RunSextant({"sweep", "run", file_, "--output", "json"}).out);
  }

  const test_support::TemporaryFolder folder_;
  const std::string file_ = folder_.Write("sweep.yaml", kSweep);
};

TEST_F(SweepJob, ASlurmArrayMergesToTheWhole) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Shell("SWEEP=sweep.yaml SEXTANT=" + kSextant + " SLURM_CPUS_PER_TASK=1" +
                    " SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_ID=" +
                    std::to_string(i) + " bash " + kJobs + "slurm.sh"),
              0);
  }
  ExpectMergedIsWhole(3);
  // Nothing half written is left.
  for (const auto& entry : fs::directory_iterator(folder_.path() / "results")) {
    EXPECT_EQ(entry.path().filename().string().front(), 's') << entry.path();
  }
}

TEST_F(SweepJob, AKubernetesIndexedJobMergesToTheWhole) {
  const std::vector<YAML::Node> documents = YAML::LoadAllFromFile(kJobs + "kubernetes.yaml");
  ASSERT_EQ(documents.size(), 2u);
  const YAML::Node spec = documents[1]["spec"];
  ASSERT_EQ(spec["completionMode"].Scalar(), "Indexed");
  const YAML::Node container = spec["template"]["spec"]["containers"][0];
  const YAML::Node shards = container["env"][0];
  ASSERT_EQ(shards["name"].Scalar(), "SHARDS");
  EXPECT_EQ(shards["value"].Scalar(), spec["completions"].Scalar());
  // The paths of the pod become those of a folder here.
  std::string script = container["args"][0].Scalar();
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = script.find(from); at != std::string::npos;
         at = script.find(from, at + to.size())) {
      script.replace(at, from.size(), to);
    }
  };
  replace("/results/", "results/");
  replace("/sweep/sweep.yaml", "sweep.yaml");
  replace("sextant sweep", kSextant + " sweep");
  folder_.Write("pod.sh", script);
  ASSERT_EQ(Shell("mkdir results"), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Shell("SHARDS=2 JOB_COMPLETION_INDEX=" + std::to_string(i) + " sh pod.sh"), 0);
  }
  ExpectMergedIsWhole(2);
}

}  // namespace
}  // namespace sextant
