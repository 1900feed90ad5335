// SPDX-License-Identifier: Apache-2.0
#include "common/wire/yaml.h"

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"
#include "common/wire/convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::wire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(absl::string_view text) {
  types::v1::Job job;
  return std::string(ParseYaml(text, "job.yaml", &job).message());
}

TEST(ParseYaml, ReadsTheJobFileOfTheContract) {
  types::v1::Job job;
  const absl::Status status = ParseYaml(
      "model: {hidden_size: 4096}\n"
      "gpu_count: 64\n"
      "precision: bf16\n"
      "training:\n"
      "  global_batch_size: 512\n"
      "  sequence_length: 8192\n"
      "  optimizer: adam\n"
      "plan:\n"
      "  tensor_parallel_size: 8\n"
      "  sequence_parallel: true\n"
      "  schedule: 1f1b\n"
      "framework: megatron-lm\n"
      "faults: []\n",
      "job.yaml", &job);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(job.model().hidden_size(), 4096);
  EXPECT_EQ(job.gpu_count(), 64);
  EXPECT_EQ(job.training().sequence_length(), 8192);
  EXPECT_TRUE(job.plan().sequence_parallel());
  EXPECT_EQ(job.plan().schedule(), "1f1b");
}

TEST(ParseYaml, ReadsJsonAndCamelCase) {
  types::v1::Job job;
  ASSERT_TRUE(ParseYaml(R"({"gpuCount": "64", "plan": {"zero_stage": 1}})", "job.json", &job).ok());
  EXPECT_EQ(job.gpu_count(), 64);
  EXPECT_EQ(job.plan().zero_stage(), 1);
}

TEST(ParseYaml, EveryFaultIsReportedWithFileLineAndPath) {
  const std::string message = MessageOf(
      "plan:\n"
      "  tensor_paralel_size: 8\n"
      "  micro_batch_size: 1.5\n"
      "  sequence_parallel: maybe\n"
      "faults:\n"
      "  - {scope: node, bandwidth_fraction: .nan}\n"
      "training: 3\n");
  EXPECT_THAT(message, HasSubstr("plan.tensor_paralel_size: is not a known field; did you mean "
                                 "tensor_parallel_size"));
  EXPECT_THAT(message, HasSubstr("(job.yaml line 2)"));
  EXPECT_THAT(message, HasSubstr("plan.micro_batch_size: is \"1.5\" but must be a whole number"));
  EXPECT_THAT(message, HasSubstr("plan.sequence_parallel: is \"maybe\" but must be true or false"));
  EXPECT_THAT(message, HasSubstr("faults[0].bandwidth_fraction: is \".nan\""));
  EXPECT_THAT(message, HasSubstr("training: is \"3\" but must be a mapping"));
}

TEST(ParseYaml, DuplicateKeysAreRefusedInEitherSpelling) {
  EXPECT_THAT(MessageOf("gpu_count: 1\ngpu_count: 2\n"), HasSubstr("gpu_count: is given twice"));
  EXPECT_THAT(MessageOf("gpu_count: 1\ngpuCount: 2\n"), HasSubstr("is given twice"));
}

TEST(ParseYaml, TwoWorkloadsExcludeEachOther) {
  EXPECT_THAT(MessageOf("training: {sequence_length: 1}\ninference: {prompt_tokens: 1}\n"),
              HasSubstr("inference: excludes training"));
}

TEST(ParseYaml, NumbersThatAreNotFiniteAreRefused) {
  for (const char* number : {"nan", "inf", "-inf", ".inf", ".nan", "1e999", "Infinity"}) {
    types::v1::Accelerator accelerator;
    EXPECT_FALSE(ParseYaml(absl::StrCat("power_watts: ", number), "a.yaml", &accelerator).ok())
        << number;
  }
}

TEST(ParseYaml, WholeNumbersMayHaveAnExponentButNoFraction) {
  types::v1::Accelerator accelerator;
  ASSERT_TRUE(ParseYaml("hbm_bytes: 8e10", "a.yaml", &accelerator).ok());
  EXPECT_EQ(accelerator.hbm_bytes(), 80'000'000'000);
  EXPECT_FALSE(ParseYaml("hbm_bytes: 1e30", "a.yaml", &accelerator).ok());
  EXPECT_FALSE(ParseYaml("hbm_bytes: 99999999999999999999", "a.yaml", &accelerator).ok());
}

TEST(ParseYaml, GarbageIsAnErrorWithAPlaceNeverACrash) {
  EXPECT_THAT(MessageOf("plan: {a: [1, 2\n"), AllOf(HasSubstr("job.yaml"), HasSubstr("line")));
  EXPECT_THAT(MessageOf("- 1\n- 2\n"), HasSubstr("must be a mapping"));
  EXPECT_THAT(MessageOf("a: 1\n---\nb: 2\n"), HasSubstr("several documents"));
  EXPECT_THAT(MessageOf(absl::string_view("gpu_count: 1\0", 13)), HasSubstr("zero byte"));
  EXPECT_NE(MessageOf(std::string(200'000, '[')), "");
  EXPECT_NE(MessageOf(std::string(200'000, '{')), "");
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "{plan: ";
  EXPECT_NE(MessageOf(deep), "");
  EXPECT_NE(MessageOf(std::string(9 << 20, 'a')), "");
  EXPECT_NE(MessageOf("&a plan: *b\n"), "");
  EXPECT_NE(MessageOf("? {x: y}\n: 3\n"), "");
}

TEST(ParseYaml, RandomBytesNeverCrash) {
  const std::string alphabet = "ab:{}[],-&*!|>'\"%@`#?\n \t01.\\~plan";
  std::mt19937 engine(4);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto i = engine() % 60; i > 0; --i) text += alphabet[engine() % alphabet.size()];
    types::v1::Job job;
    const absl::Status status = ParseYaml(text, "fuzz", &job);
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ParseYaml, AnEmptyDocumentAndNullsLeaveTheMessageAsItWas) {
  types::v1::Job job;
  job.set_gpu_count(3);
  EXPECT_TRUE(ParseYaml("", "job.yaml", &job).ok());
  EXPECT_TRUE(ParseYaml("gpu_count: null\n", "job.yaml", &job).ok());
  EXPECT_EQ(job.gpu_count(), 3);
}

TEST(PrintYaml, ReadsBackToTheSameParameterSetAndTheSameBytes) {
  std::mt19937_64 engine(1);
  for (int round = 0; round < 100; ++round) {
    parameters::AcceleratorParameters a;
    for (int i = 0; i < 20; ++i) {
      const double value = std::ldexp(std::uniform_real_distribution<>(0.5, 1)(engine),
                                      static_cast<int>(engine() % 80) - 40);
      a.shared[absl::StrCat("gemm.", i)] = {value, i % 2 ? std::optional(value / 7) : std::nullopt};
      a.profiles["vllm-0.6 (x): \"y\""][absl::StrCat("k", i)] = {-value, std::nullopt};
    }
    a.domain.push_back({"gemm", "m", 1, 65536});
    const parameters::ParameterSet set({"fit: a # b", {"00ff", "true"}, {"file.csv: 12 rows", ""}},
                                       {{"a100-sxm4-80gb", a}});
    const std::string text = PrintYaml(ToProto(set));
    types::v1::ParameterSet proto;
    const absl::Status status = ParseYaml(text, "set.yaml", &proto);
    ASSERT_TRUE(status.ok()) << status.message() << "\n" << text;
    const auto back = FromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->version(), set.version());
    EXPECT_EQ(back->provenance(), set.provenance());
    EXPECT_EQ(PrintYaml(ToProto(*back)), text);
  }
}

TEST(PrintYaml, WritesShortNumbersInFieldOrder) {
  types::v1::Fault fault;
  fault.set_scope("node");
  fault.set_bandwidth_fraction(0.1);
  EXPECT_EQ(PrintYaml(fault), "scope: node\nbandwidth_fraction: 0.1\n");
}

}  // namespace
}  // namespace sextant::wire
