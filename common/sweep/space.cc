// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/space.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/violations.h"

namespace sextant::sweep {
namespace {

using workload::Job;
using workload::ParallelPlan;
using workload::PipelineSchedule;
using workload::Recompute;

constexpr int64_t kInterleaved = static_cast<int64_t>(PipelineSchedule::kInterleaved);
constexpr int64_t kPlain = static_cast<int64_t>(PipelineSchedule::k1f1b);

bool Divides(int64_t divisor, int64_t whole) { return divisor >= 1 && whole % divisor == 0; }

bool Allows(const Choice& choice, int64_t fixed, int64_t value) {
  if (choice.all) return true;
  if (choice.values.empty()) return value == fixed;
  return std::find(choice.values.begin(), choice.values.end(), value) != choice.values.end();
}

// The given values, else every value of `legal`, else the base job's.
std::vector<int64_t> ValuesOf(const Choice& choice, int64_t fixed,
                              const std::vector<int64_t>& legal) {
  if (choice.all) return legal;
  if (choice.values.empty()) return {fixed};
  return choice.values;
}

// Of the given values those among `legal`, in increasing order.
std::vector<int64_t> LegalValues(const Choice& choice, int64_t fixed,
                                 const std::vector<int64_t>& legal) {
  std::vector<int64_t> values;
  for (const int64_t value : legal) {
    if (Allows(choice, fixed, value)) values.push_back(value);
  }
  return values;
}

// The first of the values where it makes no difference which.
std::vector<int64_t> OneIf(bool indifferent, std::vector<int64_t> values) {
  if (indifferent && !values.empty()) return {values.front()};
  return values;
}

int64_t BatchOf(const Job& job) {
  const auto* training = std::get_if<workload::TrainingWorkload>(&job.workload);
  return training != nullptr ? training->global_batch_size : 0;
}

bool TensorSizeIsLegal(const Job& job, int64_t tp) {
  const workload::ModelArchitecture& m = job.model;
  if (!Divides(tp, m.attention_head_count)) return false;
  if (!m.IsLatent() && !Divides(tp, m.kv_head_count) && !Divides(m.kv_head_count, tp)) return false;
  const bool has_dense_layer = !m.IsMixture() || m.experts.dense_layer_count > 0;
  return !has_dense_layer || Divides(tp, m.ffn_size);
}

bool PipelineSizeIsLegal(const Job& job, int64_t pp) { return pp <= job.model.layer_count; }

bool ContextSizeIsLegal(const Job& job, int64_t cp) {
  const auto* training = std::get_if<workload::TrainingWorkload>(&job.workload);
  return training != nullptr ? Divides(cp, training->sequence_length) : cp == 1;
}

bool DataSizeIsLegal(const PlanSpace& space, const Job& job, int64_t dp) {
  // Without a choice the size is what is left.
  if (!space.data_parallel_size.IsFixed() && !Allows(space.data_parallel_size, 0, dp)) return false;
  if (!job.IsTraining()) return true;
  const int64_t batch = BatchOf(job);
  if (!Divides(dp, batch)) return false;
  if (space.micro_batch_size.all) return true;
  const std::vector<int64_t> sizes =
      ValuesOf(space.micro_batch_size, job.plan.micro_batch_size, {});
  return std::any_of(sizes.begin(), sizes.end(),
                     [&](int64_t size) { return Divides(size, batch / dp); });
}

// What the points of one cell may choose from, before the choices meet.
struct CellChoices {
  std::vector<int64_t> chunks;
  std::vector<int64_t> experts;
  std::vector<int64_t> micro_batches;
  std::vector<int64_t> zero_stages;
  std::vector<int64_t> sequence_parallel;
  std::vector<int64_t> schedules;
  std::vector<int64_t> recomputes;
  bool interleaves = false;  // some schedule may have several chunks
  int64_t replica_batch = 0;

  // Chunks of a rank need micro-batches in rounds of the pipeline.
  bool ChunksFit(int64_t chunk_count, int64_t micro_batch, int64_t pipeline) const {
    return chunk_count == 1 || (interleaves && Divides(pipeline, replica_batch / micro_batch));
  }
  std::vector<int64_t> SchedulesFor(int64_t chunk_count, int64_t micro_batch,
                                    int64_t pipeline) const {
    if (chunk_count > 1) return {kInterleaved};
    std::vector<int64_t> legal = schedules;
    // Two directions of a pipeline need ranks and micro-batches in pairs.
    if (pipeline % 2 != 0 || (pipeline > 1 && replica_batch / micro_batch % 2 != 0)) {
      std::erase(legal, static_cast<int64_t>(PipelineSchedule::kDualPipe));
    }
    return OneIf(pipeline == 1, legal);
  }
};

std::vector<int64_t> ChunkCounts(const PlanSpace& space, const Job& job, const Cell& cell) {
  std::vector<int64_t> legal = {1};
  const int64_t layers = job.model.layer_count;
  for (int64_t v = 2; job.IsTraining() && cell.pipeline > 1 && v * cell.pipeline <= layers; ++v) {
    if (!space.virtual_pipeline_size.all || Divides(v * cell.pipeline, layers)) legal.push_back(v);
  }
  return LegalValues(space.virtual_pipeline_size, job.plan.virtual_pipeline_size, legal);
}

std::vector<int64_t> ExpertSizes(const PlanSpace& space, const Job& job, const Cell& cell) {
  std::vector<int64_t> legal = {1};
  if (job.model.IsMixture()) {
    const int64_t ranks = int64_t{cell.data} * cell.context * cell.tensor;
    legal = workload::Divisors(job.model.experts.expert_count);
    std::erase_if(legal, [&](int64_t ep) { return !Divides(ep, ranks); });
  }
  return LegalValues(space.expert_parallel_size, job.plan.expert_parallel_size, legal);
}

std::vector<int64_t> MicroBatchSizes(const PlanSpace& space, const Job& job, const Cell& cell) {
  if (!job.IsTraining()) return {job.plan.micro_batch_size};
  return LegalValues(space.micro_batch_size, job.plan.micro_batch_size,
                     workload::Divisors(BatchOf(job) / cell.data));
}

std::vector<int64_t> AllSchedules() {
  return {static_cast<int64_t>(PipelineSchedule::kGpipe),
          kPlain,
          kInterleaved,
          static_cast<int64_t>(PipelineSchedule::kZeroBubbleH1),
          static_cast<int64_t>(PipelineSchedule::kZeroBubbleH2),
          static_cast<int64_t>(PipelineSchedule::kDualPipe)};
}

CellChoices ChoicesOf(const PlanSpace& space, const Job& job, const Cell& cell) {
  CellChoices c;
  const ParallelPlan& plan = job.plan;
  c.replica_batch = job.IsTraining() ? BatchOf(job) / cell.data : 1;
  c.chunks = ChunkCounts(space, job, cell);
  c.experts = ExpertSizes(space, job, cell);
  c.micro_batches = MicroBatchSizes(space, job, cell);
  c.zero_stages = OneIf(int64_t{cell.data} * cell.context == 1,
                        ValuesOf(space.zero_stage, plan.zero_stage, {0, 1, 2, 3}));
  c.sequence_parallel = OneIf(
      cell.tensor == 1, ValuesOf(space.sequence_parallel, plan.sequence_parallel ? 1 : 0, {0, 1}));
  c.recomputes = ValuesOf(space.recompute, static_cast<int64_t>(plan.recompute), {0, 1, 2});
  c.schedules = ValuesOf(space.schedule, static_cast<int64_t>(plan.schedule), AllSchedules());
  c.interleaves = std::any_of(c.schedules.begin(), c.schedules.end(),
                              [](int64_t s) { return s == kInterleaved || s == kPlain; });
  // One chunk per rank, interleaved, is 1F1B.
  std::replace(c.schedules.begin(), c.schedules.end(), kInterleaved, kPlain);
  std::vector<int64_t> distinct;
  for (const int64_t s : c.schedules) {
    if (std::find(distinct.begin(), distinct.end(), s) == distinct.end()) distinct.push_back(s);
  }
  c.schedules = distinct;
  return c;
}

int64_t Product(const CellChoices& c) {
  return static_cast<int64_t>(c.experts.size() * c.zero_stages.size() * c.sequence_parallel.size() *
                              c.recomputes.size());
}

void RequireWords(base::Violations& violations, absl::string_view field, const Choice& choice,
                  int64_t count) {
  for (const int64_t value : choice.values) {
    if (value >= 0 && value < count) continue;
    violations.Add(field, absl::StrCat("is ", value, " but must be between 0 and ", count - 1));
  }
}

std::string Excluded(absl::string_view name, const std::vector<int64_t>& values,
                     absl::string_view why) {
  return absl::StrCat(name, " ", absl::StrJoin(values, ", "), ": ", why);
}

}  // namespace

absl::Status ValidatePlanSpace(const PlanSpace& space) {
  base::Violations violations;
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  for (const PlanDimension& dimension : kPlanDimensions) {
    if (!absl::EndsWith(dimension.name, "_size")) continue;  // words and flags, below
    for (const int64_t value : (space.*dimension.choice).values) {
      if (value >= 1 && value <= kLargest) continue;
      violations.Add(absl::StrCat("plan.", dimension.name),
                     absl::StrCat("is ", value, " but must be between 1 and ", kLargest));
    }
  }
  RequireWords(violations, "plan.zero_stage", space.zero_stage, 4);
  RequireWords(violations, "plan.sequence_parallel", space.sequence_parallel, 2);
  return violations.ToStatus();
}

void Layout::ApplyTo(ParallelPlan& plan) const {
  plan.tensor_parallel_size = tensor;
  plan.pipeline_parallel_size = pipeline;
  plan.virtual_pipeline_size = chunks;
  plan.context_parallel_size = context;
  plan.expert_parallel_size = expert;
  plan.data_parallel_size = data;
  plan.micro_batch_size = micro_batch;
  plan.zero_stage = zero;
  plan.sequence_parallel = sequence_parallel != 0;
  plan.schedule = static_cast<PipelineSchedule>(schedule);
  plan.recompute = static_cast<Recompute>(recompute);
}

Layout Layout::Of(const ParallelPlan& plan) {
  return {.tensor = static_cast<int32_t>(plan.tensor_parallel_size),
          .pipeline = static_cast<int32_t>(plan.pipeline_parallel_size),
          .chunks = static_cast<int32_t>(plan.virtual_pipeline_size),
          .context = static_cast<int32_t>(plan.context_parallel_size),
          .expert = static_cast<int32_t>(plan.expert_parallel_size),
          .data = static_cast<int32_t>(plan.data_parallel_size),
          .micro_batch = static_cast<int32_t>(plan.micro_batch_size),
          .zero = static_cast<int8_t>(plan.zero_stage),
          .sequence_parallel = static_cast<int8_t>(plan.sequence_parallel ? 1 : 0),
          .schedule = static_cast<int8_t>(plan.schedule),
          .recompute = static_cast<int8_t>(plan.recompute)};
}

std::vector<Cell> EnumerateCells(const PlanSpace& space, const Job& base) {
  std::vector<Cell> cells;
  if (base.gpu_count < 1 || base.gpu_count > std::numeric_limits<int32_t>::max()) return cells;
  const int64_t nodes = base.cluster.node_count;
  if (nodes > 0 && base.gpu_count > nodes * base.cluster.gpus_per_node) return cells;
  const ParallelPlan& plan = base.plan;
  for (const int64_t tp : workload::Divisors(base.gpu_count)) {
    if (!Allows(space.tensor_parallel_size, plan.tensor_parallel_size, tp)) continue;
    if (!TensorSizeIsLegal(base, tp)) continue;
    for (const int64_t pp : workload::Divisors(base.gpu_count / tp)) {
      if (!Allows(space.pipeline_parallel_size, plan.pipeline_parallel_size, pp)) continue;
      if (!PipelineSizeIsLegal(base, pp)) continue;
      for (const int64_t cp : workload::Divisors(base.gpu_count / tp / pp)) {
        if (!Allows(space.context_parallel_size, plan.context_parallel_size, cp)) continue;
        if (!ContextSizeIsLegal(base, cp)) continue;
        const int64_t dp = base.gpu_count / tp / pp / cp;
        if (!DataSizeIsLegal(space, base, dp)) continue;
        cells.push_back({static_cast<int32_t>(tp), static_cast<int32_t>(pp),
                         static_cast<int32_t>(cp), static_cast<int32_t>(dp)});
      }
    }
  }
  return cells;
}

std::vector<Layout> EnumerateLayouts(const PlanSpace& space, const Job& base, const Cell& cell) {
  const CellChoices c = ChoicesOf(space, base, cell);
  std::vector<Layout> layouts;
  Layout l{
      .tensor = cell.tensor, .pipeline = cell.pipeline, .context = cell.context, .data = cell.data};
  const auto for_each = [](const std::vector<int64_t>& values, auto& field, const auto& body) {
    for (const int64_t value : values) {
      field = static_cast<std::remove_reference_t<decltype(field)>>(value);
      body();
    }
  };
  for_each(c.micro_batches, l.micro_batch, [&] {
    for_each(c.chunks, l.chunks, [&] {
      if (!c.ChunksFit(l.chunks, l.micro_batch, cell.pipeline)) return;
      for_each(c.SchedulesFor(l.chunks, l.micro_batch, cell.pipeline), l.schedule, [&] {
        for_each(c.experts, l.expert, [&] {
          for_each(c.sequence_parallel, l.sequence_parallel, [&] {
            for_each(c.recomputes, l.recompute,
                     [&] { for_each(c.zero_stages, l.zero, [&] { layouts.push_back(l); }); });
          });
        });
      });
    });
  });
  return layouts;
}

int64_t CountLayouts(const PlanSpace& space, const Job& base, const Cell& cell) {
  const CellChoices c = ChoicesOf(space, base, cell);
  int64_t outer = 0;
  for (const int64_t micro_batch : c.micro_batches) {
    for (const int64_t chunk_count : c.chunks) {
      if (!c.ChunksFit(chunk_count, micro_batch, cell.pipeline)) continue;
      outer += static_cast<int64_t>(c.SchedulesFor(chunk_count, micro_batch, cell.pipeline).size());
    }
  }
  return outer * Product(c);
}

std::vector<std::string> ExplainExclusions(const PlanSpace& space, const Job& base) {
  std::vector<std::string> sentences;
  if (base.gpu_count < 1) return sentences;
  const int64_t available = base.cluster.node_count * base.cluster.gpus_per_node;
  if (available > 0 && base.gpu_count > available) {
    return {absl::StrCat("gpu_count ", base.gpu_count, ": cluster ", base.cluster.name, " has ",
                         available, " GPUs")};
  }
  const std::vector<int64_t> divisors = workload::Divisors(base.gpu_count);
  const auto excluded = [&](const Choice& choice, const auto& legal) {
    std::vector<int64_t> values;
    for (const int64_t d : divisors) {
      if ((choice.all || Allows(choice, 0, d)) && !legal(d)) values.push_back(d);
    }
    return values;
  };
  const auto say = [&](absl::string_view name, const std::vector<int64_t>& values,
                       const std::string& why) {
    if (!values.empty()) sentences.push_back(Excluded(name, values, why));
  };
  const workload::ModelArchitecture& m = base.model;
  say("tensor_parallel_size",
      excluded(space.tensor_parallel_size, [&](int64_t v) { return TensorSizeIsLegal(base, v); }),
      absl::StrCat("must divide attention_head_count ", m.attention_head_count,
                   m.IsLatent() ? ""
                                : absl::StrCat(", divide kv_head_count ", m.kv_head_count,
                                               " or be a multiple of it"),
                   m.ffn_size > 0 ? absl::StrCat(", and divide ffn_size ", m.ffn_size) : ""));
  say("pipeline_parallel_size",
      excluded(space.pipeline_parallel_size,
               [&](int64_t v) { return PipelineSizeIsLegal(base, v); }),
      absl::StrCat("must be at most layer_count ", m.layer_count));
  const auto* training = std::get_if<workload::TrainingWorkload>(&base.workload);
  say("context_parallel_size",
      excluded(space.context_parallel_size, [&](int64_t v) { return ContextSizeIsLegal(base, v); }),
      training != nullptr ? absl::StrCat("must divide sequence_length ", training->sequence_length)
                          : "must be 1 in inference");
  if (training != nullptr) {
    say("data_parallel_size",
        excluded(space.data_parallel_size,
                 [&](int64_t v) { return DataSizeIsLegal(space, base, v); }),
        absl::StrCat("must divide global_batch_size ", training->global_batch_size,
                     " into micro-batches"));
  }
  return sentences;
}

}  // namespace sextant::sweep
