// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/profile_id.h"
#include "calibration/measurements/read_measurements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kOperatorHeader =
    "id,suite,role,quality,source,accelerator,software,family,op,dtype,m,k,n,batch,heads,kv_heads,"
    "head_dim,seq_q,seq_kv,causal,kv_dtype,experts,topk,moe_tp,moe_ep,expert_distribution,groups,"
    "layout,latency_us,notes\n";
constexpr absl::string_view kTrainingHeader =
    "id,suite,role,quality,source,accelerator,cluster,framework,gpus,gpus_per_node,model,hidden,"
    "layers,heads,kv_heads,ffn,gated_ffn,vocab,tied_embeddings,seq,experts,topk,precision,gbs,mbs,"
    "tp,sp,pp,vpp,schedule,cp,ep,dp,zero,recompute,step_time_s,tokens_per_s_per_gpu,mem_gb,"
    "mem_alloc_gb,status\n";
constexpr absl::string_view kInferenceHeader =
    "id,suite,role,quality,source,accelerator,cluster,load,disaggregated,gpus,framework,model,"
    "precision,tp,pp,ep,dp,batch_or_concurrency,input_len,output_len,ttft_ms,itl_ms,e2e_s,"
    "throughput_tok_s,metric_notes\n";
constexpr absl::string_view kCollectiveHeader =
    "id,suite,role,quality,source,accelerator,cluster,fabric_stated,software,gpus,nodes,collective,"
    "bytes,time_us,algbw_GBps,busbw_GBps,interconnect,notes\n";

const catalog::Catalog& Catalog() {
  static const auto& catalog =
      *new auto(catalog::Catalog::Open(absl::StrCat(SEXTANT_SOURCE_DIR, "/datasets")));
  return catalog.value();
}

Measurements Parse(absl::string_view header, absl::string_view rows) {
  Measurements measurements;
  const absl::Status status =
      ParseMeasurements(absl::StrCat(header, rows), "test.csv", Catalog(), &measurements);
  EXPECT_TRUE(status.ok()) << status;
  return measurements;
}

TEST(Csv, QuotesMayHoldCommasQuotesAndLineBreaks) {
  const auto table = ParseCsv(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x,\"\"y\"\"\n z\",2\r\n\r\n3,",
      "f");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->header, ElementsAre("a", "b"));
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_THAT(table->rows[0], ElementsAre("x,\"y\"\n z", "2"));
  EXPECT_THAT(table->rows[1], ElementsAre("3", ""));
  EXPECT_THAT(table->lines, ElementsAre(2, 5));
}

TEST(Csv, NamesEveryLineWithAWrongNumberOfFields) {
  const auto table = ParseCsv("a,b\n1\n1,2\n1,2,3\n", "f.csv");
  EXPECT_THAT(table.status().message(), HasSubstr("f.csv:2"));
  EXPECT_THAT(table.status().message(), HasSubstr("f.csv:4"));
}

TEST(Csv, RefusesAnUnclosedQuoteAndAnEmptyFile) {
  EXPECT_THAT(ParseCsv("a\n\"x\n", "f").status().message(), HasSubstr("never closed"));
  EXPECT_THAT(ParseCsv("\n", "f").status().message(), HasSubstr("header"));
}

TEST(ProfileIdOf, DropsParenthesesAndBlanks) {
  EXPECT_EQ(ProfileId("TRTLLM 1.3.0rc20"), "trtllm-1.3.0rc20");
  EXPECT_EQ(ProfileId("vLLM (Splitwise ISCA24 profiling)"), "vllm");
  EXPECT_EQ(ProfileId("FlashInfer / vLLM (Frontier)"), "flashinfer-/-vllm");
  EXPECT_EQ(ProfileId(""), "");
}

TEST(Files, WithOtherColumnsAreRefusedWithWhatIsMissing) {
  Measurements measurements;
  const absl::Status status = ParseMeasurements("id,suite,role,quality,source,accelerator,op,m,k\n",
                                                "x.csv", Catalog(), &measurements);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("latency_us"));
}

TEST(OperatorRows, DtypeWordsChooseActivationsAndWeights) {
  const Measurements rows = Parse(
      kOperatorHeader,
      "a,s,fit,,src,a100-sxm4-80gb,TRTLLM 1.0.0,gemm,gemm,int4_wo,8,64,32,,,,,,,,,,,,,,,,10,\n"
      "b,s,fit,,src,h100-sxm5-80gb,,gemm,gemm,fp8_block,8,64,32,,,,,,,,,,,,,,,,10,\n");
  ASSERT_EQ(rows.operators.size(), 2u);
  const auto& weight_only = std::get<operator_cost::GemmShape>(rows.operators[0].op.shape);
  EXPECT_EQ(rows.operators[0].facts.refusal, "");
  EXPECT_EQ(rows.operators[0].facts.profile, "trtllm-1.0.0");
  EXPECT_EQ(rows.operators[0].op.precision, hardware::Precision::kFp16);
  EXPECT_EQ(weight_only.weight_precision, hardware::Precision::kInt4);
  EXPECT_EQ(weight_only.n, 32);
  EXPECT_DOUBLE_EQ(rows.operators[0].measured_seconds, 10e-6);
  EXPECT_TRUE(std::get<operator_cost::GemmShape>(rows.operators[1].op.shape).block_scaled);
}

TEST(OperatorRows, PrefillIsCausalUnlessGivenAndSaysSo) {
  const Measurements rows =
      Parse(kOperatorHeader,
            "a,s,fit,,src,a100-sxm4-80gb,x,attention_prefill,attention_prefill,bf16,,,,2,8,4,128,"
            "64,64,,,,,,,,,,10,\n");
  const auto& shape = std::get<operator_cost::AttentionShape>(rows.operators[0].op.shape);
  EXPECT_TRUE(shape.causal);
  EXPECT_EQ(shape.kv_head_count, 4);
  EXPECT_THAT(rows.operators[0].facts.warnings, ElementsAre(HasSubstr("causal")));
}

TEST(OperatorRows, OfExpertsCountTheTokensThatReachTheRank) {
  const Measurements rows = Parse(
      kOperatorHeader,
      "a,s,fit,,src,a100-sxm4-80gb,x,moe,moe_grouped_gemm,bf16,464,2048,384,,,,,,,,,128,8,,,,,,"
      "10,local experts 64; routed_tokens=3712\n"
      "b,s,fit,,src,a100-sxm4-80gb,x,moe,moe_grouped_gemm,bf16,464,2048,384,,,,,,,,,128,8,,,,,,"
      "10,\n"
      "c,s,fit,,src,a100-sxm4-80gb,SGLang 0.5.10,moe,moe_ffn,bf16,64,2048,384,,,,,,,,,128,8,1,4,"
      "balanced,,,10,\n");
  ASSERT_EQ(rows.operators.size(), 3u);
  const auto shape = [&rows](size_t i) {
    return std::get<operator_cost::ExpertFfnShape>(rows.operators[i].op.shape);
  };
  EXPECT_EQ(shape(0).token_count, 464);  // 3712 rows, 8 of each token
  EXPECT_EQ(shape(0).expert_count, 64);
  EXPECT_EQ(shape(1).token_count, 58);  // 464 rows
  EXPECT_EQ(shape(2).imbalance, 4);
}

TEST(OperatorRows, AreRefusedWithEveryFieldThatIsMissing) {
  const Measurements rows =
      Parse(kOperatorHeader, "a,s,fit,,src,,x,gemm,gemm,bf16,-1,64,,,,,,,,,,,,,,,,,nan,\n");
  const std::string& refusal = rows.operators[0].facts.refusal;
  for (const char* field : {"accelerator", "m is -1", "n is not stated", "latency_us"}) {
    EXPECT_THAT(refusal, HasSubstr(field));
  }
}

TEST(OperatorRows, AtALockedClockRunOnASlowerChip) {
  const Measurements rows =
      Parse(kOperatorHeader,
            "a,s,fit,,src,a100-sxm4-80gb,,gemm,gemm,bf16,8,64,32,,,,,,,,,,,,,,,,10,"
            "ncu;sm_clock_GHz=0.705;x\n");
  // A100 boost clock is 1.41 GHz and its 16-bit rate 312 TFLOP/s: half of each.
  EXPECT_NEAR(rows.operators[0].accelerator->MatrixRate(hardware::Precision::kBf16), 156e12, 1e12);
}

TEST(TrainingRows, TakeDefaultsAndSaySo) {
  const Measurements rows = Parse(
      kTrainingHeader,
      "t,vtrain-single,fit,,src,a100-sxm4-80gb,,Megatron-DeepSpeed,16,8,own,1024,4,16,,4096,0,"
      "51200,1,2048,,,,32,2,2,,2,,,,,,,,1.5,,,,ok\n");
  const TrainingRow& row = rows.training[0];
  EXPECT_EQ(row.facts.refusal, "");
  EXPECT_EQ(row.job.precision, hardware::Precision::kFp16);
  EXPECT_EQ(row.job.plan.data_parallel_size, 4);  // 16 / (2 x 2)
  EXPECT_EQ(row.job.model.kv_head_count, 16);
  EXPECT_EQ(row.job.model.head_size, 64);
  EXPECT_EQ(row.job.cluster.name, "dgx-a100");
  EXPECT_EQ(row.measured_seconds, 1.5);
  EXPECT_EQ(row.measured_fits, true);
  EXPECT_GE(row.facts.warnings.size(), 6u);
}

TEST(TrainingRows, OutOfMemorySaysSoAndFailureSaysNothing) {
  const std::string head =
      ",s,fit,,src,a100-sxm4-80gb,,x,1,8,own,1024,4,16,16,4096,0,51200,1,2048,,,bf16,2,2,1,0,1,1,"
      "1f1b,1,1,1,0,none,,,,,";
  const Measurements rows =
      Parse(kTrainingHeader, absl::StrCat("a", head, "oom\nb", head, "failed_other\nc", head,
                                          "throughput_only\nd", head, "weird\n"));
  EXPECT_EQ(rows.training[0].measured_fits, false);
  EXPECT_TRUE(rows.training[0].facts.Usable());
  EXPECT_EQ(rows.training[1].measured_fits, std::nullopt);
  EXPECT_TRUE(rows.training[1].facts.Usable());
  EXPECT_NE(rows.training[2].facts.skip_reason, "");
  EXPECT_THAT(rows.training[3].facts.refusal, HasSubstr("weird"));
}

TEST(TrainingRows, OfUnknownModelsAreRefusedByName) {
  const Measurements rows =
      Parse(kTrainingHeader,
            "t,s,fit,,src,a100-sxm4-80gb,,x,1,8,Nothing-9B,,,,,,,,,2048,,,bf16,2,2,1,0,1,1,1f1b,1,"
            "1,1,0,none,1,,,,ok\n");
  EXPECT_THAT(rows.training[0].facts.refusal, HasSubstr("Nothing-9B"));
}

TEST(InferenceRows, GiveEveryMetricAndDropAContradictoryTotal) {
  // 0.1 + 0.02 x 99 = 2.08 s; the second row's 0.5 s is another number of tokens.
  const Measurements rows =
      Parse(kInferenceHeader,
            "a,s,fit,,src,a100-sxm4-80gb,,static,,4,vLLM,Llama-2-70B,fp16,4,1,,,1,512,100,100,20,"
            "2.1,47.6,\n"
            "b,s,fit,,src,a100-sxm4-80gb,,static,,4,vLLM,Llama-2-70B,fp16,4,1,,,1,512,100,100,20,"
            "0.5,200,\n");
  const InferenceRow& good = rows.inference[0];
  EXPECT_EQ(good.facts.refusal, "");
  ASSERT_EQ(good.measured.size(), 4u);
  EXPECT_DOUBLE_EQ(good.measured[0].seconds, 0.1);
  EXPECT_DOUBLE_EQ(good.measured[3].seconds, 1 / 47.6);
  EXPECT_EQ(good.measured[2].skip_reason, "");
  EXPECT_NE(rows.inference[1].measured[2].skip_reason, "");
  EXPECT_EQ(rows.inference[1].measured[0].skip_reason, "");
}

// One published table counts the tokens of one GPU without saying so in its header.
TEST(InferenceRows, OfOneGpuAreReadAsSuch) {
  const Measurements rows = Parse(
      kInferenceHeader,
      "a,s,validate,,src,a100-sxm4-80gb,,saturated,,4,TensorRT-LLM 0.6.1,Llama-2-70B,fp16,4,"
      "1,,,512,128,128,,,,600,static batching; source header 'Throughput (out tok/s)'\n"
      "b,s,validate,,src,a100-sxm4-80gb,,saturated,,4,TensorRT-LLM 0.9.0,Llama-2-70B,fp16,4,"
      "1,,,512,128,128,,,,2400,source header 'Throughput (out tok/s/GPU)' multiplied by TP\n");
  ASSERT_EQ(rows.inference[0].facts.refusal, "");
  EXPECT_TRUE(rows.inference[0].throughput_per_gpu);
  EXPECT_FALSE(rows.inference[1].throughput_per_gpu);
}

// Its rows name a part of 80 GB; the machine's nodes have 40 GB each.
TEST(InferenceRows, OfPolarisRanOnFortyGigabytes) {
  const Measurements rows = Parse(
      kInferenceHeader,
      "a,s,validate,,argonne-lcf/LLM-Inference-Bench@1:x.csv,a100-sxm4-80gb,,static,,4,vLLM,"
      "Llama-2-70B,fp16,4,1,,,1,128,128,,,4.2,60,\n"
      "b,s,validate,,argonne-lcf/LLM-Inference-Bench@1:x.csv,h100-sxm5-80gb,,static,,4,vLLM,"
      "Llama-2-70B,fp16,4,1,,,1,128,128,,,2.3,110,\n");
  ASSERT_EQ(rows.inference[0].facts.refusal, "");
  EXPECT_EQ(rows.inference[0].job.cluster.accelerator.name, "a100-sxm4-40gb");
  EXPECT_NE(rows.inference[0].facts.warnings, rows.inference[1].facts.warnings);
  EXPECT_EQ(rows.inference[1].job.cluster.accelerator.name, "h100-sxm5-80gb");
}

TEST(CollectiveRows, WithoutBytesAreAnchorsAndUnstatedFabricsDoNotCount) {
  const Measurements rows =
      Parse(kCollectiveHeader,
            "a,s,fit,,src,a100-sxm4-80gb,,,NCCL 2.27.3,8,1,all_reduce,,,,242,,\n"
            "b,s,fit,,src,a100-sxm4-80gb,,0,,16,2,all_reduce,1024,50,,,,\n"
            "c,s,fit,,src,,,,,8,1,all_reduce,1024,50,,,,\n");
  EXPECT_NE(rows.collectives[0].facts.skip_reason, "");
  EXPECT_FALSE(rows.collectives[1].facts.counted);
  EXPECT_EQ(rows.collectives[1].collective.ranks_per_node, 8);
  EXPECT_THAT(rows.collectives[2].facts.refusal, HasSubstr("accelerator"));
}

TEST(ReferenceTables, EveryRowIsUsableOrSaysWhyNot) {
  const char* reference = std::getenv("SEXTANT_REFERENCE_DIR");
  if (reference == nullptr) {
    GTEST_SKIP() << "SEXTANT_REFERENCE_DIR does not name the reference tables";
  }
  std::vector<std::string> paths;
  for (const char* kind : {"operators", "collectives", "training", "inference"}) {
    paths.push_back(absl::StrCat(reference, "/measurements/", kind, ".csv"));
  }
  const auto rows = ReadMeasurements(paths, Catalog());
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_GT(rows->size(), 40000u);
  for (const OperatorRow& row : rows->operators) {
    EXPECT_TRUE(!row.facts.Usable() || row.measured_seconds > 0) << row.facts.id;
  }
  for (const TrainingRow& row : rows->training) {
    // Where sizes are open the job is only a place to start from: a batch of 8 on 64 GPUs whose
    // tensor parallel size is not stated cannot be pure data parallel.
    if (!row.facts.Usable() || row.unstated.AnySize()) continue;
    EXPECT_TRUE(workload::ValidateJob(row.job).ok()) << row.facts.id;
  }
}

}  // namespace
}  // namespace sextant::calibration
