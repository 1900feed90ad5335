// SPDX-License-Identifier: Apache-2.0
// Inputs that broke other tools, as their users reported them: where each was reported stands
// beside it. What is right was derived by hand. Configurations that the Hugging Face reader must
// survive are in common/catalog/hugging_face_test.cc, networks and serving in their rooms.
#include <algorithm>
#include <numeric>
#include <variant>

#include "common/orchestrator/kv_cache.h"
#include "common/orchestrator/memory.h"
#include "gmock/gmock.h"
#include "tests/reported/reported_jobs.h"

namespace sextant::reported {
namespace {

using orchestrator::BuildTrainingGraph;
using orchestrator::CollectiveUse;
using orchestrator::CountRankParameters;
using orchestrator::GraphOptions;
using orchestrator::Prediction;
using orchestrator::StageClass;
using orchestrator::StageClasses;
using orchestrator::TrainingGraph;
using ::testing::HasSubstr;
using workload::Job;

std::string Dense(int64_t hidden, int64_t layers, int64_t heads, int64_t kv_heads,
                  const std::string& more = "") {
  return absl::StrCat("model: {name: reported, hidden_size: ", hidden, ", layer_count: ", layers,
                      ", attention_head_count: ", heads, ", kv_head_count: ", kv_heads,
                      ", ffn_size: ", 4 * hidden, ", vocabulary_size: 32000", more,
                      "}\ncluster: dgx-h100\n"
                      "training: {global_batch_size: 64, sequence_length: 2048}\n");
}
std::string Named(const std::string& model) {
  return absl::StrCat("model: ", model,
                      "\ncluster: dgx-h100\n"
                      "training: {global_batch_size: 64, sequence_length: 4096}\n");
}

struct Refusal {
  const char* reported_at;
  std::string job;
  std::vector<std::string> overrides;
  std::vector<std::string> said;  // all of it in one error
};

TEST(ReportedInput, WrongJobsAreRefusedByFieldWithTheRule) {
  const std::string expert_model =
      ", experts: {expert_count: 512, experts_per_token: 8, "
      "expert_ffn_size: 512}";
  const std::vector<Refusal> refusals = {
      {"aiconfigurator PR 1129",
       Dense(4096, 8, 32, 32, expert_model),
       {"plan.expert_parallel_size=513", "plan.data_parallel_size=513",
        "training.global_batch_size=513"},
       {"plan.expert_parallel_size: is 513 but must divide experts.expert_count 512"}},
      {"vllm 52435",
       Dense(4096, 8, 64, 64,
             ", experts: {expert_count: 256, experts_per_token: 8, expert_ffn_size: 512}"),
       {"plan.expert_parallel_size=3", "plan.tensor_parallel_size=3", "plan.data_parallel_size=3",
        "training.global_batch_size=3"},
       {"plan.expert_parallel_size: is 3 but must divide experts.expert_count 256",
        "plan.tensor_parallel_size: is 3 but must divide attention_head_count 64"}},
      {"vllm-fit 35, LMOps 292",
       Dense(3584, 8, 28, 4),
       {"plan.tensor_parallel_size=7"},
       {"plan.tensor_parallel_size: is 7 but must divide kv_head_count 4"}},
      {"DeepSpeed 3634",
       Dense(6656, 8, 52, 52),
       {"plan.tensor_parallel_size=8"},
       {"plan.tensor_parallel_size: is 8 but must divide attention_head_count 52"}},
      {"rtp-llm 122",
       Dense(5120, 8, 40, 40),
       {"plan.tensor_parallel_size=6"},
       {"plan.tensor_parallel_size: is 6 but must divide attention_head_count 40"}},
      {"aicb 18",
       Named("llama-2-7b"),
       {"gpu_count=1", "plan.tensor_parallel_size=8", "plan.data_parallel_size=1"},
       {"gpu_count: is 1 but tensor 8 x pipeline 1 x context 1 x data 1 parallel sizes multiply "
        "to 8"}},
      {"aicb 1, 24",
       Named("llama-2-7b"),
       {"gpu_count=4096", "plan.tensor_parallel_size=4", "training.global_batch_size=8190"},
       {"training.global_batch_size: is 8190 but must be a multiple of micro_batch_size 1 x "
        "data_parallel_size 1024 = 1024"}},
      {"LLMServingSim 55",
       Dense(4096, 8, 32, 32),
       {"plan.pipeline_parallel_size=9", "plan.data_parallel_size=1"},
       {"plan.pipeline_parallel_size: times virtual_pipeline_size is 9 but must be at most "
        "layer_count 8"}},
      {"no GPU", Named("llama-2-7b"), {"gpu_count=0", "plan.data_parallel_size=1"}, {"gpu_count"}},
      {"no batch",
       Named("llama-2-7b"),
       {"training.global_batch_size=0", "gpu_count=1"},
       {"training.global_batch_size"}},
      {"sequence above 2^31",
       Named("llama-2-7b"),
       {"training.sequence_length=2147483649", "gpu_count=1"},
       {"training.sequence_length: is 2147483649"}},
      {"more experts per token than experts",
       Dense(4096, 8, 32, 32,
             ", experts: {expert_count: 8, experts_per_token: 9, expert_ffn_size: 512}"),
       {"gpu_count=1"},
       {"model.experts.experts_per_token: is 9 but must be at most expert_count 8"}},
      {"expert width missing",
       Dense(4096, 8, 32, 32, ", experts: {expert_count: 8, experts_per_token: 2}"),
       {"gpu_count=1"},
       {"model.experts.expert_ffn_size: is missing"}},
      {"negative bandwidth",
       Named("llama-2-7b"),
       {"gpu_count=1", "cluster.network_bandwidth_bytes_per_second=-1"},
       {"cluster.network_bandwidth_bytes_per_second"}},
      {"NaN in hardware",
       Named("llama-2-7b"),
       {"gpu_count=1", "cluster.node_bandwidth_bytes_per_second=.nan"},
       {"cluster.node_bandwidth_bytes_per_second"}},
  };
  for (const Refusal& refusal : refusals) {
    const absl::Status status = TryRead(refusal.job, refusal.overrides).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refusal.reported_at;
    for (const std::string& text : refusal.said) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text)) << refusal.reported_at;
    }
  }
}

struct Accepted {
  const char* reported_at;
  std::string job;
  std::vector<std::string> overrides;
};

// Predicted, with a finite time that its parts sum to, and the same again.
TEST(ReportedInput, UnusualJobsArePredicted) {
  std::vector<Accepted> accepted = {
      {"aiconfigurator PR 1129: 512 experts",
       Dense(4096, 8, 32, 32,
             ", experts: {expert_count: 512, experts_per_token: 8, expert_ffn_size: 512}"),
       {"plan.expert_parallel_size=512", "plan.data_parallel_size=512",
        "training.global_batch_size=512"}},
      {"KV heads fewer than ranks",
       Dense(3584, 8, 28, 4),
       {"plan.tensor_parallel_size=28", "plan.data_parallel_size=1"}},
      {"InfiniCore PR 1128", Dense(1536, 8, 12, 2), {"plan.tensor_parallel_size=4"}},
      {"SimAI 142: tp 24", Dense(6144, 8, 48, 48), {"plan.tensor_parallel_size=24"}},
      {"Calculon: micro-batches fewer than stages",
       Named("llama-2-7b"),
       {"plan.pipeline_parallel_size=8", "training.global_batch_size=4", "gpu_count=8"}},
      {"2^31 sequences", Named("llama-2-7b"), {"training.global_batch_size=2147483648"}},
      {"sequence of 2^31: products of 32 bits overflow",
       Named("llama-2-7b"),
       {"training.sequence_length=2147483648"}},
      {"name of other alphabets", Dense(4096, 8, 32, 32), {"model.name=\u6a21\u578b \u00e9"}},
      {"long name", Dense(4096, 8, 32, 32), {absl::StrCat("model.name=", std::string(10000, 'x'))}},
  };
  for (int64_t pp = 1; pp <= 9; ++pp) {
    accepted.push_back(
        {"LLMServingSim 55: 32 layers",
         Named("llama-3.1-8b"),
         {absl::StrCat("plan.pipeline_parallel_size=", pp), absl::StrCat("gpu_count=", pp)}});
  }
  for (const int64_t pp : {4, 9, 18}) {
    accepted.push_back(
        {"LLMServingSim PR 61: 36 layers",
         Dense(4096, 36, 32, 8),
         {absl::StrCat("plan.pipeline_parallel_size=", pp), absl::StrCat("gpu_count=", pp)}});
  }
  Ports ports;
  for (const Accepted& input : accepted) {
    const Job job = Read(input.job, input.overrides);
    const Prediction p = ports.Predict(job);
    EXPECT_GT(p.total_seconds, 0) << input.reported_at;
    double sum = 0;
    for (const orchestrator::TimePart& part : p.breakdown) {
      EXPECT_GE(part.seconds, 0) << input.reported_at << " " << part.name;
      sum += part.seconds;
    }
    EXPECT_NEAR(sum, p.total_seconds, 1e-9 * sum) << input.reported_at;
    EXPECT_EQ(p, ports.Predict(job)) << input.reported_at;  // sglang 39042: warm as cold
    int64_t layers = 0;
    for (const StageClass& stage : StageClasses(job)) {
      layers += stage.rank_count * stage.LayerCount();
    }
    EXPECT_EQ(layers, job.model.layer_count) << input.reported_at;
  }
}

// aiconfigurator 1259, dynamo 10007: never another card's numbers.
TEST(ReportedInput, UnknownDevicesAreNotFoundAndNeverReplaced) {
  for (const char* name : {"A40", "NVIDIA RTX PRO 6000 Blackwell Server Edition"}) {
    const absl::Status status =
        TryRead(Named("llama-2-7b"), {absl::StrCat("cluster.accelerator=", name), "gpu_count=1"})
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

// Megatron-LM 4050, Megatron-Bridge PR 3744: Mixtral-8x7B at tp 4, ep 8, experts not split. A rank
// has an eighth of the experts, a quarter of the attention, whole norms and routers.
TEST(ReportedInput, ExpertsAreDividedByTheirOwnGroups) {
  const Job job = Read(Named("mixtral-8x7b"),
                       {"plan.tensor_parallel_size=4", "plan.data_parallel_size=8",
                        "plan.expert_parallel_size=8", "plan.expert_tensor_parallel_size=1"});
  const workload::ParameterCounts all = workload::CountParameters(job.model);
  const auto rank = CountRankParameters(job, StageClasses(job).front());
  EXPECT_DOUBLE_EQ(rank.expert, 32.0 * static_cast<double>(all.routed_experts_per_layer) / 8);
  EXPECT_DOUBLE_EQ(rank.matrix, 32.0 * static_cast<double>(all.attention_per_layer) / 4);
  EXPECT_DOUBLE_EQ(
      rank.norm,
      static_cast<double>(32 * (all.norms_per_layer + all.router_per_layer) + all.final_norm));
}

// Megatron-LM 1784, PR 6782: dispatched tokens grow with experts per token, split as the tokens
// are, and do not depend on the number of expert groups.
TEST(ReportedInput, DispatchedActivationsGrowWithExpertsPerTokenNotWithGroups) {
  const auto bytes = [](int64_t groups, int64_t visited, const char* etp) {
    const Job job =
        Read(Named("deepseek-v3"),
             {"plan.tensor_parallel_size=2", "plan.data_parallel_size=16",
              absl::StrCat("plan.expert_parallel_size=", groups), etp, "model.name=deepseek-v3",
              absl::StrCat("model.experts.experts_per_token=", visited)});
    return orchestrator::LayerActivationBytes(job, /*mixture=*/true, /*fused_attention=*/true);
  };
  const char* split = "plan.expert_tensor_parallel_size=2";
  const char* whole = "plan.expert_tensor_parallel_size=1";
  EXPECT_EQ(bytes(8, 8, split), bytes(16, 8, split));
  EXPECT_EQ(bytes(8, 8, whole), bytes(16, 8, whole));
  // One more copy of each token: 2 B x hidden x etp / tp, and 3 x 2 B of the expert's width / tp.
  EXPECT_DOUBLE_EQ(bytes(8, 9, split) - bytes(8, 8, split),
                   4096 * (2.0 * 7168 * 2 / 2 + 6.0 * 2048 / 2));
  EXPECT_DOUBLE_EQ(bytes(8, 9, whole) - bytes(8, 8, whole),
                   4096 * (2.0 * 7168 * 1 / 2 + 6.0 * 2048 / 2));
}

// llmfit 230: a mixture is held whole, whatever a token visits. Mixtral-8x22B, 140.6e9 weights, in
// 4 bits with a 16-bit scale per 128: at least 140e9 x 0.5156 = 72 GB, not on 48 GB. aiconfigurator
// PR 391: 4-bit floats have a scale byte per 16: 9 / 16 B.
TEST(ReportedInput, QuantisedWeightsHaveTheirScalesAndAllExperts) {
  const std::string inference =
      "inference: {prompt_tokens: 128, output_tokens: 128}\ngpu_count: 1\n";
  Ports ports;
  const Prediction mixture = ports.Predict(
      Read("model: mixtral-8x22b\ncluster: l40s-pcie\nprecision: int4\n" + inference));
  EXPECT_FALSE(mixture.memory.fits);
  EXPECT_NEAR(BytesOf(mixture, "weights"), 72.5e9, 1.5e9);
  const Job job = Read("model: llama-3.1-70b\ncluster: dgx-b200\nprecision: fp4\n" + inference);
  const workload::ParameterCounts counts = workload::CountParameters(job.model);
  const double wide =
      static_cast<double>(counts.embedding + counts.output_head + counts.final_norm +
                          job.model.layer_count * counts.norms_per_layer);
  const double narrow = static_cast<double>(counts.Total()) - wide;
  EXPECT_NEAR(BytesOf(ports.Predict(job), "weights"), 9.0 / 16 * narrow + 2 * wide, 1);
}

// aiconfigurator PR 1390: Kimi-K2, 384 experts, tp 8 and ep 8 on eight H200: an eighth of the
// experts a rank, not all.
TEST(ReportedInput, ExpertGroupsInsideTensorRanksDivideWeights) {
  const Job job = Read(
      "model: kimi-k2\ncluster: h200-hgx\nprecision: fp8\n"
      "inference: {prompt_tokens: 128, output_tokens: 128}\n"
      "plan: {tensor_parallel_size: 8, expert_parallel_size: 8}\ngpu_count: 8\n");
  const workload::ParameterCounts all = workload::CountParameters(job.model);
  EXPECT_DOUBLE_EQ(CountRankParameters(job, StageClasses(job).front()).expert,
                   static_cast<double>(all.mixture_layer_count * all.routed_experts_per_layer) / 8);
}

// inference-sim 559: a token is multiplied by the experts it visits, two in both; weights are read
// of as many experts as the batch touches: two at batch 1, nearly all eight at 512.
TEST(ReportedInput, ArithmeticIsOfVisitedExpertsAndReadsOfTouchedOnes) {
  Ports ports;
  const auto experts = [&](int64_t batch) {
    const Job job =
        Read(absl::StrCat("model: mixtral-8x7b\ncluster: dgx-h100\ngpu_count: 1\n"
                          "inference: {prompt_tokens: 128, output_tokens: 2, batch_size: ",
                          batch, "}\n"));
    const orchestrator::InferenceGraph graph = orchestrator::BuildInferenceGraph(job, {});
    const orchestrator::PortAnswers answers = ports.Ask(graph, job);
    for (const orchestrator::OperatorUse& use : graph.decode_mixture.operators) {
      const size_t i = static_cast<size_t>(use.index);
      if (std::holds_alternative<operator_cost::ExpertFfnShape>(graph.operators[i].shape)) {
        return answers.operators[i];
      }
    }
    ADD_FAILURE() << "no experts";
    return operator_cost::OperatorEstimate{};
  };
  const operator_cost::OperatorEstimate one = experts(1);
  const operator_cost::OperatorEstimate many = experts(512);
  EXPECT_DOUBLE_EQ(one.flop_count, 2.0 * 2 * 3 * 4096 * 14336);
  EXPECT_DOUBLE_EQ(many.flop_count, 512 * one.flop_count);
  EXPECT_NEAR(many.hbm_bytes / one.hbm_bytes, 4, 0.3);
}

// mlx-lm 1688: 10 layers over 3 ranks lost two of them. Stages sum to the layers, and the step of
// one micro-batch costs no less arithmetic than on one rank.
TEST(ReportedInput, UnevenStagesLoseNothing) {
  const std::string ten = Dense(2048, 10, 16, 16);
  const Job one = Read(ten, {"gpu_count=1"});
  const Job three = Read(ten, {"gpu_count=3", "plan.pipeline_parallel_size=3"});
  double parameters = 0;
  for (const StageClass& stage : StageClasses(three)) {
    parameters += CountRankParameters(three, stage).Total() * static_cast<double>(stage.rank_count);
  }
  EXPECT_DOUBLE_EQ(parameters, static_cast<double>(workload::CountParameters(one.model).Total()));
  EXPECT_EQ(orchestrator::ModelFlopCount(one), orchestrator::ModelFlopCount(three));
}

// SimAI 142: a tensor parallel group of 24 spans three nodes of eight; the network between them
// sets its pace, not the links inside.
TEST(ReportedInput, ATensorGroupAcrossNodesPaysForTheNetwork) {
  Job job = Read(Dense(6144, 8, 48, 48), {"plan.tensor_parallel_size=24"});
  Ports ports;
  const double slow = ports.Predict(job).total_seconds;
  job.cluster.node_bandwidth_bytes_per_second *= 8;
  job.cluster.accelerator.nvlink_bandwidth_bytes_per_second *= 8;
  const double fast_nodes = ports.Predict(job).total_seconds;
  job.cluster.network_bandwidth_bytes_per_second *= 8;
  const double fast_network = ports.Predict(job).total_seconds;
  EXPECT_LE(fast_nodes, slow);
  EXPECT_LT(fast_network, 0.9 * fast_nodes);
}

// torchtitan PR 3225, trl 6708: Llama-3.2-1B is 1.24 G weights, tied; a pipeline's ends each hold
// the table; the head multiplies whether its weights are its own or not.
TEST(ReportedInput, TiedTablesAreOneAndTheirHeadStillMultiplies) {
  const Job tied = Read(Named("llama-3.2-1b"), {"gpu_count=1"});
  EXPECT_NEAR(static_cast<double>(workload::CountParameters(tied.model).Total()), 1.2358e9, 1e5);
  Job untied = tied;
  untied.model.tied_embeddings = false;
  EXPECT_EQ(orchestrator::ModelFlopCount(untied), orchestrator::ModelFlopCount(tied));
  const auto seconds = [](const Job& job) {
    Ports ports;
    const TrainingGraph graph = BuildTrainingGraph(job, GraphOptions{});
    return orchestrator::PriceTraining(graph, ports.Ask(graph, job), job)
        .stages.back()
        .forward.matrix_seconds;
  };
  EXPECT_EQ(seconds(untied), seconds(tied));
}

// Calculon, 2022 and 2023: eight stages with four and eight micro-batches, interleaved or not. A
// rank never waits less than in a pipeline that is full, and never holds more than there is.
TEST(ReportedInput, ShortPipelinesWaitAndHoldNoMoreThanThereIs) {
  workload::ParallelPlan plan{.pipeline_parallel_size = 8};
  for (const int64_t chunks : {1, 2}) {
    plan.virtual_pipeline_size = chunks;
    for (const int64_t micro_batches : {4, 8, 64}) {
      for (int64_t rank = 0; rank < 8; ++rank) {
        EXPECT_LE(orchestrator::MicroBatchesInFlight(plan, micro_batches, rank),
                  static_cast<double>(micro_batches));
      }
    }
  }
  Ports ports;
  const auto bubble = [&](int64_t micro_batches, int64_t chunks) {
    return PartOf(
        ports.Predict(Read(Named("llama-2-7b"),
                           {"plan.pipeline_parallel_size=8", "gpu_count=8",
                            absl::StrCat("plan.virtual_pipeline_size=", chunks),
                            absl::StrCat("plan.schedule=", chunks > 1 ? "interleaved" : "1f1b"),
                            absl::StrCat("training.global_batch_size=", micro_batches)})),
        "pipeline_bubble");
  };
  EXPECT_DOUBLE_EQ(bubble(4, 1), bubble(64, 1));
  EXPECT_NEAR(bubble(8, 2) / bubble(8, 1), 0.5, 0.05);
}

// Calculon: the optimizer once per step whatever the micro-batches; nothing exposed below zero or
// above the whole, with and without anything to hide behind.
TEST(ReportedInput, ExposedTimesStayInsideTheStep) {
  Ports ports;
  for (const int64_t tp : {1, 8}) {
    for (const int zero : {0, 1, 2, 3}) {
      double optimizer = -1;
      for (const int64_t batch : {8, 512}) {
        const Prediction p =
            ports.Predict(Read(Named("llama-2-7b"),
                               {absl::StrCat("plan.tensor_parallel_size=", tp),
                                "plan.data_parallel_size=8", absl::StrCat("plan.zero_stage=", zero),
                                absl::StrCat("training.global_batch_size=", batch)}));
        for (const orchestrator::TimePart& part : p.breakdown) {
          EXPECT_GE(part.seconds, 0) << part.name;
          EXPECT_LE(part.seconds, p.total_seconds) << part.name;
        }
        if (optimizer >= 0) {
          EXPECT_EQ(PartOf(p, "optimizer"), optimizer);
        }
        optimizer = PartOf(p, "optimizer");
      }
    }
  }
}

// llm-analysis PR 4 to 28: Llama-2-7B is 6.74 G weights; mixed-precision Adam holds 2 B of weights,
// 4 of gradients and 12 of optimizer states for each, and 524 288 B of cache a token.
TEST(ReportedInput, LlamaSevenHasItsPublishedSizes) {
  Ports ports;
  const Job job = Read(Named("llama-2-7b"), {"gpu_count=1"});
  EXPECT_NEAR(static_cast<double>(workload::CountParameters(job.model).Total()), 6.738e9, 1e6);
  const Prediction p = ports.Predict(job);
  EXPECT_NEAR(BytesOf(p, "weights"), 13.48e9, 0.01e9);
  EXPECT_NEAR((BytesOf(p, "weights") + BytesOf(p, "gradients") + BytesOf(p, "optimizer")) / 6.738e9,
              18, 0.01);
  EXPECT_EQ(32 * orchestrator::KvBytesPerTokenPerLayer(job.model, 1, hardware::Precision::kFp16),
            524288);
}

// GenZ: eight tensor parallel ranks sum partial results, eight expert groups exchange tokens.
TEST(ReportedInput, TensorAndExpertParallelismExchangeDifferently) {
  const auto kinds = [](const std::vector<std::string>& plan) {
    const TrainingGraph graph =
        BuildTrainingGraph(Read(Named("mixtral-8x7b"), plan), GraphOptions{});
    std::vector<collectives::CollectiveKind> found;
    for (const CollectiveUse& use : graph.mixture.forward.collectives) {
      found.push_back(graph.collectives[static_cast<size_t>(use.index)].kind);
    }
    return found;
  };
  using collectives::CollectiveKind;
  EXPECT_THAT(kinds({"plan.tensor_parallel_size=8", "gpu_count=8"}),
              ::testing::ElementsAre(CollectiveKind::kAllReduce));
  EXPECT_THAT(kinds({"plan.expert_parallel_size=8", "gpu_count=8"}),
              ::testing::ElementsAre(CollectiveKind::kAllToAll));
}

// vTrain: hidden 3584 with 28 heads of 128, and a micro-batch of two without a pipeline: kept.
TEST(ReportedInput, TheMicroBatchAskedForIsKept) {
  const Job job =
      Read(Dense(3584, 8, 28, 28, ", head_size: 128"), {"gpu_count=1", "plan.micro_batch_size=2"});
  EXPECT_EQ(job.model.head_size, 128);
  EXPECT_EQ(job.plan.micro_batch_size, 2);
  EXPECT_EQ(BuildTrainingGraph(job, GraphOptions{}).micro_batch_count, 32);
}

}  // namespace
}  // namespace sextant::reported
