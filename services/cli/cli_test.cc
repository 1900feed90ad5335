// SPDX-License-Identifier: Apache-2.0
// The command as a user meets it: the built program, its exit codes, stdout and stderr.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/command.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kScenarios = std::string(SEXTANT_SOURCE_DIR) + "/datasets/scenarios/";
const std::string kNetworkCases =
    std::string(SEXTANT_SOURCE_DIR) + "/common/network_sim/reference_cases/";

using Outcome = test_support::CommandOutcome;

class Sextant : public testing::Test {
 protected:
  std::string WriteFile(const std::string& name, const std::string& text) {
    return temporary_.Write(name, text);
  }

  Outcome Run(const std::vector<std::string>& arguments, const std::string& input = "",
              const std::vector<std::pair<std::string, std::string>>& environment = {}) {
    return test_support::RunSextant(arguments, input, environment);
  }

  // A scenario's text with `from` replaced by `to`, as a file.
  std::string Changed(const std::string& scenario, const std::string& from, const std::string& to) {
    std::string text = test_support::ReadWholeFile(kScenarios + scenario);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " is not in " << scenario;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    return WriteFile("changed.yaml", text);
  }

  const test_support::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

constexpr char kTraining[] = "llama-3.1-70b-64xh100.yaml";
constexpr char kInference[] = "llama-2-70b-inference-dgx-a100.yaml";
constexpr char kTooLarge[] = "llama-3.1-70b-8xh100-too-large.yaml";

class Usage : public Sextant {};

TEST_F(Usage, WithoutArgumentsSaysWhatThereIsAndFails) {
  const Outcome outcome = Run({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("predict"));
}

TEST_F(Usage, HelpGoesToStdout) {
  const Outcome outcome = Run({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("predict"), HasSubstr("Exit codes")));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(Usage, UnknownVerbNamesTheNearest) {
  const Outcome outcome = Run({"predct", "x.yaml"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("sextant: error:"), HasSubstr("\"predict\"")));
}

TEST_F(Usage, WrongOptionsAreUsageErrors) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"predict"},
                                             {"predict", "a", "b"},
                                             {"predict", "a", "--no-such-option"},
                                             {"predict", "a", "--output", "xml"},
                                             {"predict", "a", "--timeout", "0"},
                                             {"predict", "a", "--timeout", "nan"},
                                             {"predict", "a", "--set", "no-equals-sign"},
                                             {"network"},
                                             {"network", "a", "--fidelity", "exact"},
                                             {"completion", "tcsh"},
                                             {"catalog"},
                                             {"catalog", "show", "models"},
                                             {"catalog", "list", "nonsense"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << testing::PrintToString(arguments) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("sextant: error:"), HasSubstr("hint:")));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

// Every option that a help text shows is accepted by the parser: with a help flag behind it, the
// command ends well without doing anything.
TEST_F(Usage, EveryOptionInHelpIsAccepted) {
  const std::vector<std::vector<std::string>> verbs = {{"predict"},
                                                       {"network"},
                                                       {"catalog", "list"},
                                                       {"catalog", "show"},
                                                       {"completion"},
                                                       {"version"},
                                                       {"parameters", "list"},
                                                       {"parameters", "show"},
                                                       {"parameters", "push"},
                                                       {"parameters", "rollback"},
                                                       {"validate"},
                                                       {"calibrate"},
                                                       {"operators"},
                                                       {"serve"},
                                                       {"health"}};
  int option_count = 0;
  for (const std::vector<std::string>& verb : verbs) {
    std::vector<std::string> help = verb;
    help.push_back("--help");
    const Outcome outcome = Run(help);
    ASSERT_EQ(outcome.exit_code, 0) << testing::PrintToString(verb) << outcome.err;
    std::stringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      const size_t start = line.find("--");
      if (start == std::string::npos || line.find_first_not_of(' ') + 3 < start) continue;
      std::stringstream words(line.substr(start));
      std::string option;
      std::string type;
      words >> option >> type;
      if (option == "--help" || type == "REQUIRED") continue;
      std::vector<std::string> arguments = verb;
      arguments.push_back(option);
      if (type == "FORMAT") arguments.push_back("json");
      if (type == "KIND") arguments.push_back("flow");
      if (type == "SECONDS" || type == "COUNT") arguments.push_back("5");
      if (type == "PATH=VALUE") arguments.push_back("gpu_count=1");
      for (const char* kind : {"SET", "HOST:PORT", "FILE", "NAME", "FOLDER"}) {
        if (type == kind) arguments.push_back("x");
      }
      arguments.push_back("--help");
      const Outcome accepted = Run(arguments);
      EXPECT_EQ(accepted.exit_code, 0) << testing::PrintToString(arguments) << accepted.err;
      ++option_count;
    }
  }
  EXPECT_GT(option_count, 80);
}

TEST_F(Usage, CompletionScriptsAreValidShell) {
  const Outcome outcome = Run({"completion", "bash"});
  ASSERT_EQ(outcome.exit_code, 0);
  const std::string script = WriteFile("completion.bash", outcome.out);
  EXPECT_EQ(std::system(("bash -n " + script).c_str()), 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("predict"), HasSubstr("--parameters")));
}

class Predict : public Sextant {};

TEST_F(Predict, AnswersEveryScenario) {
  for (const char* scenario : {kTraining, kInference, "gpt3-175b-64xa100.yaml"}) {
    const Outcome outcome = Run({"predict", kScenarios + scenario, "--output", "json"});
    ASSERT_EQ(outcome.exit_code, 0) << scenario << outcome.err;
    const json answer = json::parse(outcome.out);
    EXPECT_GT(answer["total_seconds"], 0) << scenario;
    EXPECT_LE(answer["interval_low_seconds"], answer["total_seconds"]) << scenario;
    EXPECT_GE(answer["interval_high_seconds"], answer["total_seconds"]) << scenario;
    EXPECT_TRUE(answer["fits"]) << scenario;
    EXPECT_EQ(answer["shortfall_bytes"], 0) << scenario;
  }
}

TEST_F(Predict, BreakdownSumsToTheTotalAndMemoryPartsToTheMemory) {
  for (const char* scenario : {kTraining, kInference}) {
    const Outcome outcome = Run({"predict", kScenarios + scenario, "--output", "json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json answer = json::parse(outcome.out);
    double seconds = 0;
    for (const auto& [name, part] : answer["breakdown"].items()) seconds += part.get<double>();
    const double total_seconds = answer["total_seconds"];
    EXPECT_NEAR(seconds, total_seconds, 1e-9 * total_seconds);
    int64_t bytes = 0;
    for (const auto& [name, part] : answer["memory_breakdown"].items())
      bytes += part.get<int64_t>();
    EXPECT_EQ(bytes, answer["memory_bytes"].get<int64_t>());
  }
}

TEST_F(Predict, EveryDocumentedKeyIsThereAndIntegersAreNumbers) {
  const Outcome outcome = Run({"predict", kScenarios + kInference, "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json answer = json::parse(outcome.out);
  for (const char* key : {"memory_bytes", "memory_capacity_bytes", "shortfall_bytes",
                          "kv_cache_capacity_tokens", "gpu_count"}) {
    EXPECT_TRUE(answer.at(key).is_number_integer()) << key;
  }
  for (const char* key :
       {"total_seconds", "interval_low_seconds", "interval_high_seconds", "tokens_per_second",
        "tokens_per_second_per_gpu", "model_flops_utilization", "time_to_first_token_seconds",
        "inter_token_latency_seconds"}) {
    EXPECT_TRUE(answer.at(key).is_number()) << key;
  }
  EXPECT_TRUE(answer.at("fits").is_boolean());
  EXPECT_TRUE(answer.at("extrapolated").is_boolean());
  EXPECT_TRUE(answer.at("binding").is_array());
  EXPECT_TRUE(answer.at("warnings").is_array());
  EXPECT_TRUE(answer.at("parameter_set").is_string());
}

// The last event of a Chrome trace ends at the predicted time.
TEST_F(Predict, TraceEndsAtThePredictedTime) {
  const std::string file = WriteFile("trace.json", "");
  const Outcome outcome =
      Run({"predict", kScenarios + kTraining, "--trace", file, "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream in(file);
  const json trace = json::parse(in);
  double end = 0;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  const double total = json::parse(outcome.out).at("total_seconds").get<double>();
  EXPECT_NEAR(end, 1e6 * total, 1e-3 * total);
}

TEST_F(Predict, TwiceTheSameQuestionGivesTheSameBytes) {
  const std::vector<std::string> arguments = {"predict", kScenarios + kTraining, "--output",
                                              "json"};
  EXPECT_EQ(Run(arguments).out, Run(arguments).out);
}

TEST_F(Predict, StdinIsAFileToo) {
  const Outcome from_file = Run({"predict", kScenarios + kTraining, "--output", "json"});
  const Outcome from_stdin = Run({"predict", "-", "--output", "json"},
                                 test_support::ReadWholeFile(kScenarios + kTraining));
  EXPECT_EQ(from_stdin.exit_code, 0) << from_stdin.err;
  EXPECT_EQ(from_stdin.out, from_file.out);
}

TEST_F(Predict, SetOverridesTheFile) {
  const Outcome outcome = Run({"predict", kScenarios + kTraining, "--set", "gpu_count=128", "--set",
                               "plan.data_parallel_size=8", "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["gpu_count"], 128);
  EXPECT_EQ(answer["plan"]["data_parallel_size"], 8);
}

TEST_F(Predict, TextSaysTimeMemoryAndBreakdown) {
  const Outcome outcome = Run({"predict", kScenarios + kTraining});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words : {"step time", "90 % interval", "tokens/s", "memory per GPU", "fits",
                            "where the time goes", "limited by", "parameter set"}) {
    EXPECT_THAT(outcome.out, HasSubstr(words));
  }
}

TEST_F(Predict, WhatDoesNotFitIsAnsweredAndExitsWithSix) {
  const Outcome outcome = Run({"predict", kScenarios + kTooLarge, "--output", "json"});
  EXPECT_EQ(outcome.exit_code, 6);
  const json answer = json::parse(outcome.out);
  EXPECT_FALSE(answer["fits"]);
  const int64_t shortfall_bytes = answer["shortfall_bytes"];
  EXPECT_GT(shortfall_bytes, 0);
  EXPECT_THAT(outcome.err, HasSubstr("shortfall of " + std::to_string(shortfall_bytes) + " bytes"));
}

TEST_F(Predict, WrongLayoutListsEveryViolation) {
  // 64 heads and 8 KV heads: 7 divides neither; 7 x 3 x 4 is not 64; ZeRO ends at 3.
  const Outcome outcome =
      Run({"predict", kScenarios + kTraining, "--set", "plan.tensor_parallel_size=7", "--set",
           "plan.pipeline_parallel_size=3", "--set", "plan.zero_stage=9"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, IsEmpty());
  for (const char* field : {"plan.tensor_parallel_size", "gpu_count", "plan.zero_stage"}) {
    EXPECT_THAT(outcome.err, HasSubstr(field));
  }
  EXPECT_THAT(outcome.err, HasSubstr("hint:"));
}

TEST_F(Predict, UnknownNamesSuggestTheNearest) {
  const Outcome model =
      Run({"predict", Changed(kTraining, "model: llama-3.1-70b", "model: lama-3.1-70b")});
  EXPECT_EQ(model.exit_code, 4) << model.err;
  EXPECT_THAT(model.err, HasSubstr("llama-3.1-70b"));
  const Outcome cluster =
      Run({"predict", Changed(kTraining, "cluster: dgx-h100", "cluster: dgx-h10")});
  EXPECT_EQ(cluster.exit_code, 4) << cluster.err;
  EXPECT_THAT(cluster.err, HasSubstr("dgx-h100"));
}

TEST_F(Predict, MissingVocabularyIsNamed) {
  const Outcome outcome = Run({"predict", Changed(kTraining, "model: llama-3.1-70b",
                                                  "model: {name: mine, hidden_size: 8192, "
                                                  "layer_count: 80, attention_head_count: 64, "
                                                  "kv_head_count: 8, head_size: 128, "
                                                  "ffn_size: 28672, gated_ffn: true}")});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("vocabulary_size"));
}

TEST_F(Predict, UnreadableInputIsRefusedWithoutACrash) {
  struct Case {
    std::string name;
    std::string text;
  };
  for (const Case& bad :
       {Case{"empty", ""}, Case{"blank", "\n\n"}, Case{"scalar", "42"}, Case{"list", "- 1\n- 2\n"},
        Case{"broken", "model: [unclosed"}, Case{"binary", std::string("\0\xff\xfe\x01", 4)},
        Case{"deep", std::string(100000, '[')}, Case{"anchor", "a: &a [*a]"},
        Case{"unknown field", "modell: x\n"}}) {
    const Outcome outcome = Run({"predict", WriteFile("bad.yaml", bad.text)});
    EXPECT_EQ(outcome.exit_code, 3) << bad.name << ": " << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty()) << bad.name;
    EXPECT_THAT(outcome.err, HasSubstr("sextant: error:")) << bad.name;
  }
}

TEST_F(Predict, NumbersOutOfRangeAreRefusedByField) {
  for (const char* value :
       {"99999999999999999999", "-1", "0", "1.5", "nan", ".inf", "abc", "\"\""}) {
    const Outcome outcome = Run({"predict", kScenarios + kTraining, "--set",
                                 std::string("training.sequence_length=") + value});
    EXPECT_EQ(outcome.exit_code, 3) << value << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("sequence_length")) << value;
  }
}

TEST_F(Predict, HugeButLegalSizesGiveFiniteNumbersOrARefusal) {
  const Outcome outcome = Run({"predict", kScenarios + kTraining, "--set",
                               "training.sequence_length=2147483648", "--output", "json"});
  EXPECT_THAT(outcome.exit_code, testing::AnyOf(3, 6)) << outcome.err;
  if (outcome.exit_code == 6) {
    EXPECT_TRUE(json::parse(outcome.out)["total_seconds"].is_number());
  }
}

TEST_F(Predict, FilesThatAreNoFiles) {
  EXPECT_EQ(Run({"predict", folder_.string()}).exit_code, 3);
  const Outcome missing = Run({"predict", "/no/such/job.yaml"});
  EXPECT_EQ(missing.exit_code, 4);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/job.yaml"));
}

TEST_F(Predict, UnknownParameterSetIsNotFound) {
  const Outcome outcome = Run({"predict", kScenarios + kTraining, "--parameters", "no-such-set"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no-such-set"));
}

TEST_F(Predict, UncalibratedIsAlwaysKnownByFlagAndByEnvironment) {
  const Outcome flag =
      Run({"predict", kScenarios + kTraining, "--parameters", "uncalibrated", "--output", "json"});
  ASSERT_EQ(flag.exit_code, 0) << flag.err;
  const Outcome environment = Run({"predict", kScenarios + kTraining, "--output", "json"}, "",
                                  {{"SEXTANT_PARAMETERS", "uncalibrated"}});
  EXPECT_EQ(environment.out, flag.out);
}

TEST_F(Predict, QuietSilencesWarningsNotErrors) {
  EXPECT_THAT(Run({"predict", kScenarios + kTraining, "--quiet"}).err, IsEmpty());
  EXPECT_THAT(Run({"predict", "/no/such/job.yaml", "--quiet"}).err, Not(IsEmpty()));
}

class Network : public Sextant {};

TEST_F(Network, TimesCasesInAllFormats) {
  const std::string file = kNetworkCases + "ring16_ar_64k.json";
  const Outcome as_json = Run({"network", file, "--output", "json"});
  ASSERT_EQ(as_json.exit_code, 0) << as_json.err;
  const json timed = json::parse(as_json.out)["cases"][0];
  for (const char* key :
       {"id", "fidelity", "total_seconds", "jobs", "limiting_link", "status", "reason"}) {
    EXPECT_TRUE(timed.contains(key)) << key;
  }
  EXPECT_EQ(timed["id"], "ring16_ar_64k");
  EXPECT_EQ(timed["status"], "ok");
  EXPECT_EQ(timed["jobs"][0]["total_seconds"], timed["total_seconds"]);

  const Outcome as_csv = Run({"network", file, "--output", "csv"});
  std::stringstream lines(as_csv.out);
  std::string header;
  std::string row;
  std::getline(lines, header);
  std::getline(lines, row);
  EXPECT_EQ(header, "case_id,seconds");
  EXPECT_EQ(std::stod(row.substr(row.find(',') + 1)), timed["total_seconds"].get<double>());
}

TEST_F(Network, OneBadFileDoesNotLoseTheOthers) {
  const Outcome outcome = Run({"network", kNetworkCases + "ring16_ar_64k.json",
                               WriteFile("bad.json", "{}"), "--output", "csv"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("ring16_ar_64k,"));
  EXPECT_THAT(outcome.err, HasSubstr("bad.json"));
}

// Tables of kernels as the contract writes them.
constexpr char kOperatorHeader[] =
    "id,suite,role,quality,source,accelerator,software,family,op,dtype,m,k,n,batch,heads,kv_heads,"
    "head_dim,seq_q,seq_kv,causal,kv_dtype,experts,topk,moe_tp,moe_ep,expert_distribution,groups,"
    "layout,latency_us,notes\n";

std::string GemmRow(const std::string& id, const std::string& m, double latency_us) {
  return id + ",suite-a,fit,,a test,h100-sxm5-80gb,cuBLAS,gemm,gemm,bf16," + m +
         ",4096,4096,,,,,,,,,,,,,,,," + std::to_string(latency_us) + ",\n";
}

// About what an H100 takes: 2 m 4096^2 flop at 600 Tflop/s, and 5 us.
std::string GemmTable() {
  std::string table = kOperatorHeader;
  for (int64_t i = 0; i < 16; ++i) {
    const int64_t m = (int64_t{128} << (i % 8)) + 64 * i;
    table += GemmRow("row-" + std::to_string(i), std::to_string(m),
                     static_cast<double>(m) * 2 * 4096 * 4096 / 600e6 + 5);
  }
  return table;
}

class Validate : public Sextant {};

TEST_F(Validate, RowsAndGroupsHaveEveryKey) {
  const Outcome outcome = Run({"validate", WriteFile("gemm.csv", GemmTable()), "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_TRUE(report.at("parameter_set").is_string());
  ASSERT_EQ(report.at("rows").size(), 16);
  for (const char* key :
       {"id", "kind", "metric", "suite", "family", "source", "status", "reason", "quality",
        "measured_seconds", "predicted_seconds", "error_percent", "interval_low_seconds",
        "interval_high_seconds", "extrapolated", "warnings"}) {
    EXPECT_TRUE(report["rows"][0].contains(key)) << key;
  }
  EXPECT_EQ(report["rows"][0]["id"], "row-0");
  EXPECT_EQ(report["rows"][0]["status"], "ok");
  for (const char* key : {"suite", "accelerator", "kind", "count", "refused", "skipped", "suspect",
                          "mape_percent", "median_ape_percent", "p90_ape_percent", "bias_percent",
                          "interval_coverage_percent", "interval_width_percent"}) {
    EXPECT_TRUE(report.at("groups")[0].contains(key)) << key;
  }
  EXPECT_EQ(report["groups"][0]["count"], 16);
}

TEST_F(Validate, RefusedRowsAreAnswersAndLeaveTheExitCode) {
  const std::string table = GemmTable() + GemmRow("without-m", "", 10);
  const Outcome outcome = Run({"validate", WriteFile("gemm.csv", table), "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json refused = json::parse(outcome.out)["rows"].back();
  EXPECT_EQ(refused["id"], "without-m");
  EXPECT_EQ(refused["status"], "refused");
  EXPECT_TRUE(refused["predicted_seconds"].is_null());
  EXPECT_TRUE(refused["reason"].is_string());
}

TEST_F(Validate, ListedIdsAreTheOnlyRows) {
  const std::string ids = WriteFile("ids.csv", "id,why\nrow-3,published\nrow-99,missing\n");
  const Outcome outcome =
      Run({"validate", WriteFile("gemm.csv", GemmTable()), "--ids", ids, "--rows"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("row-3"), Not(HasSubstr("row-4")), HasSubstr("MAPE")));
  EXPECT_THAT(outcome.err, HasSubstr("row-99"));
}

TEST_F(Validate, UnreadableFilesFail) {
  const Outcome columns = Run({"validate", WriteFile("x.csv", "id,suite\n1,a\n")});
  EXPECT_EQ(columns.exit_code, 3);
  EXPECT_THAT(columns.err, HasSubstr("x.csv"));
  EXPECT_EQ(Run({"validate", WriteFile("empty.csv", "")}).exit_code, 3);
  EXPECT_EQ(Run({"validate", folder_.string()}).exit_code, 3);
  EXPECT_EQ(Run({"validate", "/no/such/file.csv"}).exit_code, 4);
  const std::string binary = WriteFile("binary.csv", std::string("\0\xff,\"\x01", 5));
  EXPECT_EQ(Run({"validate", binary}).exit_code, 3);
}

class Operators : public Sextant {};

TEST_F(Operators, EveryFormatAnswersEveryRow) {
  const std::string table = WriteFile("gemm.csv", GemmTable());
  const Outcome as_json = Run({"operators", table, "--output", "json"});
  ASSERT_EQ(as_json.exit_code, 0) << as_json.err;
  const json answers = json::parse(as_json.out)["operators"];
  ASSERT_EQ(answers.size(), 16);
  for (const json& answer : answers) {
    EXPECT_GE(answer["predicted_seconds"], answer["roofline_seconds"]) << answer["id"];
  }
  const Outcome as_csv = Run({"operators", table, "--output", "csv"});
  EXPECT_EQ(std::count(as_csv.out.begin(), as_csv.out.end(), '\n'), 17);
  EXPECT_THAT(Run({"operators", table}).out, HasSubstr("row-15"));
}

TEST_F(Operators, AcceleratorOptionHoldsForEveryRow) {
  const std::string table = WriteFile("gemm.csv", GemmTable());
  const Outcome outcome =
      Run({"operators", table, "--accelerator", "a100-sxm4-80gb", "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json answers = json::parse(outcome.out)["operators"];
  for (const json& answer : answers) {
    EXPECT_EQ(answer["accelerator"], "a100-sxm4-80gb");
  }
  const Outcome unknown = Run({"operators", table, "--accelerator", "a10-sxm4-80gb"});
  EXPECT_EQ(unknown.exit_code, 4);
  EXPECT_THAT(unknown.err, HasSubstr("a100-sxm4-80gb"));
}

// A table of nccl-tests without its list of devices, twice: the second copy adds nothing.
TEST_F(Validate, LogsOfOtherToolsAreMeasurementsOnce) {
  const std::string log =
      "0: #  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "0:    0  0  half  sum  -1  12.1  0.00  0.00  0  12.1  0.00  0.00  0\n"
      "0:    22020096  11010048  half  sum  -1  147.7  149.08  260.89  0  146.4  150.46  263.30  "
      "0\n";
  const std::string first = WriteFile("first.log", log);
  const std::string second = WriteFile("second.log", log);
  const Outcome lacking = Run({"validate", first, "--output", "json"});
  ASSERT_EQ(lacking.exit_code, 0) << lacking.err;
  EXPECT_THAT(lacking.err, HasSubstr("--accelerator"));
  EXPECT_THAT(json::parse(lacking.out)["rows"], IsEmpty());

  WriteFile("second.log.context", "accelerator: h100-sxm5-80gb\nnodes: 1\n");
  const Outcome outcome = Run({"validate", first, second, "--accelerator", "h100-sxm5-80gb",
                               "--nodes", "1", "--gpus", "8", "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("moves no bytes"), HasSubstr("its id is taken")));
  const json report = json::parse(outcome.out);
  ASSERT_EQ(report["rows"].size(), 1);
  EXPECT_EQ(report["rows"][0]["kind"], "collective");
  EXPECT_DOUBLE_EQ(report["rows"][0]["measured_seconds"].get<double>(), 147.7e-6);

  WriteFile("second.log.context", "accelerator: h100-sxm5-80gb\nspeed: 3\n");
  EXPECT_EQ(Run({"validate", second}).exit_code, 3);
}

class Collectives : public Sextant {};

TEST_F(Collectives, SharingAndFaultsShowInEveryForm) {
  const std::string file = kScenarios + "collectives-64xh100.yaml";
  const Outcome outcome = Run({"collectives", file, "--output", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json answer = json::parse(outcome.out);
  const auto& [tensor, data, experts] =
      std::tie(answer["collectives"][0], answer["collectives"][1], answer["collectives"][2]);
  EXPECT_EQ(tensor["slowdown"].get<double>(), 1);  // NVLink only: nobody shares it
  EXPECT_GT(data["slowdown"].get<double>(), 1.9);  // rail 3 has half of its bandwidth
  EXPECT_GT(experts["slowdown"].get<double>(), 1.5);
  EXPECT_THAT(answer["limiting_link"].get<std::string>(), HasSubstr("rail3"));
  EXPECT_THAT(Run({"collectives", file, "--output", "csv"}).out, HasSubstr("\ntensor,all_reduce,"));
  EXPECT_THAT(Run({"collectives", file}).out, HasSubstr("experts"));

  const std::string question =
      "cluster: dgx-h100\ngpu_count: 16\ncollectives: [{kind: all_gather, bytes: 1e6}]\n";
  EXPECT_EQ(Run({"collectives", WriteFile("cut.yaml", question + "derated_links: [{links: ep9, "
                                                                 "bandwidth_fraction: 0}]\n")})
                .exit_code,
            6);
  EXPECT_EQ(Run({"collectives", WriteFile("field.yaml", question + "gpus: 3\n")}).exit_code, 3);
  EXPECT_EQ(Run({"collectives", "nowhere.yaml"}).exit_code, 4);
}

class Calibrate : public Sextant {};

TEST_F(Calibrate, WritesASetThatPredictUses) {
  const std::string fitted = (folder_ / "fitted.yaml").string();
  const Outcome outcome = Run({"calibrate", WriteFile("gemm.csv", GemmTable()),
                               "--output-parameters", fitted, "--initial", "uncalibrated"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome shown = Run({"parameters", "show", fitted, "--output", "json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const json set = json::parse(shown.out);
  EXPECT_TRUE(set["accelerators"].contains("h100-sxm5-80gb"));
  const Outcome predicted =
      Run({"predict", kScenarios + kTraining, "--parameters", fitted, "--output", "json"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(json::parse(predicted.out)["parameter_set"], set["version"]);
}

TEST_F(Calibrate, WithoutUsableRowsFailsAndWritesNothing) {
  const std::string fitted = (folder_ / "fitted.yaml").string();
  const Outcome outcome = Run({"calibrate", WriteFile("none.csv", kOperatorHeader),
                               "--output-parameters", fitted, "--initial", "uncalibrated"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_FALSE(fs::exists(fitted));
}

class Catalog : public Sextant {};

TEST_F(Catalog, ListsEveryKindAndShowsEveryEntry) {
  const Outcome list = Run({"catalog", "list", "--output", "json"});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  const json names = json::parse(list.out);
  for (const char* kind : {"accelerators", "models", "clusters"}) {
    ASSERT_FALSE(names.at(kind).empty()) << kind;
    for (const std::string name : names[kind]) {
      const Outcome entry = Run({"catalog", "show", kind, name, "--output", "json"});
      ASSERT_EQ(entry.exit_code, 0) << name << entry.err;
      EXPECT_EQ(json::parse(entry.out)["name"], name);
    }
  }
}

TEST_F(Catalog, UnknownAcceleratorSuggestsTheNearest) {
  const Outcome outcome = Run({"catalog", "show", "accelerators", "h10-sxm5-80gb"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("h100-sxm5-80gb"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

}  // namespace
}  // namespace sextant::cli
