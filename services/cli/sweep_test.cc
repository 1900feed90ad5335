// SPDX-License-Identifier: Apache-2.0
// `sextant sweep` as a user meets it.
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/command.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using test_support::RunSextant;
using testing::HasSubstr;

constexpr char kSmall[] = R"(
job:
  model: llama-2-13b
  cluster: dgx-a100
  gpu_count: 16
  training: {global_batch_size: 64, sequence_length: 4096}
vary:
  plan: all
  gpu_count: [16, 24]
sample: 10
top: 5
)";

class Sweep : public testing::Test {
 protected:
  std::string File(const std::string& text) { return folder_.Write("sweep.yaml", text); }
  const test_support::TemporaryFolder folder_;
};

// The law of every row: a prediction with its settings and its plan gives the same numbers.
TEST_F(Sweep, PredictOfAnyRowGivesTheSameNumbers) {
  const auto run = RunSextant({"sweep", File(kSmall), "--output", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = json::parse(run.out);
  ASSERT_EQ(report["top"].size(), 5u);
  const std::string job =
      folder_.Write("job.yaml",
                    "model: llama-2-13b\ncluster: dgx-a100\ngpu_count: 16\n"
                    "training: {global_batch_size: 64, sequence_length: 4096}\n");
  for (const char* list : {"top", "pareto", "sample"}) {
    const json& row = report[list].back();
    std::vector<std::string> arguments = {"predict", job, "--output", "json"};
    for (const json& setting : row["settings"]) {
      arguments.insert(arguments.end(), {"--set", setting["path"].get<std::string>() + "=" +
                                                      setting["value"].get<std::string>()});
    }
    for (const auto& [name, value] : row["plan"].items()) {
      if (value.is_null() || value.is_array()) continue;
      arguments.insert(arguments.end(), {"--set", "plan." + name + "=" +
                                                      (value.is_string() ? value.get<std::string>()
                                                                         : value.dump())});
    }
    const auto predicted = RunSextant(arguments);
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    const json prediction = json::parse(predicted.out);
    for (const char* key :
         {"total_seconds", "interval_low_seconds", "interval_high_seconds", "tokens_per_second",
          "model_flops_utilization", "breakdown", "memory_breakdown", "warnings", "fits"}) {
      EXPECT_EQ(row[key], prediction[key]) << list << " " << key;
    }
    EXPECT_EQ(row["memory_bytes"].get<double>(), prediction["memory_bytes"].get<double>());
  }
}

TEST_F(Sweep, ShardsMergedAreTheWholeByteForByte) {
  const std::string file = File(kSmall);
  const auto whole = RunSextant({"sweep", "run", file, "--output", "json", "--threads", "2"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::vector<std::string> merge = {"sweep", "merge"};
  for (const char* shard : {"2/3", "0/3", "1/3"}) {
    const auto part =
        RunSextant({"sweep", "run", file, "--output", "json", "--shard", shard, "--threads", "1"});
    ASSERT_EQ(part.exit_code, 0) << part.err;
    merge.push_back(folder_.Write("part" + std::string(1, shard[0]) + ".json", part.out));
  }
  for (const char* output : {"json", "csv", "text"}) {
    std::vector<std::string> arguments = merge;
    arguments.insert(arguments.end(), {"--output", output});
    const auto merged = RunSextant(arguments);
    EXPECT_EQ(merged.exit_code, 0) << merged.err;
    EXPECT_EQ(merged.out, RunSextant({"sweep", "run", file, "--output", output}).out);
  }
  EXPECT_EQ(RunSextant({"sweep", "merge", merge[2], merge[3], "--output", "json"})
                    .out.find("\"complete\": false") != std::string::npos,
            true);
  const auto twice = RunSextant({"sweep", "merge", merge[2], merge[2]});
  EXPECT_EQ(twice.exit_code, 3);
  EXPECT_THAT(twice.err, HasSubstr("given before"));
}

// INPUTS.md 56: limits are never relaxed; where nothing meets them the nearest is named, exit 6.
TEST_F(Sweep, LimitsHoldForEveryRowOrTheModelSaysNo) {
  const auto text = [](const char* limits) {
    return std::string(R"(
job:
  model: llama-2-70b
  cluster: dgx-h100
  gpu_count: 8
  inference: {prompt_tokens: 1024, output_tokens: 128}
vary:
  plan: all
  inference.batch_size: [1, 4, 16, 64]
limits: )") +
           limits;
  };
  const auto some = RunSextant(
      {"sweep",
       File(text("{time_to_first_token_seconds: 0.3, inter_token_latency_seconds: 0.03}\n")),
       "--output", "json"});
  ASSERT_EQ(some.exit_code, 0) << some.err;
  const json report = json::parse(some.out);
  ASSERT_FALSE(report["top"].empty());
  for (const char* list : {"top", "pareto", "best"}) {
    for (const json& row : report[list]) {
      EXPECT_LE(row["time_to_first_token_seconds"], 0.3);
      EXPECT_LE(row["inter_token_latency_seconds"], 0.03);
    }
  }
  const auto none = RunSextant(
      {"sweep", File(text("{inter_token_latency_seconds: 1e-6}\n")), "--output", "json"});
  EXPECT_EQ(none.exit_code, 6);
  EXPECT_TRUE(json::parse(none.out)["top"].empty());
  EXPECT_FALSE(json::parse(none.out)["nearest"].empty());
}

// A space of minutes: interrupted, it answers with what is done.
TEST_F(Sweep, CtrlCKeepsWhatIsDone) {
  for (const int signal : {SIGINT, SIGTERM}) {
    test_support::StartedSextant run({"sweep", File(R"(
job:
  model: llama-3.1-70b
  cluster: dgx-h100
  gpu_count: 512
  training: {global_batch_size: 4608, sequence_length: 8192}
vary:
  plan: all
  gpu_count: {from: 512, to: 51200, step: 512}
)"),
                                      "--output", "json"});
    ASSERT_TRUE(run.SignalAfter("sweeping ", signal));
    const auto outcome = run.Wait();
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("interrupted after"));
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report["complete"], false);
    EXPECT_LT(report["candidate_count"], report["whole_candidate_count"]);
  }
}

// The range that sources span lies around every value.
TEST_F(Sweep, EnergyAndCostCarryTheirRanges) {
  const auto run = RunSextant({"sweep", File(kSmall), "--output", "json"});
  const json report = json::parse(run.out);
  for (const json& row : report["top"]) {
    EXPECT_LT(row["energy_low_joules_per_token"], row["energy_joules_per_token"]);
    EXPECT_GT(row["energy_high_joules_per_token"], row["energy_joules_per_token"]);
    EXPECT_LT(row["cost_low_dollars_per_million_tokens"], row["cost_dollars_per_million_tokens"]);
    EXPECT_GT(row["cost_high_dollars_per_million_tokens"], row["cost_dollars_per_million_tokens"]);
  }
}

// 70.6 billion parameters of 14 bytes; 64 GPUs at 122 MB/s each write them in 127 s.
TEST(Resilience, ACheckpointTakesWhatTheStateOfTheJobNeeds) {
  const std::string job =
      std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/llama-3.1-70b-64xh100.yaml";
  const json r = json::parse(RunSextant({"resilience", job, "--output", "json"}).out);
  EXPECT_NEAR(r["checkpoint_bytes"].get<double>(), 14 * 70.55e9, 0.01 * 14 * 70.55e9);
  EXPECT_DOUBLE_EQ(r["checkpoint_seconds"].get<double>(),
                   r["checkpoint_bytes"].get<double>() / (64 * 122e6));
  const json given = json::parse(
      RunSextant({"resilience", job, "--checkpoint-seconds", "5", "--output", "json"}).out);
  EXPECT_EQ(given["checkpoint_seconds"].get<double>(), 5);
  EXPECT_GT(given["useful_share"], r["useful_share"]);
}

// The law of every bar: a prediction with that factor gives the same time; widest first.
TEST(WhatIf, BarsAreThePredictionsOfTheScaledHardware) {
  const std::string job =
      std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/llama-3.1-70b-64xh100.yaml";
  const auto run = RunSextant({"what-if", job, "--factor", "4", "--output", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = json::parse(run.out);
  double before = std::numeric_limits<double>::infinity();
  for (const json& bar : report["bars"]) {
    const double divided = bar["divided_seconds"];
    const double multiplied = bar["multiplied_seconds"];
    EXPECT_LE(std::abs(divided - multiplied), before);
    before = std::abs(divided - multiplied);
    const bool latency = bar["property"] == "node_latency" || bar["property"] == "network_latency";
    if (latency) {
      EXPECT_LE(divided, multiplied);
    } else if (bar["property"] != "sm_count") {  // more of them also make more, smaller waves
      EXPECT_GE(divided, multiplied) << bar;
    }
  }
  EXPECT_EQ(report["bars"][0]["property"], "matrix_rate");
  const json faster = json::parse(
      RunSextant({"predict", job, "--set", "what_if.scale.matrix_rate=4", "--output", "json"}).out);
  EXPECT_EQ(faster["total_seconds"], report["bars"][0]["multiplied_seconds"]);
  EXPECT_EQ(faster["extrapolated"], true);
  EXPECT_EQ(RunSextant({"what-if", job, "--factor", "1"}).exit_code, 3);
}

TEST(WhatIf, GenerationsAreAnAxisOfSweepsAndRowsArePredictions) {
  const test_support::TemporaryFolder folder;
  const std::string job =
      std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/llama-2-70b-inference-dgx-a100.yaml";
  const auto run = RunSextant(
      {"sweep",
       folder.Write("sweep.yaml",
                    "job: " + job + "\nvary: {what_if.memory: [hbm2e, hbm3, hbm4]}\ntop: 3\n"),
       "--output", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json report = json::parse(run.out);
  ASSERT_EQ(report["best"].size(), 3u);
  double before = std::numeric_limits<double>::infinity();
  for (const json& row : report["best"]) {
    EXPECT_LT(row["total_seconds"], before);  // token phases wait for memory
    before = row["total_seconds"];
    const std::string memory = row["settings"][0]["value"];
    const json predicted = json::parse(
        RunSextant({"predict", job, "--set", "what_if.memory=" + memory, "--output", "json"}).out);
    EXPECT_EQ(predicted["total_seconds"], row["total_seconds"]) << memory;
  }
  const auto unknown = RunSextant({"predict", job, "--set", "what_if.memory=hbm5"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("what_if.memory"));
}

// GPT-3 175B on 1 024 A100s: every kind of link, on three interconnects.
TEST(Faults, RankEveryPartOfTheInterconnectWorstFirst) {
  const std::vector<std::string> job = {
      "faults",   std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/gpt3-175b-64xa100.yaml",
      "--set",    "gpu_count=1024",
      "--set",    "plan.data_parallel_size=16",
      "--set",    "training.global_batch_size=1536",
      "--output", "json"};
  const struct {
    const char* topology;
    std::set<std::string> links;
  } kCases[] = {{"own", {"nvlink", "nic"}},
                {"fat-tree", {"nvlink", "nic", "uplink"}},
                {"torus:8x16x8", {"dimension 0", "dimension 1", "dimension 2"}}};
  for (const auto& c : kCases) {
    std::vector<std::string> arguments = job;
    arguments.insert(arguments.end(), {"--topology", c.topology, "--fractions", "0.5"});
    const auto run = RunSextant(arguments);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json report = json::parse(run.out);
    std::set<std::string> links;
    double before = 0;
    for (const json& fault : report["single_faults"]) {
      if (!fault["is_switch"]) links.insert(fault["part"]);
      if (fault["step_seconds"].is_null()) continue;
      if (before > 0) {
        EXPECT_LE(fault["step_seconds"], before);
      }
      before = fault["step_seconds"];
      EXPECT_GE(fault["slowdown"], 1 - 1e-9);
    }
    EXPECT_EQ(links, c.links) << c.topology;
  }
}

TEST(Faults, DrawsAreRepeatableAndMappingsCompared) {
  const std::vector<std::string> arguments = {
      "faults",
      std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/gpt3-175b-64xa100.yaml",
      "--draws",
      "10",
      "--seed",
      "7",
      "--compare-mappings",
      "--output",
      "json"};
  const auto run = RunSextant(arguments);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, RunSextant(arguments).out);
  const json report = json::parse(run.out);
  EXPECT_GE(report["random_faults"]["mean_slowdown"], 1);
  ASSERT_EQ(report["mappings"].size(), 8u);  // two orders of two axes, four routings
  EXPECT_EQ(report["mappings"][0]["mapping"], "tensor, pipeline");
  EXPECT_LE(report["mappings"][0]["expected_seconds"], report["mappings"][7]["expected_seconds"]);
}

TEST(Faults, RefuseUnknownInterconnectsAndServersByName) {
  const std::string job =
      std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/gpt3-175b-64xa100.yaml";
  const auto unknown = RunSextant({"faults", job, "--topology", "tori"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("torus:8x16x8"));
  EXPECT_EQ(RunSextant({"faults", job, "--topology", "torus:8x7"}).exit_code, 3);
  EXPECT_EQ(RunSextant({"faults", job, "--fractions", "1.5"}).exit_code, 3);
  EXPECT_EQ(RunSextant({"faults", job, "--server", "127.0.0.1:1"}).exit_code, 3);
}

TEST(Resilience, SharesSumToOneAndScaleTheThroughput) {
  const std::string job =
      std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/llama-3.1-70b-64xh100.yaml";
  const auto run =
      RunSextant({"resilience", job, "--spares", "1", "--stragglers", "0.104", "--output", "json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json r = json::parse(run.out);
  double sum = 0;
  for (const char* key : {"useful_share", "checkpoint_share", "rework_share", "recovery_share",
                          "waiting_share", "straggler_share"}) {
    sum += r[key].get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_DOUBLE_EQ(r["useful_tokens_per_second"].get<double>(),
                   r["tokens_per_second"].get<double>() * r["useful_share"].get<double>());
  const json prediction = json::parse(RunSextant({"predict", job, "--output", "json"}).out);
  EXPECT_EQ(r["tokens_per_second"], prediction["tokens_per_second"]);
  EXPECT_EQ(RunSextant({"resilience", job, "--profile", "lama-3-h100"}).exit_code, 4);
  EXPECT_EQ(RunSextant({"resilience", job, "--spares", "-1"}).exit_code, 3);
}

TEST_F(Sweep, WrongFilesAndShardsAreRefusedByName) {
  EXPECT_EQ(RunSextant({"sweep", File("job: 3x\nvari: 1\n")}).exit_code, 3);
  EXPECT_EQ(RunSextant({"sweep", "run", "no-such.yaml"}).exit_code, 4);
  const auto shard = RunSextant({"sweep", File(kSmall), "--shard", "3/3"});
  EXPECT_EQ(shard.exit_code, 3);
  EXPECT_THAT(shard.err, HasSubstr("from 0 to N-1"));
}

TEST_F(Sweep, CsvHasOneLinePerRowAndUnitsInItsColumns) {
  const auto run = RunSextant({"sweep", File(kSmall), "--output", "csv", "--top", "3"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("list,rank,id,gpu_count,cluster"));
  EXPECT_THAT(run.out, HasSubstr("\ntop,3,"));
  EXPECT_THAT(run.out, HasSubstr("energy_joules_per_token"));
}

}  // namespace
}  // namespace sextant::cli
