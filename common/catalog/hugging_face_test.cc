// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/hugging_face.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/catalog/catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

workload::ModelArchitecture ModelOf(absl::string_view text) {
  const auto read = ReadHuggingFaceConfig(text, "config.json");
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? read->model : workload::ModelArchitecture();
}

std::string MessageOf(absl::string_view text) {
  return std::string(ReadHuggingFaceConfig(text, "config.json").status().message());
}

// GPT-2 small has 124 439 808 parameters; its configuration has the old names and no tie key.
TEST(HuggingFace, OldNamesAreReadNeverASilentZero) {
  const auto m = ModelOf(R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
                             "n_positions": 1024, "n_inner": null, "vocab_size": 50257})");
  EXPECT_EQ(workload::CountParameters(m).Total(), 124'439'808);
}

TEST(HuggingFace, NullsFallToHiddenOverHeadsAndMultiHead) {
  const auto m = ModelOf(R"({"model_type": "mixtral", "hidden_size": 6144, "num_hidden_layers": 56,
      "num_attention_heads": 48, "num_key_value_heads": null, "head_dim": null,
      "intermediate_size": 16384, "vocab_size": 32000, "num_local_experts": 8,
      "num_experts_per_tok": 2})");
  EXPECT_EQ(m.head_size, 128);
  EXPECT_EQ(m.kv_head_count, 48);
  EXPECT_EQ(m.experts.expert_ffn_size, 16384);
}

TEST(HuggingFace, ADeclaredHeadSizeIsUsed) {
  const auto m = ModelOf(R"({"model_type": "gemma", "hidden_size": 3584, "num_hidden_layers": 4,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
      "intermediate_size": 14336, "vocab_size": 256000})");
  EXPECT_EQ(m.head_size, 256);
  EXPECT_TRUE(m.tied_embeddings);
}

TEST(HuggingFace, MissingVocabularyIsAnErrorThatNamesTheField) {
  const std::string message = MessageOf(R"({"model_type": "llama", "hidden_size": 4096,
      "num_hidden_layers": 32, "num_attention_heads": 32})");
  EXPECT_THAT(message, HasSubstr("vocab_size: is missing"));
  EXPECT_THAT(message, HasSubstr("intermediate_size: is missing"));
}

TEST(HuggingFace, ADenseVariantWithNullExpertsIsDense) {
  const auto m = ModelOf(R"({"model_type": "qwen3", "hidden_size": 5120, "num_hidden_layers": 2,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_experts": null,
      "num_experts_per_tok": 0, "intermediate_size": 25600, "vocab_size": 151936})");
  EXPECT_FALSE(m.IsMixture());
}

TEST(HuggingFace, UnusedWindowIsFullAttention) {
  const std::string rest = R"("hidden_size": 3584, "num_hidden_layers": 28,
      "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
      "vocab_size": 152064})";
  EXPECT_EQ(ModelOf(absl::StrCat(R"({"model_type": "qwen2", "sliding_window": 131072,
                                    "use_sliding_window": false, )",
                                 rest))
                .sliding_window,
            0);
  EXPECT_EQ(ModelOf(absl::StrCat(R"({"model_type": "mistral", "sliding_window": 4096, )", rest))
                .sliding_window,
            4096);
}

// Gemma 3's code has five sliding layers to one that sees all keys; others list their layers.
TEST(HuggingFace, LayersThatSeeAllKeysKeepTheirDistance) {
  const std::string rest = R"("hidden_size": 512, "num_hidden_layers": 4,
      "num_attention_heads": 8, "intermediate_size": 2048, "vocab_size": 1000,
      "sliding_window": 128)";
  const auto listed = ModelOf(absl::StrCat(R"({"model_type": "exaone4", "layer_types":
      ["sliding_attention", "full_attention", "sliding_attention", "full_attention"], )",
                                           rest, "}"));
  EXPECT_EQ(listed.full_attention_interval, 2);
  EXPECT_EQ(listed.FullAttentionLayerCount(), 2);
  EXPECT_EQ(listed.WindowedLayerCount(), 2);
  EXPECT_EQ(
      ModelOf(absl::StrCat(R"({"model_type": "gemma3_text", )", rest, "}")).full_attention_interval,
      6);
  EXPECT_EQ(
      ModelOf(absl::StrCat(R"({"model_type": "gemma2", )", rest, "}")).full_attention_interval, 2);
}

TEST(HuggingFace, WhatCannotBeRepresentedIsRefusedByName) {
  EXPECT_THAT(MessageOf(R"({"model_type": "nemotron_h"})"), HasSubstr("nemotron_h"));
  EXPECT_THAT(MessageOf(R"({"model_type": "clip_text_model"})"), HasSubstr("clip_text_model"));
  EXPECT_THAT(MessageOf("{}"), HasSubstr("model_type: is missing"));
  EXPECT_THAT(MessageOf("[1]"), HasSubstr("must be an object"));
  EXPECT_THAT(MessageOf(R"({"model_type": "qwen3_moe", "hidden_size": "wide"})"),
              HasSubstr("hidden_size: must be a whole number"));
}

TEST(HuggingFace, TextFieldsMayBeNested) {
  const std::string text = R"({"model_type": "llama4", "vision_config": {"hidden_size": 1408},
      "text_config": {"model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 48,
      "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048,
      "intermediate_size": 8192, "num_local_experts": 16, "num_experts_per_tok": 1,
      "interleave_moe_layer_step": 1}})";
  const auto read = ReadHuggingFaceConfig(text, "config.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->model.layer_count, 48);
  EXPECT_EQ(read->model.kv_head_count, 8);
  EXPECT_EQ(read->model.experts.shared_expert_count, 1);
  EXPECT_THAT(read->notes, Not(IsEmpty()));
}

struct Sample {
  const char* file;
  double parameter_count;  // 0: refused
};

// Parameter counts computed from the shapes in the real files, as their collection states them.
TEST(HuggingFaceReference, RealFilesHaveTheirParameterCountsOrAreRefused) {
  const char* folder = std::getenv("SEXTANT_REFERENCE_DIR");
  if (folder == nullptr) {
    GTEST_SKIP() << "SEXTANT_REFERENCE_DIR is not set: no real config.json files to read";
  }
  const Sample samples[] = {
      {"gpt2-finetuned", 124439808},
      {"llama-2-7b", 6738415616},
      {"llama-3.1-405b", 405853388800},
      {"llama-3.1-70b-fp8-modelopt", 70553706496},
      {"mistral-nemo-12b", 12247782400},
      {"mixtral-8x22b", 140620634112},
      {"qwen2.5-7b", 7615616512},
      {"qwen2.5-vl-7b", 7615616512},
      {"qwen3-30b-a3b", 30532122624},
      {"qwen3-32b-fp8", 32762123264},
      {"deepseek-v3", 671026419200},
      {"deepseek-v2-lite", 15706484224},
      {"kimi-k2", 1026408232448},
      {"gpt-oss-120b", 116829156672},
      {"yi-34b", 34388917248},
      {"falcon-7b", 6921720704},
      {"mpt-7b", 6649286656},
      {"opt-13b-neusight", 1315758080},
      {"dbrx-132b", 131596523520},
      {"chatglm2-6b", 6243584000},
      {"exaone-4.0-32b", 32003216384},
      {"clip-vit-l14-text", 0},
      {"nemotron-h-56b", 0},
      {"jamba-4layer", 0},
      {"lfm2.5-vl-1.6b", 0},
      {"qwen3-next-80b-a3b", 79.7e9},
      {"gemma-4-26b-a4b", 0},
      {"glm-5.2-fp8", 0},
  };
  for (const Sample& sample : samples) {
    const std::string path = absl::StrCat(folder, "/samples/config/", sample.file, ".config.json");
    const auto text = ReadTextFile(path);
    ASSERT_TRUE(text.ok()) << text.status().message();
    const auto read = ReadHuggingFaceConfig(*text, path);
    if (sample.parameter_count == 0) {
      EXPECT_FALSE(read.ok()) << sample.file;
      continue;
    }
    ASSERT_TRUE(read.ok()) << sample.file << ": " << read.status().message();
    const double ours = static_cast<double>(workload::CountParameters(read->model).Total());
    EXPECT_LT(std::abs(ours / sample.parameter_count - 1), 0.001) << sample.file << " " << ours;
  }
  for (const char* file : {"llama-4-scout-fp8-dynamic", "minimax-m2.5", "phi3-mini-1layer",
                           "bloom-1layer", "gpt-neox-1layer"}) {
    const auto text = ReadTextFile(absl::StrCat(folder, "/samples/config/", file, ".config.json"));
    ASSERT_TRUE(text.ok()) << text.status().message();
    const auto read = ReadHuggingFaceConfig(*text, file);
    EXPECT_TRUE(read.ok()) << file << ": " << read.status().message();
  }
}

}  // namespace
}  // namespace sextant::catalog
