// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/text.h"

#include <string>
#include <vector>

#include "calibration/ingest/detect.h"
#include "calibration/ingest/json.h"
#include "calibration/ingest/test_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

using testing::ElementsAre;

std::vector<std::string> Lines(absl::string_view text) {
  std::vector<std::string> lines;
  LineReader reader(text);
  while (reader.Next()) lines.emplace_back(reader.line());
  return lines;
}

TEST(Lines, MarksEscapesLabelsAndEveryLineBreakGo) {
  EXPECT_THAT(Lines("\xEF\xBB\xBF"
                    "a\r\nb\rc\n\n3: d\n[1,12]<stdout>:e"),
              ElementsAre("a", "b", "c", "", "d", "e"));
  EXPECT_THAT(Lines("\x1b[36mstep: 1\x1b[0m \x1b]0;title\x07x\x1b"), ElementsAre("step: 1 x"));
  LineReader reader("a\rb\nc");
  while (reader.Next()) {
  }
  EXPECT_EQ(reader.number(), 2);
}

TEST(Numbers, OnlyFiniteNumbersAndRightGroupsAreNumbers) {
  EXPECT_EQ(ParseNumber(" 6,785 "), 6785);
  EXPECT_EQ(ParseNumber("1,234,567.5"), 1234567.5);
  EXPECT_EQ(ParseNumber("-1.5e-3"), -1.5e-3);
  for (const char* text : {"", "NaN", "nan", "inf", "-Infinity", "N/A", "1,23", "12,3456", ",1",
                           "1e999", "0x10", "1.2.3", "--1"}) {
    EXPECT_FALSE(ParseNumber(text).has_value()) << text;
  }
  EXPECT_EQ(ParseSuffixedNumber("4.71K"), 4710);
  EXPECT_EQ(ParseSuffixedNumber("2.13T"), 2.13e12);
  EXPECT_FALSE(ParseSuffixedNumber("K").has_value());
  EXPECT_EQ(ParseCount("10,327,352,338"), 10327352338);
  EXPECT_FALSE(ParseCount("-1").has_value());
  EXPECT_FALSE(ParseCount("99999999999999999999").has_value());
  absl::string_view rest;
  EXPECT_EQ(LeadingNumber(" 68.57GiB(86.69%)", &rest), 68.57);
  EXPECT_EQ(rest, "GiB(86.69%)");
}

TEST(TimeStamps, TheFirstStampOfALineIsFound) {
  EXPECT_EQ(FindTimeStamp("[2025-12-19 10:49:15] x"), "2025-12-19 10:49:15");
  EXPECT_EQ(FindTimeStamp("2025-12-19T10:49:15.123Z"), "2025-12-19 10:49:15");
  EXPECT_EQ(FindTimeStamp("08/31/2024 14:37:31 [INFO"), "2024-08-31 14:37:31");
  EXPECT_EQ(FindTimeStamp("9999-99-99 99:99:99"), "");
  EXPECT_EQ(TimeStampOf(1744812036.337), "2025-04-16 14:00:36");
  EXPECT_EQ(TimeStampOf(1e30), "");
}

TEST(Json, PythonsNumbersAreAbsentAndTextNumbersCount) {
  JsonReader reader(R"({"a": NaN, "b": -Infinity, "c": 1e999, "d": "1,000", "e": null, "f": 2})");
  const JsonValue value = reader.Read();
  ASSERT_TRUE(reader.ok());
  for (const char* name : {"a", "b", "c", "e"})
    EXPECT_FALSE(value.Number(name).has_value()) << name;
  EXPECT_EQ(value.Number("d"), 1000);
  EXPECT_EQ(value.Number("f"), 2);
}

TEST(Json, DepthIsBoundedAndNeedsNoStack) {
  const std::string deep(1'000'000, '[');
  JsonReader read(deep);
  read.Read();
  EXPECT_FALSE(read.ok());
  JsonReader skip(deep);
  skip.Skip();
  EXPECT_TRUE(skip.truncated());
}

TEST(Json, LongArraysAreCountedButNotKept) {
  std::string text = "{\"itls\": [0";
  for (int i = 0; i < 150'000; ++i) text += ",1";
  text += "], \"mean\": 3}";
  JsonReader reader(text);
  const JsonValue value = reader.Read();
  ASSERT_TRUE(reader.ok()) << reader.error();
  EXPECT_EQ(value.Find("itls")->item_count, 150'001u);
  EXPECT_EQ(value.Find("itls")->items.size(), JsonReader::kArrayLimit);
  EXPECT_EQ(value.Number("mean"), 3);
}

TEST(Detector, ContentTellsTheFormat) {
  EXPECT_EQ(DetectFormat("id,suite,role,quality\n"), Format::kMeasurementTable);
  EXPECT_EQ(DetectFormat("noise\n  8 2 float sum -1 12.9 0.00 0.00 0 12.8 0.0 0.0 0\n"),
            Format::kNcclTests);
  EXPECT_EQ(DetectFormat("{\"schemaVersion\": 1, \"traceEvents\": ["), Format::kKineto);
  EXPECT_EQ(DetectFormat("DLLL {\"step\": 1}"), Format::kTrainingLog);
  EXPECT_EQ(DetectFormat("Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n"),
            Format::kNsys);
  EXPECT_EQ(DetectFormat("{\"mean_ttft_ms\": 1, \"completed\": 2}"), Format::kServing);
  for (const char* text : {"", "hello\nworld\n", "{\"a\": 1}", "[1, 2]", "\x1f\x8b", "{", "[[["}) {
    EXPECT_EQ(DetectFormat(text), Format::kUnknown) << text;
  }
}

TEST(DetectorSamples, EveryFileIsRecognised) {
  SEXTANT_NEEDS_SAMPLES();
  const std::vector<std::pair<const char*, Format>> files = {
      {"nccl-tests/a100x8_nccl_alltoall.log", Format::kNcclTests},
      {"nccl-tests/allreduce_mpirun_tagged.log", Format::kNcclTests},
      {"nccl-tests/h100x16_2nodes_allgather_tcpxo_nohash.log", Format::kNcclTests},
      {"nccl-tests/h100x8_allreduce_pmix_noise.log", Format::kNcclTests},
      {"kineto/deepseek_train_ep64_trim.json", Format::kKineto},
      {"training-logs/megatron_bridge_llama3_8b_glued.log", Format::kTrainingLog},
      {"training-logs/megatron_deepspeed_2nodes_prefixed.log", Format::kTrainingLog},
      {"training-logs/megatron_gpt2_tp4_pp16_2021.out", Format::kTrainingLog},
      {"training-logs/mlperf_llama31_405b_mllog.txt", Format::kTrainingLog},
      {"training-logs/nanotron_tiny_llama_suffixes.log", Format::kTrainingLog},
      {"training-logs/nemo_dllogger.json", Format::kTrainingLog},
      {"training-logs/torchtitan_ansi_colours_4nodes.log", Format::kTrainingLog},
      {"serving/inference_perf_stage0.json", Format::kServing},
      {"serving/sglang_bench_serving_stdout.txt", Format::kServing},
      {"serving/vllm_bench_serve_rate30.json", Format::kServing},
      {"serving/vllm_per_request.jsonl", Format::kServing},
      {"nsys/llama31_8b_q4_prefill_476tok_kern_sum.csv", Format::kNsys},
      {"nsys/vllm_h100_nsys_stats_table.txt", Format::kNsys},
      {"slurm/sinfo_node_state_list.txt", Format::kUnknown},
      {"prometheus/dcgm_t4_with_notes.prom", Format::kUnknown},
      {"config/deepseek-v3.config.json", Format::kUnknown},
      {"chakra/pytorch_et_1.0.2.json", Format::kUnknown}};
  for (const auto& [file, format] : files) {
    EXPECT_EQ(FormatName(DetectFormat(ReadSample(file))), FormatName(format)) << file;
  }
}

}  // namespace
}  // namespace sextant::ingest
