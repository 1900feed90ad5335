// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WORKLOAD_JOB_H_
#define SEXTANT_COMMON_WORKLOAD_JOB_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/hardware/cluster.h"
#include "common/serving/serving_load.h"
#include "common/serving/speculation.h"
#include "common/workload/model_architecture.h"

namespace sextant::workload {

enum class PipelineSchedule : int {
  kGpipe,
  k1f1b,
  kInterleaved,
  kZeroBubbleH1,  // weight gradients fill the drain; memory of 1F1B (Qi et al. 2023)
  kZeroBubbleH2,  // and the warm-up; up to twice the memory of 1F1B
  kDualPipe,      // two directions of micro-batches, two chunks a rank (DeepSeek-V3 2024)
};
// How layers are cut into pipeline stages.
enum class StageSplit : int {
  kEven,     // equally many layers in each chunk
  kCompute,  // equal arithmetic, the output head counted; a stage may end up without layers
};
// How context parallel ranks share attention.
enum class ContextMode : int {
  kRing,      // keys and values pass around, behind the attention of the piece at hand
  kAllToAll,  // heads are exchanged for sequence before and after attention (Ulysses)
};
enum class Recompute : int { kNone, kSelective, kFull };
enum class Optimizer : int { kAdam, kSgd };

// "gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "dualpipe"
absl::string_view PipelineScheduleName(PipelineSchedule);
absl::string_view StageSplitName(StageSplit);    // "even", "compute"
absl::string_view ContextModeName(ContextMode);  // "ring", "all-to-all"
absl::string_view RecomputeName(Recompute);      // "none", "selective", "full"
absl::string_view OptimizerName(Optimizer);      // "adam", "sgd"
// INVALID_ARGUMENT ("is "x" but must be one of ...") for an unknown word.
absl::StatusOr<PipelineSchedule> ParsePipelineSchedule(absl::string_view name);
absl::StatusOr<StageSplit> ParseStageSplit(absl::string_view name);
absl::StatusOr<ContextMode> ParseContextMode(absl::string_view name);
absl::StatusOr<Recompute> ParseRecompute(absl::string_view name);
absl::StatusOr<Optimizer> ParseOptimizer(absl::string_view name);

// How a job is laid out. Sizes multiply: tensor x context x data x pipeline = GPU count; expert
// parallel groups lie inside the data (and context) parallel ranks.
// Ranks are numbered tensor first, then context, data, pipeline last.
struct ParallelPlan {
  int64_t tensor_parallel_size = 1;
  bool sequence_parallel = false;
  int64_t pipeline_parallel_size = 1;
  int64_t virtual_pipeline_size = 1;  // model chunks per pipeline rank; > 1: interleaved
  int64_t context_parallel_size = 1;
  int64_t expert_parallel_size = 1;
  int64_t data_parallel_size = 1;
  int64_t micro_batch_size = 1;  // sequences
  int zero_stage = 0;            // 0..3; 3 is also FSDP
  PipelineSchedule schedule = PipelineSchedule::k1f1b;
  Recompute recompute = Recompute::kNone;
  StageSplit stage_split = StageSplit::kEven;
  // Layers of each model chunk in model order; empty: as stage_split says. Sums to the layers.
  std::vector<int64_t> stage_layer_counts;
  // Ways in which one routed expert is split; 0: the tensor parallel size where expert groups lie
  // in the data and context parallel ranks, 1 where they reach into the tensor parallel ones.
  int64_t expert_tensor_parallel_size = 0;
  // Ranks over which ZeRO shards; 0: all data and context parallel ranks. Fewer: hybrid sharding,
  // each group a whole copy.
  int64_t shard_group_size = 0;
  ContextMode context_mode = ContextMode::kRing;

  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
};

struct TrainingWorkload {
  int64_t global_batch_size = 0;  // sequences per optimizer step
  int64_t sequence_length = 0;    // tokens
  Optimizer optimizer = Optimizer::kAdam;
  // Rank of low-rank adapters on the attention projections, all other weights frozen (LoRA); 0:
  // every weight is trained.
  int64_t lora_rank = 0;

  friend bool operator==(const TrainingWorkload&, const TrainingWorkload&) = default;
};

// One static batch: every request has the same lengths and starts at once.
struct InferenceWorkload {
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;  // 0: prefill only, nothing is sampled
  int64_t batch_size = 1;     // sequences, over the whole instance
  hardware::Precision kv_cache_precision = hardware::Precision::kBf16;
  int64_t kv_cache_page_tokens = 16;     // cached tokens come in pages of this many
  int64_t kv_cache_capacity_tokens = 0;  // as the engine reports it, whole instance; 0: derived
  double memory_fraction = 0;  // of device memory that the engine may use; 0: its profile's
  serving::Speculation speculation;
  // Decode steps replay captured graphs, or issue kernel by kernel; absent: as the profile does.
  std::optional<bool> captured_graphs;
  // Share of the GPUs' time that a job beside this one takes (training in its gaps). Steps are then
  // stretched to 1 / (1 - share): an upper bound, reached where the two never overlap.
  double background_share = 0;

  friend bool operator==(const InferenceWorkload&, const InferenceWorkload&) = default;
};

// A link or rank that is not healthy. Of links only `bandwidth_fraction` remains; a rank takes
// `slowdown` times as long for its kernels.
struct Fault {
  std::string scope;              // "network" (between nodes), "node" (inside nodes) or "rank"
  double bandwidth_fraction = 1;  // in (0, 1]
  int64_t index = -1;             // of the node, or of the rank; -1: all of them
  double slowdown = 1;            // at least 1

  friend bool operator==(const Fault&, const Fault&) = default;
};

// Everything a prediction needs. Immutable by convention once validated.
struct Job {
  ModelArchitecture model;
  hardware::Cluster cluster;
  int64_t gpu_count = 1;
  hardware::Precision precision = hardware::Precision::kBf16;
  std::variant<TrainingWorkload, InferenceWorkload> workload;
  ParallelPlan plan;
  // With an inference workload: how requests of its lengths come. Its batch size is then what the
  // engine makes of them, data parallel ranks are replicas behind a router.
  std::optional<serving::ServingLoad> serving;
  std::string framework;  // profile of overheads; empty: the accelerator's default
  std::vector<Fault> faults;

  bool IsTraining() const { return std::holds_alternative<TrainingWorkload>(workload); }

  friend bool operator==(const Job&, const Job&) = default;
};

// Every rule that the job breaks, over model, cluster, workload and plan together (products that
// do not multiply out, sizes that do not divide, precisions that the accelerator lacks), by the
// field paths of the job file: "plan.tensor_parallel_size", "training.global_batch_size", ...
// An OK job can be predicted; whether it fits in memory is an answer, not a violation.
absl::Status ValidateJob(const Job& job);

// The rules that hold whatever the plan and the GPU count turn out to be: of a job whose plan a sweep
// chooses.
absl::Status ValidateOpenJob(const Job& job);

// Divisors of `n` in increasing order. For error messages and sweeps. O(sqrt n).
std::vector<int64_t> Divisors(int64_t n);

}  // namespace sextant::workload

#endif  // SEXTANT_COMMON_WORKLOAD_JOB_H_
