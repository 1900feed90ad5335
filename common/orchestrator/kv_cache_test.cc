// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/kv_cache.h"

#include "common/orchestrator/test_jobs.h"
#include "gtest/gtest.h"

namespace sextant::orchestrator {
namespace {

using hardware::Precision;
using workload::ModelArchitecture;

ModelArchitecture Grouped(int64_t layers, int64_t kv_heads, int64_t head_size) {
  ModelArchitecture m;
  m.hidden_size = 4096;
  m.layer_count = layers;
  m.attention_head_count = 64;
  m.kv_head_count = kv_heads;
  m.head_size = head_size;
  m.ffn_size = 4096;
  m.vocabulary_size = 1000;
  return m;
}
ModelArchitecture DeepSeekV3() {
  ModelArchitecture m = Grouped(61, 0, 0);
  m.attention_head_count = 128;
  m.latent_attention = {.query_lora_rank = 1536,
                        .kv_lora_rank = 512,
                        .rope_head_size = 64,
                        .nope_head_size = 128,
                        .value_head_size = 128};
  return m;
}
ModelArchitecture Gemma3() {
  ModelArchitecture m = Grouped(62, 16, 128);
  m.sliding_window = 1024;
  m.full_attention_interval = 6;
  return m;
}
ModelArchitecture GptOss() {
  ModelArchitecture m = Grouped(36, 8, 64);
  m.sliding_window = 128;
  m.full_attention_interval = 2;
  return m;
}
ModelArchitecture Qwen3Next() {
  ModelArchitecture m = Grouped(48, 2, 256);
  m.full_attention_interval = 4;
  m.linear_attention = {.key_head_count = 16,
                        .value_head_count = 32,
                        .key_head_size = 128,
                        .value_head_size = 128,
                        .convolution_size = 4};
  return m;
}

// Two tensors of KV heads x head size in 16 bits for each layer that caches; a latent of 512 + 64.
TEST(KvBytesPerToken, AreThoseOfTheConfigurationsByHand) {
  EXPECT_EQ(KvBytesPerToken(Grouped(80, 8, 128), 1, Precision::kBf16), 327680);  // Llama 3 70B
  EXPECT_EQ(KvBytesPerToken(DeepSeekV3(), 1, Precision::kBf16), 61 * (512 + 64) * 2);
  EXPECT_EQ(KvBytesPerToken(DeepSeekV3(), 1, Precision::kBf16), 70272);
  EXPECT_EQ(KvBytesPerToken(Grouped(32, 8, 128), 1, Precision::kBf16), 131072);  // Mistral 7B
  EXPECT_EQ(KvBytesPerToken(Gemma3(), 1, Precision::kBf16), 62 * 2 * 16 * 128 * 2);
  EXPECT_EQ(KvBytesPerToken(GptOss(), 1, Precision::kBf16), 36 * 2 * 8 * 64 * 2);
  EXPECT_EQ(KvBytesPerToken(Qwen3Next(), 1, Precision::kBf16), 12 * 2 * 2 * 256 * 2);
  EXPECT_EQ(KvBytesPerToken(Grouped(80, 8, 128), 1, Precision::kFp8), 163840);
}

TEST(KvBytesPerToken, HeadsAreDividedOrReplicatedAndALatentIsWhole) {
  const ModelArchitecture llama = Grouped(80, 8, 128);
  EXPECT_EQ(KvBytesPerToken(llama, 8, Precision::kBf16), 327680 / 8);
  EXPECT_EQ(KvBytesPerToken(llama, 16, Precision::kBf16), 327680 / 8);
  EXPECT_EQ(KvBytesPerToken(DeepSeekV3(), 8, Precision::kBf16), 70272);
}

// A head size that the configuration states is used though hidden / heads is another: hidden 3584,
// 16 heads, head_dim 256 keeps 8192 bytes for eight KV heads and not 7168.
TEST(KvBytesPerTokenPerLayer, UsesTheStatedHeadSize) {
  ModelArchitecture m = Grouped(1, 8, 256);
  m.hidden_size = 3584;
  m.attention_head_count = 16;
  EXPECT_EQ(KvBytesPerTokenPerLayer(m, 1, Precision::kBf16), 8192);
}

TEST(KvCacheBytes, WindowsEndAndStatesDoNotGrow) {
  const double layer = 2 * 16 * 128 * 2;
  EXPECT_EQ(KvCacheBytes(Gemma3(), 1, Precision::kBf16, 1024), layer * 62 * 1024);
  EXPECT_EQ(KvCacheBytes(Gemma3(), 1, Precision::kBf16, 10240), layer * (10 * 10240 + 52 * 1024));
  EXPECT_EQ(KvCacheBytes(GptOss(), 1, Precision::kBf16, 8192), 2048.0 * 18 * (8192 + 128));

  ModelArchitecture mistral = Grouped(32, 8, 128);
  mistral.sliding_window = 4096;
  EXPECT_EQ(KvCacheBytes(mistral, 1, Precision::kBf16, 1e6), 131072.0 * 4096);

  // 36 layers with 32 matrices of 128 x 128 and three taps of 2 x 2048 + 4096 channels, 2 bytes.
  const double state = 36 * 2 * (32.0 * 128 * 128 + 3 * 8192);
  EXPECT_EQ(StateBytesPerSequence(Qwen3Next(), 1), state);
  EXPECT_EQ(KvCacheBytes(Qwen3Next(), 1, Precision::kBf16, 1000), state + 24576 * 1000);
  EXPECT_EQ(StateBytesPerSequence(Grouped(80, 8, 128), 1), 0);
}

}  // namespace
}  // namespace sextant::orchestrator
