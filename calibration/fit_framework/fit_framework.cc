// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit_framework/fit_framework.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/fit/block_fit.h"
#include "common/base/status_macros.h"
#include "common/orchestrator/framework_parameters.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict.h"

namespace sextant::calibration {
namespace {

using orchestrator::FrameworkParameters;
using parameters::AcceleratorParameters;
using parameters::ParameterSet;
using workload::Job;

constexpr size_t kMinProfileRows = 6;
constexpr int kTrainingCount = static_cast<int>(orchestrator::kTrainingDescriptors.size());

// What is known of software without a measurement of time.
// See kFacts.
struct ProfileFact {
  absl::string_view accelerator_prefix;
  absl::string_view profile;
  absl::string_view key;
  double value;
};
constexpr ProfileFact kFacts[] = {
    // Long runs of large products draw more than an H100's power limit and lower its clock, which
    // kernels timed alone do not see. Set by hand after a look at published steps of frameworks
    // that
    // were not fitted (NeMo, MaxText, MosaicML, PyTorch): 6 to 13 % above their kernels on H100,
    // none on A100, whose peak needs less of its limit (312 TFLOP/s at 400 W, 989 at 700 W).
    {"h100", "", "training.compute_slowdown", 1.1},
    // The published A100 runs of Megatron (2021, 2022) are older than FlashAttention (June 2022).
    {"a100", "megatron-lm", "training.fused_attention", 0},
    {"a100", "megatron-deepspeed", "training.fused_attention", 0},
    // FasterTransformer 5 guide: batched GEMMs and a softmax kernel in the context phase.
    {"a100", "fastertransformer-v5", "inference.fused_attention", 0},
    // Decode attention that multiplies on CUDA cores, query head by query head: vLLM's
    // PagedAttention of 2023 and 2024 and TensorRT-LLM's masked multi-head attention. With eight
    // query heads a key head it is 2 to 3 times slower than tensor cores at the memory's rate
    // (FlashInfer, "Accelerating Self-Attentions for LLM Serving", February 2024, figures for A100
    // and H100): 24 to 36 % of the A100's vector rate, 11 to 17 % of the H100's. The slow end:
    // those are whole kernels at their best.
    {"a100", "vllm", "inference.vector_attention_share", 0.24},
    {"a100", "vllm-splitwise-isca24-profiling", "inference.vector_attention_share", 0.24},
    {"a100", "deepspeed-mii", "inference.vector_attention_share", 0.24},
    {"a100", "tensorrt-llm", "inference.vector_attention_share", 0.24},
    {"a100", "tensorrt-llm-0.6.1", "inference.vector_attention_share", 0.24},
    {"a100", "tensorrt-llm-0.9.0", "inference.vector_attention_share", 0.24},
    {"h100", "vllm", "inference.vector_attention_share", 0.12},
    {"h100", "vllm-splitwise-isca24-profiling", "inference.vector_attention_share", 0.12},
    {"h100", "deepspeed-mii", "inference.vector_attention_share", 0.12},
    {"h100", "tensorrt-llm", "inference.vector_attention_share", 0.12},
    {"h100", "tensorrt-llm-0.6.1", "inference.vector_attention_share", 0.12},
    {"h100", "tensorrt-llm-0.9.0", "inference.vector_attention_share", 0.12},
    // XQA, TensorRT-LLM's kernel on matrix units since 0.7, was built for groups of eight (and for
    // whole heads, where it changes nothing).
    {"", "tensorrt-llm", "inference.matrix_attention_group", 8},
    {"", "tensorrt-llm-0.9.0", "inference.matrix_attention_group", 8},
    // Hugging Face's eager models: scores, mask, softmax and context as kernels of their own.
    {"", "pytorch-eager-hf", "inference.fused_attention", 0},
    {"", "pytorch-eager-hf-+-torch.compile", "inference.fused_attention", 0},
    // Engines that plan, sample and count tokens in C++, or on a thread of their own beside the
    // device (TensorRT-LLM's overlap scheduler), add next to nothing for each sequence.
    {"", "fastertransformer-v5", "inference.sequence_seconds", 1e-6},
    {"", "tensorrt-llm", "inference.sequence_seconds", 1e-6},
    {"", "tensorrt-llm-*", "inference.sequence_seconds", 1e-6},
    {"", "trtllm-*", "inference.sequence_seconds", 1e-6},
    {"", "nim-*", "inference.sequence_seconds", 1e-6},
    {"", "lmdeploy-turbomind-*", "inference.sequence_seconds", 1e-6},
    // SGLang's scheduler works one batch ahead of the device since 0.4 ("zero-overhead batch
    // scheduler", LMSYS blog, December 2024: no gap between steps in its profiles).
    {"", "sglang-*", "inference.sequence_seconds", 1e-6},
    // vLLM's SchedulerConfig.DEFAULT_MAX_NUM_BATCHED_TOKENS; its own API server raises it on
    // devices
    // of 70 GiB and more, other front ends do not.
    {"", "vllm-*", "scheduler.max_batch_tokens", 2048},
    // SGLang runs waiting prompts before it decodes on, unless mixed chunks are asked for
    // (scheduler.get_next_batch_to_run; enable_mixed_chunk is off).
    {"", "sglang-*", "scheduler.prefill_first", 1},
    // Cross-entropy over split vocabularies as a dozen element-wise kernels on fp32 logits: about
    // 50 bytes a logit where one fused kernel moves 6 (megatron/core/tensor_parallel/
    // cross_entropy.py; nanotron/parallel/sharded_parameters likewise).
    {"", "megatron-lm", "training.loss_pass_factor", 8},
    {"", "megatron-deepspeed", "training.loss_pass_factor", 8},
    {"", "nanotron", "training.loss_pass_factor", 8},
    // Where cross-entropy keeps a 16-bit and an fp32 copy of the logits, their exponentials and the
    // gradient at once.
    {"", "nanotron", "memory.logits_bytes", 14},
    // DeepSpeed's pipeline engine, which ZeRO needs, sends whole activations from every tensor
    // parallel rank (deepspeed/runtime/pipe/engine.py: is_grad_partitioned = False), and leaves the
    // sum of gradients to autograd.
    {"", "megatron-deepspeed", "training.pipeline_send_split", 0},
    {"", "megatron-deepspeed", "training.fused_gradient_sum", 0},
    // nanotron adds bf16 gradients to fp32 sums after each backward pass.
    {"", "nanotron", "training.fused_gradient_sum", 0},
    // nanotron's ZeRO-1 scatters and gathers tensor by tensor: four matrices and two norms a layer.
    {"", "nanotron", "training.shard_messages_per_layer", 6},
    // Without ZeRO it reduces bucket by bucket: 25 MB of bf16 gradients (ddp_bucket_cap_mb of its
    // configuration and of PyTorch), summed and sent in fp32.
    {"", "nanotron", "training.reduce_bucket_bytes", 5e7},
    // FlashAttention-2 on Hopper: up to 335 TFLOP/s forward and backward together (Dao 2023,
    // section 4.1), where the fitted kernels of the FlashAttention-3 generation reach about 500.
    {"h100", "nanotron", "training.attention_slowdown", 1.5},
    {"h100", "torchtitan", "training.attention_slowdown", 1.5},
    // MPT's Triton kernel with ALiBi. FlashAttention-2 is 1.3 to 1.5 times as fast forward and
    // about twice backward on A100 (Dao 2023, figures 4 to 6); from A100 to H100 code without the
    // new instructions gains a factor of 1.5 (the same, section 4.1).
    {"a100", "pytorch-fsdp", "training.attention_slowdown", 1.9},
    {"h100", "pytorch-fsdp", "training.attention_slowdown", 2.7},
    // Eager cross-entropy: log-softmax and its gradient on fp32 copies of the logits.
    {"", "pytorch-fsdp", "training.loss_pass_factor", 4},
    // Fully sharded data parallelism gathers the next layer while one computes.
    {"", "pytorch-fsdp", "training.data_parallel_hidden", 0.9},
    {"", "pytorch-fsdp2", "training.data_parallel_hidden", 0.9},
    {"", "torchtitan", "training.data_parallel_hidden", 0.9},
    {"", "maxtext", "training.data_parallel_hidden", 0.9},
    {"", "jax", "training.data_parallel_hidden", 0.9},
    // Megatron-Core as NeMo configures it: gradient and parameter exchange behind compute, tensor
    // parallel collectives behind the matrix products that feed them (user buffers), sends of an
    // interleaved schedule behind the next chunk.
    {"", "nemo", "training.data_parallel_hidden", 0.9},
    {"", "nemo", "training.tensor_parallel_hidden", 0.7},
    {"", "nemo", "training.pipeline_send_hidden", 1},
    {"", "megatron-bridge", "training.data_parallel_hidden", 0.9},
    {"", "megatron-bridge", "training.tensor_parallel_hidden", 0.7},
    {"", "megatron-bridge", "training.pipeline_send_hidden", 1},
    // Their recipes of mixtures dispatch by DeepEP or HybridEP on Hopper: a token crosses to each
    // node once (DeepSeek-V3 2024, section 3.2.2, and DeepEP's README).
    {"h100", "megatron-bridge", "training.node_level_dispatch", 1},
    {"h100", "pytorch-fsdp2", "training.node_level_dispatch", 1},
};

struct TrainingStepSeconds {
  std::shared_ptr<const orchestrator::PricedTraining> priced;
  template <typename T>
  bool operator()(const T* values, T* seconds) const {
    *seconds =
        orchestrator::TrainingStep(*priced, orchestrator::TrainingParameters<T>::FromArray(values))
            .Total();
    return true;
  }
};

struct InferenceSeconds {
  std::shared_ptr<const orchestrator::PricedInference> priced;
  InferenceMetric metric;
  template <typename T>
  bool operator()(const T* values, T* seconds) const {
    const auto p = orchestrator::InferenceParameters<T>::FromArray(values);
    switch (metric) {
      case InferenceMetric::kTimeToFirstToken:
        *seconds = orchestrator::PrefillTimes(*priced, p).Total();
        break;
      case InferenceMetric::kInterTokenLatency:
        *seconds = orchestrator::DecodeTimes(*priced, p).Total() /
                   static_cast<double>(priced->decode_step_count);
        break;
      case InferenceMetric::kEndToEnd:
      case InferenceMetric::kThroughput:
        *seconds = orchestrator::PrefillTimes(*priced, p).Total() +
                   orchestrator::DecodeTimes(*priced, p).Total();
        break;
    }
    return true;
  }
};

// What a rank holds between micro-batches. Allocator statistics that frameworks print at the end of
// a step are often reset after the passes, so that activations and logits are not in them; those
// keep their derived values. Piecewise linear in each parameter: a forward difference is its slope.
PredictSeconds MemoryRow(std::shared_ptr<const Job> job, size_t count) {
  return [job = std::move(job), count](const double* values, double* bytes, double* gradient) {
    const auto total = [&](const double* v) {
      return orchestrator::ResidentTrainingBytes(
          *job, orchestrator::MemoryParameters<double>::FromArray(v));
    };
    *bytes = total(values);
    if (gradient == nullptr) return;
    std::vector<double> moved(values, values + count);
    for (size_t i = 0; i < count; ++i) {
      const double step = std::max(1e-3 * std::abs(values[i]), 1e-3);
      moved[i] = values[i] + step;
      gradient[i] = (total(moved.data()) - *bytes) / step;
      moved[i] = values[i];
    }
  };
}

// What the allocator holds at its peak, of which only its waste is fitted.
PredictSeconds ReservedRow(double peak_bytes) {
  return [peak_bytes](const double* values, double* bytes, double* gradient) {
    *bytes = peak_bytes * (1 + values[0]);
    if (gradient != nullptr) gradient[0] = peak_bytes;
  };
}

constexpr size_t kContextBytes = 0;  // in kMemoryDescriptors
constexpr size_t kFragmentation = 5;
// Of many runs that fill a device the fullest shows what the allocator can have of it.
constexpr size_t kMinFullestOf = 30;
constexpr double kFullShare = 0.85;

class Fitter {
 public:
  Fitter(absl::string_view accelerator, const ParameterSet& set) : accelerator_(accelerator) {
    for (const ProfileFact& fact : kFacts) {
      if (!absl::StartsWith(accelerator, fact.accelerator_prefix)) continue;
      parameters::ParameterValues& values =
          fact.profile.empty() ? result_.parameters.shared
                               : result_.parameters.profiles[std::string(fact.profile)];
      values[std::string(fact.key)] = {.value = fact.value};
    }
    set_ = std::make_shared<const ParameterSet>(
        WithFramework(set, accelerator, result_.parameters, set.provenance()));
    operators_ = std::make_unique<orchestrator::LocalOperatorCost>(set_);
    network_ = std::make_unique<orchestrator::LocalNetworkTime>(set_);
  }

  absl::Status FitTraining(const std::string& profile,
                           const std::vector<const FrameworkTrainingRow*>& rows) {
    BlockFitProblem times = Problem(orchestrator::kTrainingDescriptors);
    BlockFitProblem memory = Problem(orchestrator::kMemoryDescriptors);
    FrameworkParameters<double> resolved;
    for (const FrameworkTrainingRow* row : rows) {
      if (const absl::Status valid = workload::ValidateJob(row->job); !valid.ok()) {
        result_.notes.push_back(absl::StrCat(row->id, ": ", std::string(valid.message())));
        continue;
      }
      resolved =
          orchestrator::ResolveFrameworkParameters(*set_, row->job.cluster.accelerator, profile);
      const orchestrator::GraphOptions options = orchestrator::OptionsFor(row->job, resolved);
      if (row->measured_seconds > 0) {
        const orchestrator::TrainingGraph graph =
            orchestrator::BuildTrainingGraph(row->job, options);
        SEXTANT_ASSIGN_OR_RETURN(const orchestrator::PortAnswers answers,
                                 orchestrator::AskPorts(graph, row->job, *operators_, *network_));
        auto priced = std::make_shared<const orchestrator::PricedTraining>(
            orchestrator::PriceTraining(graph, answers, row->job));
        times.rows.push_back({DifferentiatedRow<kTrainingCount>(
                                  TrainingStepSeconds{std::move(priced)}, kTrainingCount),
                              row->measured_seconds});
      }
      if (row->measured_memory_bytes.has_value()) {
        memory.rows.push_back(
            {MemoryRow(std::make_shared<const Job>(row->job), memory.descriptors.size()),
             *row->measured_memory_bytes});
      }
    }
    if (times.rows.size() >= kMinProfileRows) {
      const auto& t = resolved.training;
      times.start = {t.step_seconds,         t.micro_batch_seconds,     t.dispatch_seconds,
                     t.compute_slowdown,     t.memory_pass_factor,      t.tensor_parallel_hidden,
                     t.data_parallel_hidden, t.collective_host_seconds, t.attention_slowdown,
                     t.fused_attention,      t.loss_pass_factor,        t.fused_gradient_sum,
                     t.pipeline_send_hidden, t.pipeline_send_split,     t.shard_messages_per_layer,
                     t.reduce_bucket_bytes,  t.node_level_dispatch};
      // Facts about a framework's code, most of which choose the kernels that were priced.
      std::fill(times.constant.begin() + orchestrator::kFittedTrainingParameters,
                times.constant.end(), true);
      AddHostBoundStart(times, 2);
      // Kernels as slow as they are alone, too: their pace and the host's explain each other.
      const size_t slowdown = 3;
      times.other_starts.push_back(times.start);
      const size_t starts = times.other_starts.size();
      for (size_t i = 0; i < starts; ++i) {
        times.other_starts.push_back(times.other_starts[i]);
        times.other_starts.back()[slowdown] = orchestrator::kTrainingDescriptors[slowdown].initial;
      }
      SEXTANT_ASSIGN_OR_RETURN(const BlockFitResult fit, FitBlock(times, kOptions));
      Store(profile, orchestrator::kTrainingBlock, times, fit);
    }
    if (memory.rows.size() >= kMinProfileRows) {
      const auto& m = resolved.memory;
      memory.start = {
          m.context_bytes, m.workspace_bytes, m.activation_factor,         m.gradient_bytes,
          m.logits_bytes,  m.fragmentation,   m.inference_memory_fraction, m.shard_buffer_bytes};
      for (const size_t unseen : {0, 2, 4, 5, 6}) memory.constant[unseen] = true;
      SEXTANT_ASSIGN_OR_RETURN(const BlockFitResult fit, FitBlock(memory, kOptions));
      Store(profile, orchestrator::kMemoryBlock, memory, fit);
    }
    return FitReserved(profile, rows);
  }

  // What the allocator wastes, and what of the device it cannot have, from runs whose allocator
  // statistics give both.
  absl::Status FitReserved(const std::string& profile,
                           const std::vector<const FrameworkTrainingRow*>& rows) {
    const auto& descriptors = orchestrator::kMemoryDescriptors;
    BlockFitProblem problem;
    problem.descriptors = {descriptors[kFragmentation]};
    problem.constant = {false};
    double fullest = 0;
    double capacity = 0;
    const ParameterSet set = WithFramework(*set_, accelerator_, result_.parameters, {});
    for (const FrameworkTrainingRow* row : rows) {
      if (!row->measured_reserved_bytes.has_value() || !workload::ValidateJob(row->job).ok()) {
        continue;
      }
      const FrameworkParameters<double> resolved =
          orchestrator::ResolveFrameworkParameters(set, row->job.cluster.accelerator, profile);
      const double peak = static_cast<double>(
          orchestrator::PredictMemory(row->job, resolved.memory,
                                      orchestrator::OptionsFor(row->job, resolved).fused_attention)
              .total_bytes);
      problem.start = {resolved.memory.fragmentation};
      problem.rows.push_back({ReservedRow(peak), *row->measured_reserved_bytes});
      fullest = std::max(fullest, *row->measured_reserved_bytes);
      capacity = static_cast<double>(row->job.cluster.accelerator.hbm_bytes);
    }
    if (problem.rows.size() < kMinProfileRows) return absl::OkStatus();
    SEXTANT_ASSIGN_OR_RETURN(const BlockFitResult fit, FitBlock(problem, kOptions));
    Store(profile, orchestrator::kMemoryBlock, problem, fit);
    if (problem.rows.size() >= kMinFullestOf && fullest > kFullShare * capacity) {
      const parameters::ParameterDescriptor& context = descriptors[kContextBytes];
      result_.parameters
          .profiles[profile][absl::StrCat(orchestrator::kMemoryBlock, ".", context.name)] = {
          .value = std::clamp(capacity - fullest, context.lower, context.upper)};
    }
    return absl::OkStatus();
  }

  absl::Status FitInference(const std::string& profile,
                            const std::vector<const FrameworkInferenceRow*>& rows) {
    BlockFitProblem problem = Problem(orchestrator::kInferenceDescriptors);
    FrameworkParameters<double> resolved;
    for (const FrameworkInferenceRow* row : rows) {
      const absl::Status valid = workload::ValidateJob(row->job);
      if (!valid.ok() || !(row->measured_seconds > 0)) {
        result_.notes.push_back(absl::StrCat(row->id, ": ", std::string(valid.message())));
        continue;
      }
      resolved =
          orchestrator::ResolveFrameworkParameters(*set_, row->job.cluster.accelerator, profile);
      const orchestrator::InferenceGraph graph =
          orchestrator::BuildInferenceGraph(row->job, orchestrator::OptionsFor(row->job, resolved));
      if (row->metric == InferenceMetric::kInterTokenLatency && graph.decode_step_count == 0) {
        result_.notes.push_back(absl::StrCat(row->id, ": no token after the first"));
        continue;
      }
      SEXTANT_ASSIGN_OR_RETURN(const orchestrator::PortAnswers answers,
                               orchestrator::AskPorts(graph, row->job, *operators_, *network_));
      auto priced =
          std::make_shared<const orchestrator::PricedInference>(orchestrator::PriceInference(
              graph, answers, orchestrator::VectorAttentionRate(row->job, resolved.inference)));
      problem.rows.push_back(
          {DifferentiatedRow<11>(InferenceSeconds{std::move(priced), row->metric}, 11),
           row->measured_seconds});
    }
    if (problem.rows.size() < kMinProfileRows) return absl::OkStatus();
    const auto& p = resolved.inference;
    problem.start = {p.step_seconds,           p.prefill_seconds,  p.prompt_token_seconds,
                     p.sequence_seconds,       p.dispatch_seconds, p.pass_tokens,
                     p.tensor_parallel_factor, p.fused_attention,  p.vector_attention_share,
                     p.matrix_attention_group, p.eager_dispatch_seconds};
    // Static batches of one engine do not tell an engine's collectives from its overheads; the
    // others choose what was priced.
    for (const size_t held : {5, 6, 7, 8, 9, 10}) problem.constant[held] = true;
    AddHostBoundStart(problem, 4);
    SEXTANT_ASSIGN_OR_RETURN(const BlockFitResult fit, FitBlock(problem, kOptions));
    Store(profile, orchestrator::kInferenceBlock, problem, fit);
    return absl::OkStatus();
  }

  FrameworkFitResult Take() && { return std::move(result_); }

 private:
  static constexpr BlockFitOptions kOptions{.robust_scale = 0.1, .prior_rows = 0.1};

  // Dispatch has no slope while the device is the slower side: search from the other side too.
  static void AddHostBoundStart(BlockFitProblem& problem, size_t dispatch) {
    for (const double seconds : {1e-5, 3e-5, 1e-4}) {
      problem.other_starts.push_back(problem.start);
      problem.other_starts.back()[dispatch] = seconds;
    }
  }

  template <size_t N>
  static BlockFitProblem Problem(const std::array<parameters::ParameterDescriptor, N>& d) {
    BlockFitProblem problem;
    problem.descriptors.assign(d.begin(), d.end());
    problem.constant.assign(N, false);
    return problem;
  }

  void Store(const std::string& profile, absl::string_view block, const BlockFitProblem& problem,
             const BlockFitResult& fit) {
    parameters::ParameterValues& values =
        profile.empty() ? result_.parameters.shared : result_.parameters.profiles[profile];
    for (size_t i = 0; i < problem.descriptors.size(); ++i) {
      if (problem.constant[i]) continue;
      values[absl::StrCat(block, ".", problem.descriptors[i].name)] = {
          .value = fit.shared[i].value, .standard_error = fit.shared[i].standard_error};
    }
    result_.fits.push_back({profile, std::string(block), static_cast<int>(problem.rows.size()),
                            fit.start_mape_percent, fit.mape_percent, fit.scatter});
  }

  const std::string accelerator_;
  FrameworkFitResult result_;
  std::shared_ptr<const ParameterSet> set_;
  std::unique_ptr<orchestrator::LocalOperatorCost> operators_;
  std::unique_ptr<orchestrator::LocalNetworkTime> network_;
};

template <typename Row>
std::map<std::string, std::vector<const Row*>> ByProfile(absl::Span<const Row> rows,
                                                         absl::string_view accelerator) {
  std::map<std::string, std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    if (row.job.cluster.accelerator.name == accelerator) groups[row.job.framework].push_back(&row);
  }
  return groups;
}

bool MayFit(const RowFacts& facts) { return facts.Usable() && facts.may_fit && facts.counted; }

}  // namespace

std::vector<FrameworkTrainingRow> FrameworkTrainingRows(const Measurements& measurements) {
  std::vector<FrameworkTrainingRow> rows;
  for (const TrainingRow& row : measurements.training) {
    if (!MayFit(row.facts) || !row.measured_seconds.has_value()) continue;
    if (row.job.plan.tensor_parallel_size > row.job.cluster.gpus_per_node) continue;
    FrameworkTrainingRow fit{
        .id = row.facts.id, .job = row.job, .measured_seconds = *row.measured_seconds};
    fit.job.framework = row.facts.profile;
    if (row.memory_is_allocated && row.measured_memory_bytes.has_value()) {
      fit.measured_memory_bytes = static_cast<double>(*row.measured_memory_bytes);
    }
    if (row.measured_reserved_bytes.has_value()) {
      fit.measured_reserved_bytes = static_cast<double>(*row.measured_reserved_bytes);
    }
    rows.push_back(std::move(fit));
  }
  return rows;
}

std::vector<FrameworkInferenceRow> FrameworkInferenceRows(const Measurements& measurements) {
  std::vector<FrameworkInferenceRow> rows;
  for (const InferenceRow& row : measurements.inference) {
    if (!MayFit(row.facts) || row.job.serving.has_value()) continue;
    const bool apart = std::any_of(row.measured.begin(), row.measured.end(), [](const auto& m) {
      return m.metric == InferenceMetric::kInterTokenLatency;
    });
    for (const InferenceMeasurement& measured : row.measured) {
      if (measured.metric == InferenceMetric::kThroughput ||
          (apart && measured.metric == InferenceMetric::kEndToEnd)) {
        continue;
      }
      rows.push_back({row.facts.id, row.job, measured.metric, measured.seconds});
      rows.back().job.framework = row.facts.profile;
    }
  }
  return rows;
}

absl::StatusOr<FrameworkFitResult> FitFramework(absl::Span<const FrameworkTrainingRow> training,
                                                absl::Span<const FrameworkInferenceRow> inference,
                                                absl::string_view accelerator,
                                                const ParameterSet& set) {
  Fitter fitter(accelerator, set);
  for (const auto& [profile, rows] : ByProfile(training, accelerator)) {
    SEXTANT_RETURN_IF_ERROR(fitter.FitTraining(profile, rows));
  }
  for (const auto& [profile, rows] : ByProfile(inference, accelerator)) {
    SEXTANT_RETURN_IF_ERROR(fitter.FitInference(profile, rows));
  }
  return std::move(fitter).Take();
}

ParameterSet WithFramework(const ParameterSet& set, absl::string_view accelerator,
                           const AcceleratorParameters& fitted, parameters::Provenance provenance) {
  auto accelerators = set.accelerators();
  AcceleratorParameters& target = accelerators[std::string(accelerator)];
  for (const auto& [key, value] : fitted.shared) target.shared[key] = value;
  for (const auto& [profile, values] : fitted.profiles) {
    for (const auto& [key, value] : values) target.profiles[profile][key] = value;
  }
  return ParameterSet(std::move(provenance), std::move(accelerators));
}

}  // namespace sextant::calibration
