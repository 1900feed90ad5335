// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/job_reader.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "common/base/violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// The job file that the contract shows.
constexpr char kJob[] =
    "model: llama-3.1-70b\n"
    "cluster: dgx-h100\n"
    "gpu_count: 64\n"
    "precision: bf16\n"
    "training:\n"
    "  global_batch_size: 512\n"
    "  sequence_length: 8192\n"
    "  optimizer: adam\n"
    "plan:\n"
    "  tensor_parallel_size: 8\n"
    "  sequence_parallel: true\n"
    "  pipeline_parallel_size: 2\n"
    "  virtual_pipeline_size: 1\n"
    "  context_parallel_size: 1\n"
    "  expert_parallel_size: 1\n"
    "  data_parallel_size: 4\n"
    "  micro_batch_size: 1\n"
    "  zero_stage: 1\n"
    "  schedule: 1f1b\n"
    "  recompute: selective\n"
    "framework: megatron-lm\n"
    "faults: []\n";

const Catalog& Shipped() {
  static const Catalog catalog = *Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  return catalog;
}

absl::StatusOr<workload::Job> Read(absl::string_view text,
                                   const std::vector<std::string>& overrides = {}) {
  return ReadJob(text, "job.yaml", overrides, Shipped());
}

std::string MessageOf(absl::string_view text, const std::vector<std::string>& overrides = {}) {
  return std::string(Read(text, overrides).status().message());
}

TEST(ReadJob, ReadsTheJobOfTheContract) {
  const auto job = Read(kJob);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->model.name, "llama-3.1-70b");
  EXPECT_EQ(job->cluster.accelerator.name, "h100-sxm5-80gb");
  EXPECT_EQ(job->gpu_count, 64);
  EXPECT_EQ(job->plan.data_parallel_size, 4);
  EXPECT_EQ(job->plan.recompute, workload::Recompute::kSelective);
  EXPECT_EQ(std::get<workload::TrainingWorkload>(job->workload).global_batch_size, 512);
  EXPECT_EQ(job->framework, "megatron-lm");
}

TEST(ReadJob, OverridesReplaceAddAndReachIntoNamedEntries) {
  const auto job =
      Read(kJob, {"plan.micro_batch_size=2", "model.layer_count=40", "model.name=llama-3.1-70b",
                  "cluster.accelerator=h200", "faults[0].scope=network",
                  "faults[0].bandwidth_fraction=0.5", "framework="});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->plan.micro_batch_size, 2);
  EXPECT_EQ(job->model.layer_count, 40);
  EXPECT_EQ(job->model.hidden_size, 8192);
  EXPECT_EQ(job->cluster.accelerator.name, "h200-sxm5-141gb");
  EXPECT_EQ(job->cluster.gpus_per_node, 8);
  ASSERT_THAT(job->faults, SizeIs(1));
  EXPECT_EQ(job->faults[0].bandwidth_fraction, 0.5);
  EXPECT_EQ(job->framework, "");
}

TEST(ReadJob, BadOverridesAreNamed) {
  EXPECT_THAT(MessageOf(kJob, {"plan.micro_batch_size"}), HasSubstr("must be path=value"));
  EXPECT_THAT(MessageOf(kJob, {"=3"}), HasSubstr("must be path=value"));
  EXPECT_THAT(
      MessageOf(kJob, {"plan.micro_batch=2"}),
      AllOf(HasSubstr("plan.micro_batch: is not a known field"), HasSubstr("micro_batch_size")));
  EXPECT_THAT(MessageOf(kJob, {"faults[5].scope=node"}), HasSubstr("has 0 elements"));
  EXPECT_THAT(MessageOf(kJob, {"gpu_count=[1"}), HasSubstr("not YAML"));
}

TEST(ReadJob, DataParallelSizeAndGpuCountFollowFromEachOther) {
  const std::string rest =
      "model: llama-2-7b\ncluster: dgx-a100\n"
      "training: {global_batch_size: 64, sequence_length: 2048}\n";
  const auto inferred = Read(rest + "gpu_count: 16\nplan: {tensor_parallel_size: 4}\n");
  ASSERT_TRUE(inferred.ok()) << inferred.status().message();
  EXPECT_EQ(inferred->plan.data_parallel_size, 4);
  const auto counted = Read(rest + "plan: {tensor_parallel_size: 4, data_parallel_size: 8}\n");
  ASSERT_TRUE(counted.ok()) << counted.status().message();
  EXPECT_EQ(counted->gpu_count, 32);
}

TEST(ReadJob, EveryViolationIsReportedAtOnce) {
  const absl::Status status =
      Read(
          "model: llama-2-7b\n"
          "cluster: dgx-a100\n"
          "gpu_count: 10\n"
          "precision: fp8\n"
          "training: {global_batch_size: 0, sequence_length: 2048}\n"
          "plan: {tensor_parallel_size: 3, zero_stge: 1, data_parallel_size: 4}\n")
          .status();
  const std::string message(status.message());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(message, HasSubstr("plan.zero_stge: is not a known field"));
  EXPECT_THAT(message, HasSubstr("plan.tensor_parallel_size: is 3 but must divide"));
  EXPECT_THAT(message, HasSubstr("gpu_count: is 10"));
  EXPECT_THAT(message, HasSubstr("training.global_batch_size"));
  EXPECT_THAT(message, HasSubstr("precision: is fp8"));
}

TEST(ReadJob, UnknownNamesAreNotFoundAndNothingElseIsBlamed) {
  const absl::Status status = Read(
                                  "model: lama-2-7b\ncluster: dgx-h10\n"
                                  "inference: {prompt_tokens: 8, output_tokens: 1}\n")
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::ViolationsOf(status), SizeIs(2));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("llama-2-7b"), HasSubstr("dgx-h100")));
  const absl::Status accelerator =
      Read(
          "model: llama-2-7b\ncluster: {name: dgx-h100, accelerator: A40}\n"
          "inference: {prompt_tokens: 8}\n")
          .status();
  EXPECT_EQ(accelerator.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(accelerator.message()), HasSubstr("unknown accelerator \"A40\""));
}

TEST(ReadJob, AnInlineModelWithoutAVocabularyIsRefused) {
  EXPECT_THAT(MessageOf("model: {hidden_size: 4096, layer_count: 2, attention_head_count: 32, "
                        "ffn_size: 8}\ncluster: dgx-a100\ninference: {prompt_tokens: 8}\n"),
              HasSubstr("model.vocabulary_size: is missing"));
}

TEST(ReadJob, InlineModelAndClusterAreRead) {
  const auto job = Read(
      "model: {name: mine, hidden_size: 4096, layer_count: 2, attention_head_count: 32, "
      "ffn_size: 8, vocabulary_size: 100}\n"
      "cluster:\n"
      "  name: cupboard\n"
      "  accelerator: {name: a100, hbm_bytes: 1e9}\n"
      "  gpus_per_node: 2\n"
      "  node_count: 1\n"
      "  node_fabric: pcie\n"
      "  node_bandwidth_bytes_per_second: 32e9\n"
      "inference: {prompt_tokens: 8}\n"
      "precision: fp16\n");
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->model.kv_head_count, 32);
  EXPECT_EQ(job->cluster.name, "cupboard");
  EXPECT_EQ(job->cluster.accelerator.name, "a100-sxm4-80gb");
  EXPECT_EQ(job->cluster.accelerator.hbm_bytes, 1'000'000'000);
  EXPECT_EQ(std::get<workload::InferenceWorkload>(job->workload).kv_cache_precision,
            hardware::Precision::kFp16);
}

TEST(ReadJob, ANumberOfTheInlineHardwareMustBeFinite) {
  EXPECT_THAT(MessageOf("model: llama-2-7b\n"
                        "cluster: {name: dgx-a100, node_bandwidth_bytes_per_second: .inf}\n"
                        "inference: {prompt_tokens: 8}\n"),
              HasSubstr("cluster.node_bandwidth_bytes_per_second: is \".inf\""));
  EXPECT_THAT(MessageOf("model: llama-2-7b\n"
                        "cluster: {name: dgx-a100, node_bandwidth_bytes_per_second: -1}\n"
                        "inference: {prompt_tokens: 8}\n"),
              HasSubstr("cluster.node_bandwidth_bytes_per_second: is -1"));
}

TEST(ReadJob, AModelMayBeAFileBesideTheJob) {
  std::string pattern = ::testing::TempDir() + "/sextant_job_XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  std::ofstream(folder + "/config.json")
      << R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
             "n_positions": 1024, "vocab_size": 50257})";
  const std::string rest = "\ncluster: dgx-a100\ninference: {prompt_tokens: 8}\n";
  for (const char* model : {"config.json", "./config.json"}) {
    const auto job =
        ReadJob(absl::StrCat("model: ", model, rest), folder + "/job.yaml", {}, Shipped());
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_EQ(job->model.layer_count, 12);
  }
  const auto of_folder = Read(absl::StrCat("model: ", folder, rest));
  ASSERT_TRUE(of_folder.ok()) << of_folder.status().message();
  const auto changed = Read(absl::StrCat("model: ", folder, rest), {"model.layer_count=3"});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_EQ(changed->model.layer_count, 3);
  EXPECT_EQ(Read("model: /nonexistent/config.json" + rest).status().code(),
            absl::StatusCode::kNotFound);
  std::filesystem::remove_all(folder);
}

TEST(ReadJob, EmptyAndForeignDocumentsAreErrors) {
  EXPECT_THAT(MessageOf(""), AllOf(HasSubstr("model: is missing"), HasSubstr("cluster: is missing"),
                                   HasSubstr("training: is missing")));
  EXPECT_THAT(MessageOf("- 1\n"), HasSubstr("must be a mapping"));
  EXPECT_THAT(MessageOf("model: [1]\ncluster: {}\ninference: {prompt_tokens: 1}\n"),
              AllOf(HasSubstr("model: is a list"), HasSubstr("cluster.accelerator: is missing")));
  EXPECT_THAT(MessageOf("model: a\nmodel: b\n"), HasSubstr("model: is given twice"));
}

// One byte of a good file changed at random: read or refused, never a crash.
TEST(ReadJob, DamagedFilesNeverCrash) {
  std::mt19937 engine(11);
  const std::string bytes = "{}[]:,&*!#\"'\n -~0x";
  for (int round = 0; round < 2000; ++round) {
    std::string text = kJob;
    for (int i = 0; i < 3; ++i) text[engine() % text.size()] = bytes[engine() % bytes.size()];
    const auto job = Read(text);
    EXPECT_TRUE(job.ok() || !std::string(job.status().message()).empty());
  }
}

}  // namespace
}  // namespace sextant::catalog
