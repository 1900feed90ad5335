// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert.h"

#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"
#include "common/wire/convert_advice.h"
#include "common/wire/convert_concurrent.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int kRounds = 300;

// Seeded random domain values of every shape; validity does not matter, only that nothing is lost.
class Values {
 public:
  explicit Values(unsigned seed) : engine_(seed) {}

  int64_t Count() { return static_cast<int64_t>(engine_() >> (engine_() % 60)) / 2 + 1; }
  int Small() { return static_cast<int>(engine_() % 100'000); }
  double Number() {
    return std::ldexp(std::uniform_real_distribution<>(0.5, 1)(engine_), Small() % 120 - 60);
  }
  bool Flip() { return engine_() % 2 == 0; }
  std::string Text() { return absl::StrCat("x", engine_() % 1000); }
  template <typename Enum>
  Enum Choice(int count) {
    return static_cast<Enum>(engine_() % static_cast<unsigned>(count));
  }
  hardware::Precision Precision() { return Choice<hardware::Precision>(hardware::kPrecisionCount); }

  hardware::Accelerator Accelerator() {
    hardware::Accelerator a{.name = Text(),
                            .architecture = Text(),
                            .parameter_donor = Text(),
                            .sm_count = Small(),
                            .boost_clock_hz = Number()};
    for (double& rate : a.matrix_flop_per_second) rate = Number();
    a.vector_flop_per_second = Number();
    a.shared_memory_bytes_per_sm = Count();
    a.l2_bytes = Count();
    a.l2_bandwidth_bytes_per_second = Number();
    a.hbm_bytes = Count();
    a.hbm_bandwidth_bytes_per_second = Number();
    a.nvlink_bandwidth_bytes_per_second = Number();
    a.pcie_bandwidth_bytes_per_second = Number();
    a.power_watts = Number();
    return a;
  }

  hardware::Cluster Cluster() {
    return {.name = Text(),
            .accelerator = Accelerator(),
            .gpus_per_node = Small(),
            .node_count = Count(),
            .node_fabric = Choice<hardware::NodeFabric>(3),
            .node_bandwidth_bytes_per_second = Number(),
            .node_latency_seconds = Number(),
            .network_bandwidth_bytes_per_second = Number(),
            .network_latency_seconds = Number(),
            .oversubscription = Number(),
            .network_stated = Flip()};
  }

  workload::ModelArchitecture Model() {
    workload::ModelArchitecture m;
    m.name = Text();
    m.hidden_size = Count();
    m.layer_count = Count();
    m.attention_head_count = Count();
    m.kv_head_count = Count();
    m.head_size = Count();
    m.ffn_size = Count();
    m.gated_ffn = Flip();
    m.vocabulary_size = Count();
    m.tied_embeddings = Flip();
    m.learned_position_count = Count();
    m.linear_bias = Flip();
    m.qkv_bias = Flip();
    m.layer_norm = Flip();
    m.causal = Flip();
    m.sliding_window = Count();
    m.full_attention_interval = Count();
    m.gated_attention = Flip();
    if (Flip()) m.linear_attention = {Count(), Count(), Count(), Count(), Count()};
    m.patch_input_size = Count();
    m.vocabulary_multiple = Count();
    if (Flip()) m.latent_attention = {Count(), Count(), Count(), Count(), Count()};
    if (Flip()) m.experts = {Count(), Count(), Count(), Count(), Count(), Count(), Number()};
    return m;
  }

  workload::Job Job() {
    workload::Job job;
    job.model = Model();
    job.cluster = Cluster();
    job.gpu_count = Count();
    job.precision = Precision();
    if (Flip()) {
      job.workload =
          workload::TrainingWorkload{Count(), Count(), Choice<workload::Optimizer>(2), Count()};
    } else {
      job.workload = workload::InferenceWorkload{Count(), Count(), Count(), Precision(),
                                                 Count(), Count(), Number()};
      auto& work = std::get<workload::InferenceWorkload>(job.workload);
      work.speculation = {Count(), Number(), Number()};
      if (Flip()) work.captured_graphs = Flip();
      work.background_share = Number();
    }
    job.plan = {.tensor_parallel_size = Count(),
                .sequence_parallel = Flip(),
                .pipeline_parallel_size = Count(),
                .virtual_pipeline_size = Count(),
                .context_parallel_size = Count(),
                .expert_parallel_size = Count(),
                .data_parallel_size = Count(),
                .micro_batch_size = Count(),
                .zero_stage = Small(),
                .schedule = Choice<workload::PipelineSchedule>(6),
                .recompute = Choice<workload::Recompute>(3),
                .stage_split = Choice<workload::StageSplit>(2),
                .stage_layer_counts = {Count(), Count()},
                .expert_tensor_parallel_size = Count(),
                .shard_group_size = Count(),
                .context_mode = Choice<workload::ContextMode>(2)};
    if (Flip()) job.serving = Load();
    job.framework = Text();
    for (int i = Small() % 3; i > 0; --i)
      job.faults.push_back({Text(), Number(), Count(), Number()});
    return job;
  }

  operator_cost::Operator Operator() {
    operator_cost::Operator op;
    op.precision = Precision();
    switch (Small() % 4) {
      case 0:
        op.shape = operator_cost::GemmShape{Count(), Count(),     Count(), Count(),
                                            Count(), Precision(), Flip()};
        break;
      case 1:
        op.shape = operator_cost::AttentionShape{Choice<operator_cost::AttentionPhase>(3),
                                                 Count(),
                                                 Count(),
                                                 Count(),
                                                 Count(),
                                                 Count(),
                                                 Count(),
                                                 Flip(),
                                                 Precision(),
                                                 Count()};
        break;
      case 2:
        op.shape = operator_cost::MemoryBoundShape{Choice<operator_cost::MemoryBoundKind>(14),
                                                   Count(), Count()};
        break;
      default:
        op.shape =
            operator_cost::ExpertFfnShape{Count(), Count(), Count(),     Count(), Count(), Count(),
                                          Count(), Flip(),  Precision(), Flip(),  Number()};
    }
    return op;
  }

  serving::Percentiles Percentiles() { return {Number(), Number(), Number(), Number()}; }

  serving::ServingReport Report() {
    serving::ServingReport r{Count(),  Count(),       Count(),       Count(),      Count(),
                             Number(), Percentiles(), Percentiles(), Percentiles()};
    for (double* value :
         {&r.requests_per_second, &r.output_tokens_per_second, &r.goodput_requests_per_second,
          &r.utilization, &r.peak_kv_fraction, &r.prefill_seconds, &r.mixed_seconds,
          &r.decode_seconds, &r.idle_seconds}) {
      *value = Number();
    }
    if (Flip()) r.capacity_requests_per_second = Number();
    if (Flip()) r.load_fraction = Number();
    r.saturated = Flip();
    if (Flip()) r.tokens_per_decode_step = Number();
    r.adapter_load_count = Count();
    if (Flip()) r.encoder_utilization = Number();
    return r;
  }

  serving::ServingLoad Load() {
    return {.arrival = Choice<serving::Arrival>(4),
            .concurrency = Count(),
            .requests_per_second = Number(),
            .request_count = Count(),
            .seed = Count(),
            .length_spread = Number(),
            .trace = {{Number(), Count(), Count(), Count()}},
            .think_seconds = Number(),
            .max_batch_tokens = Flip() ? std::optional<int64_t>(Count()) : std::nullopt,
            .max_batch_sequences = Count(),
            .chunked_prefill = Flip(),
            .prefill_first = Flip() ? std::optional<bool>(Flip()) : std::nullopt,
            .shared_prefix_tokens = Count(),
            .prefill_replica_count = Count(),
            .adapters = {Count(), Count(), Count(), Number()},
            .images = {Count(), Count(), Count(), Count(), Count(), Count(), Count(), Count()},
            .time_to_first_token_limit_seconds = Number(),
            .inter_token_latency_limit_seconds = Number()};
  }

  orchestrator::Prediction Prediction() {
    orchestrator::Prediction p;
    p.total_seconds = Number();
    p.interval_low_seconds = Number();
    p.interval_high_seconds = Number();
    p.breakdown = {{Text(), Number()}, {Text(), Number()}};
    p.tokens_per_second = Number();
    p.tokens_per_second_per_gpu = Number();
    p.model_flops_utilization = Number();
    p.memory = {Count(), Count(), Flip(), Count(), {{Text(), Count()}}, Count(), std::nullopt};
    if (Flip()) p.memory.largest_micro_batch_size = Flip() ? Count() : 0;
    p.binding = {Text()};
    if (Flip()) p.time_to_first_token_seconds = Flip() ? Number() : 0;
    if (Flip()) p.inter_token_latency_seconds = Flip() ? Number() : 0;
    if (Flip()) p.time_to_first_token_interval = parameters::Interval{Number(), Number()};
    if (Flip()) p.inter_token_latency_interval = parameters::Interval{Number(), Number()};
    if (Flip()) p.kv_cache_capacity_tokens = Flip() ? Count() : 0;
    if (Flip()) p.serving = Report();
    p.parameter_set = Text();
    p.extrapolated = Flip();
    p.warnings = {Text(), Text()};
    p.sensitivities = {{Text(), Number()}};
    return p;
  }

  parameters::ParameterSet ParameterSet() {
    std::map<std::string, parameters::AcceleratorParameters, std::less<>> all;
    for (int i = Small() % 3; i > 0; --i) {
      parameters::AcceleratorParameters& a = all[Text()];
      a.shared[Text()] = {Number(), std::nullopt};
      a.shared[Text()] = {Number(), Number()};
      a.profiles[Text()][Text()] = {Number(), Number()};
      a.domain.push_back({Text(), Text(), Number(), Number()});
      a.measured.push_back({Text(), Text(), Count()});
    }
    return parameters::ParameterSet({Text(), {Text()}, {Text(), Text()}}, std::move(all));
  }

 private:
  std::mt19937_64 engine_;
};

template <typename T>
void ExpectRoundTrip(const T& value, int round) {
  const auto back = FromProto(ToProto(value));
  ASSERT_TRUE(back.ok()) << "seed " << round << ": " << back.status().message();
  EXPECT_TRUE(*back == value) << "seed " << round;
}

TEST(RoundTrip, EveryJobComesBack) {
  for (int i = 0; i < kRounds; ++i) ExpectRoundTrip(Values(static_cast<unsigned>(i)).Job(), i);
}

TEST(RoundTrip, EveryOperatorComesBack) {
  for (int i = 0; i < kRounds; ++i) ExpectRoundTrip(Values(static_cast<unsigned>(i)).Operator(), i);
}

TEST(RoundTrip, CollectivesBesideEachOtherComeBack) {
  collectives::ConcurrentCollectives question{
      .cluster = Values(1).Job().cluster, .gpu_count = 16, .profile = "nccl-2.23"};
  question.faults.patterns = {{"rail*", 0.25, 0}};
  question.faults.dead_switches = {"leaf0"};
  question.collectives = {
      {"data", collectives::CollectiveKind::kBroadcast, 1e6, {{0, 8}, {1, 9}}, 2},
      {"all", collectives::CollectiveKind::kAllToAll, 3, {{5}}, 0}};
  ExpectRoundTrip(question, 0);
  ExpectRoundTrip(collectives::ConcurrentTimes{{{1.5, 0.5}, {2, 2}}, "ep3->rail3"}, 0);
}

TEST(RoundTrip, EveryPredictionComesBack) {
  for (int i = 0; i < kRounds; ++i)
    ExpectRoundTrip(Values(static_cast<unsigned>(i)).Prediction(), i);
}

TEST(RoundTrip, EveryAdviceAndItsOptionsComeBack) {
  for (int i = 0; i < kRounds; ++i) {
    Values v(static_cast<unsigned>(i));
    advise::Advice advice{.feasible = v.Flip(),
                          .reason = v.Text(),
                          .gpu_count = v.Count(),
                          .plan = v.Job().plan,
                          .prediction = v.Prediction(),
                          .run_seconds = v.Number(),
                          .run_low_seconds = v.Number(),
                          .run_high_seconds = v.Number(),
                          .suggested_time_limit_seconds = v.Count(),
                          .memory_headroom_bytes = v.Count(),
                          .curve = {{v.Count(), v.Job().plan, v.Number(), v.Number(), v.Number(),
                                     v.Number()}}};
    if (v.Flip()) advice.energy_joules = {v.Number(), v.Number(), v.Number()};
    if (v.Flip()) advice.cost_dollars = {v.Number(), v.Number(), v.Number()};
    ExpectRoundTrip(advice, i);
    advise::AdviceOptions options{.max_gpu_count = v.Count(),
                                  .min_gpu_count = v.Count(),
                                  .step_count = v.Count(),
                                  .time_limit_margin = v.Number()};
    options.economics.dollars_per_gpu_hour[v.Text()] = {v.Number(), v.Number(), v.Number()};
    ExpectRoundTrip(options, i);
  }
}

TEST(RoundTrip, EveryEstimateAndCollectiveComesBack) {
  for (int i = 0; i < kRounds; ++i) {
    Values v(static_cast<unsigned>(i));
    ExpectRoundTrip(operator_cost::OperatorEstimate{v.Number(), v.Choice<operator_cost::Binding>(5),
                                                    v.Number(), v.Number(), v.Number(), v.Flip()},
                    i);
    ExpectRoundTrip(collectives::CollectiveEstimate{v.Number(), v.Number(), v.Flip(), v.Flip(),
                                                    v.Number(), v.Number()},
                    i);
    ExpectRoundTrip(collectives::Collective{v.Choice<collectives::CollectiveKind>(6), v.Number(),
                                            v.Count(), v.Count(), v.Count()},
                    i);
  }
}

TEST(RoundTrip, EveryParameterSetKeepsItsVersion) {
  for (int i = 0; i < kRounds; ++i) {
    const parameters::ParameterSet set = Values(static_cast<unsigned>(i)).ParameterSet();
    const auto back = FromProto(ToProto(set));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(back->version(), set.version());
    EXPECT_EQ(back->accelerators(), set.accelerators());
    EXPECT_EQ(back->provenance(), set.provenance());
  }
}

TEST(FromProto, AbsentFieldsTakeTheDefaultsOfTheContract) {
  types::v1::Job proto;
  proto.mutable_model()->set_hidden_size(4096);
  proto.mutable_model()->set_attention_head_count(32);
  proto.mutable_cluster()->mutable_accelerator();
  proto.mutable_inference()->set_prompt_tokens(8);
  const auto job = FromProto(proto);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->gpu_count, 1);
  EXPECT_EQ(job->precision, hardware::Precision::kBf16);
  EXPECT_EQ(job->model.kv_head_count, 32);
  EXPECT_EQ(job->model.head_size, 128);
  EXPECT_TRUE(job->model.causal);
  EXPECT_EQ(job->cluster.gpus_per_node, 8);
  EXPECT_EQ(job->cluster.oversubscription, 1);
  EXPECT_TRUE(job->cluster.network_stated);
  EXPECT_EQ(job->plan, workload::ParallelPlan());
  EXPECT_EQ(std::get<workload::InferenceWorkload>(job->workload).batch_size, 1);
}

TEST(FromProto, AnExplicitZeroIsNotTheDefault) {
  types::v1::ParallelPlan proto;
  proto.set_tensor_parallel_size(0);
  EXPECT_EQ(FromProto(proto)->tensor_parallel_size, 0);
}

TEST(FromProto, EveryViolationIsNamedWithItsPath) {
  types::v1::Job proto;
  proto.mutable_cluster()->mutable_accelerator()->set_power_watts(
      std::numeric_limits<double>::quiet_NaN());
  proto.mutable_cluster()->mutable_accelerator()->set_sm_count(int64_t{1} << 40);
  proto.mutable_cluster()->set_node_fabric("ethernet");
  proto.set_precision("fp17");
  proto.mutable_plan()->set_schedule("magic");
  proto.add_faults()->set_bandwidth_fraction(std::numeric_limits<double>::infinity());
  const absl::Status status = FromProto(proto).status();
  const std::string message(status.message());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::ViolationsOf(status), SizeIs(8));
  EXPECT_THAT(message, HasSubstr("model: is missing"));
  EXPECT_THAT(message, HasSubstr("training: is missing"));
  EXPECT_THAT(message, HasSubstr("cluster.accelerator.power_watts: is nan"));
  EXPECT_THAT(message, HasSubstr("cluster.accelerator.sm_count: is 1099511627776"));
  EXPECT_THAT(message, HasSubstr("cluster.node_fabric: is \"ethernet\" but must be one of"));
  EXPECT_THAT(message, HasSubstr("precision: is \"fp17\""));
  EXPECT_THAT(message, HasSubstr("plan.schedule: is \"magic\""));
  EXPECT_THAT(message, HasSubstr("faults[0].bandwidth_fraction: is inf"));
}

TEST(FromProto, AnOperatorWithoutAShapeIsRefused) {
  EXPECT_THAT(std::string(FromProto(types::v1::Operator()).status().message()),
              HasSubstr("shape: is missing"));
}

TEST(FromProto, WeightsHaveTheOperatorsPrecisionUnlessSaid) {
  types::v1::Operator proto;
  proto.mutable_gemm()->set_m(1);
  proto.set_precision("fp8");
  EXPECT_EQ(std::get<operator_cost::GemmShape>(FromProto(proto)->shape).weight_precision,
            hardware::Precision::kFp8);
}

TEST(FromProto, AVersionThatIsNotTheHashOfTheContentIsRefused) {
  types::v1::ParameterSet proto = ToProto(Values(7).ParameterSet());
  proto.set_version("0000000000000000");
  EXPECT_THAT(std::string(FromProto(proto).status().message()), HasSubstr("version: is \"0000"));
  proto.clear_version();
  EXPECT_TRUE(FromProto(proto).ok());
}

}  // namespace
}  // namespace sextant::wire
