// SPDX-License-Identifier: Apache-2.0
#include "common/workload/model_architecture.h"

#include "common/base/violations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::workload {
namespace {

using ::testing::HasSubstr;

ModelArchitecture Llama2_7b() {
  ModelArchitecture m;
  m.name = "llama-2-7b";
  m.hidden_size = 4096;
  m.layer_count = 32;
  m.attention_head_count = m.kv_head_count = 32;
  m.head_size = 128;
  m.ffn_size = 11008;
  m.gated_ffn = true;
  m.vocabulary_size = 32000;
  return m;
}

// 2 x 32000 x 4096 + 32 x (4 x 4096^2 + 3 x 4096 x 11008 + 2 x 4096) + 4096 = 6 738 415 616,
// the published size of Llama-2-7B.
TEST(CountParameters, Llama2HasItsPublishedSize) {
  EXPECT_EQ(CountParameters(Llama2_7b()).Total(), 6'738'415'616);
}

// Mixtral-8x7B has 46.7 G parameters: 8 experts of 3 x 4096 x 14336 in each of 32 layers.
TEST(CountParameters, MixtureCountsEveryExpert) {
  ModelArchitecture m = Llama2_7b();
  m.kv_head_count = 8;
  m.experts = {.expert_count = 8, .experts_per_token = 2, .expert_ffn_size = 14336};
  EXPECT_NEAR(static_cast<double>(CountParameters(m).Total()), 46.70e9, 0.01e9);
}

TEST(CountParameters, TyingDropsTheHeadOnly) {
  ModelArchitecture tied = Llama2_7b();
  tied.tied_embeddings = true;
  EXPECT_EQ(CountParameters(Llama2_7b()).Total() - CountParameters(tied).Total(), 32000 * 4096);
}

TEST(ValidateModelArchitecture, MissingVocabularyIsNotZero) {
  ModelArchitecture m = Llama2_7b();
  m.vocabulary_size = 0;
  EXPECT_THAT(std::string(ValidateModelArchitecture(m).message()),
              HasSubstr("vocabulary_size: is missing"));
}

TEST(ValidateModelArchitecture, AllViolationsAtOnce) {
  ModelArchitecture m = Llama2_7b();
  m.kv_head_count = 5;
  m.layer_count = -1;
  m.experts = {.expert_count = 4, .experts_per_token = 8, .expert_ffn_size = 10};
  EXPECT_EQ(base::ViolationsOf(ValidateModelArchitecture(m)).size(), 4u);
}

}  // namespace
}  // namespace sextant::workload
