// SPDX-License-Identifier: Apache-2.0
#include "common/resilience/step_traffic.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_join.h"
#include "common/orchestrator/stage_layout.h"

namespace sextant::resilience {
namespace {

using collectives::CollectiveKind;
using orchestrator::CollectiveUse;
using orchestrator::CommunicationClass;
using workload::Job;
using workload::ParallelPlan;

int64_t SizeOf(const ParallelPlan& plan, PlanAxis axis) {
  switch (axis) {
    case PlanAxis::kTensor:
      return plan.tensor_parallel_size;
    case PlanAxis::kContext:
      return plan.context_parallel_size;
    case PlanAxis::kData:
      return plan.data_parallel_size;
    case PlanAxis::kPipeline:
      break;
  }
  return plan.pipeline_parallel_size;
}

const char* NameOf(PlanAxis axis) {
  constexpr const char* kNames[] = {"tensor", "context", "data", "pipeline"};
  return kNames[static_cast<size_t>(axis)];
}

// Which ranks talk: `size` of them, `stride` apart.
struct Line {
  const char* parallelism;
  int64_t size;
  int64_t stride;
  enum Shape { kGroups, kNeighbours, kRingNeighbours, kEnds } shape = kGroups;

  auto Key() const { return std::tie(size, stride, shape); }
};

std::vector<std::vector<int64_t>> GroupsOf(const Line& line, int64_t rank_count) {
  std::vector<std::vector<int64_t>> groups;
  for (int64_t first = 0; first < rank_count; ++first) {
    if (first / line.stride % line.size != 0) continue;
    const auto rank = [&](int64_t k) { return first + k * line.stride; };
    if (line.shape == Line::kGroups) {
      std::vector<int64_t>& group = groups.emplace_back();
      for (int64_t k = 0; k < line.size; ++k) group.push_back(rank(k));
      continue;
    }
    if (line.shape != Line::kEnds) {
      for (int64_t k = 0; k + 1 < line.size; ++k) groups.push_back({rank(k), rank(k + 1)});
    }
    const bool closes = line.shape == Line::kRingNeighbours && line.size > 2;
    if (closes || line.shape == Line::kEnds) groups.push_back({rank(line.size - 1), rank(0)});
  }
  return groups;
}

class Collector {
 public:
  Collector(const Job& job, const orchestrator::TrainingGraph& graph) : job_(job), graph_(graph) {}

  std::vector<Traffic> Collect() {
    for (const orchestrator::TrainingBlocks* blocks :
         {&graph_.embedding, &graph_.dense, &graph_.mixture, &graph_.head}) {
      for (const orchestrator::Block* block :
           {&blocks->forward, &blocks->backward, &blocks->recompute}) {
        for (const CollectiveUse& use : block->collectives) Add(use, LineOf(use));
      }
    }
    for (const orchestrator::StageStep& stage : graph_.stages) {
      for (const CollectiveUse& use : stage.reduce) Add(use, LineOf(use));
    }
    const ParallelPlan& plan = job_.plan;
    const int64_t stage_size =
        plan.tensor_parallel_size * plan.context_parallel_size * plan.data_parallel_size;
    const auto along = [&](const char* name, Line::Shape shape) {
      return Line{name, plan.pipeline_parallel_size, stage_size, shape};
    };
    for (const CollectiveUse& use : graph_.send) {
      Add(use, along("pipeline",
                     plan.virtual_pipeline_size > 1 ? Line::kRingNeighbours : Line::kNeighbours));
    }
    for (const CollectiveUse& use : graph_.tied_embedding) {
      Add(use, along("tied_embedding", Line::kEnds));
    }
    return std::move(traffic_);
  }

 private:
  // The ranks behind a collective inside one stage; places are those of graph_sharding.cc,
  // graph_attention.cc and graph_ffn.cc.
  Line LineOf(const CollectiveUse& use) const {
    const collectives::Collective& c = graph_.collectives[static_cast<size_t>(use.index)];
    const ParallelPlan& plan = job_.plan;
    const int64_t tp = plan.tensor_parallel_size;
    const int64_t etp = orchestrator::ExpertTensorParallelSize(plan);
    switch (use.category) {
      case CommunicationClass::kTensor:
        // Heads exchanged for sequence count as tensor parallel traffic.
        if (c.kind == CollectiveKind::kAllToAll) {
          return {"context", plan.context_parallel_size, tp};
        }
        return {"tensor", c.group_size, 1};
      case CommunicationClass::kContext:
        return {"context", plan.context_parallel_size, tp, Line::kRingNeighbours};
      case CommunicationClass::kExpert:
        return {"expert", plan.expert_parallel_size, etp};
      case CommunicationClass::kShardedData:
        break;
    }
    const int64_t dense = plan.data_parallel_size * plan.context_parallel_size;
    const int64_t shard = orchestrator::ShardGroupSize(plan, dense);
    if (c.group_size == dense || c.group_size == shard) return {"data", c.group_size, tp};
    if (shard < dense && c.group_size == dense / shard) return {"data", c.group_size, tp * shard};
    return {"data", c.group_size, etp * plan.expert_parallel_size};
  }

  void Add(const CollectiveUse& use, const Line& line) {
    const collectives::Collective& c = graph_.collectives[static_cast<size_t>(use.index)];
    if (line.size <= 1) return;
    for (size_t i = 0; i < traffic_.size(); ++i) {
      if (traffic_[i].kind != c.kind || lines_[i].Key() != line.Key()) continue;
      traffic_[i].bytes = std::max(traffic_[i].bytes, c.bytes);
      std::vector<int>& indices = traffic_[i].collectives;
      if (std::find(indices.begin(), indices.end(), use.index) == indices.end()) {
        indices.push_back(use.index);
      }
      return;
    }
    lines_.push_back(line);
    traffic_.push_back({.parallelism = line.parallelism,
                        .kind = c.kind,
                        .bytes = c.bytes,
                        .collectives = {use.index},
                        .groups = GroupsOf(line, job_.gpu_count),
                        .of_one_stage = line.shape == Line::kGroups ||
                                        use.category == CommunicationClass::kContext});
  }

  const Job& job_;
  const orchestrator::TrainingGraph& graph_;
  std::vector<Traffic> traffic_;
  std::vector<Line> lines_;
};

}  // namespace

std::string MappingName(const ParallelPlan& plan, const Mapping& mapping) {
  std::vector<std::string> names;
  for (const PlanAxis axis : mapping) {
    if (SizeOf(plan, axis) > 1) names.emplace_back(NameOf(axis));
  }
  return absl::StrJoin(names, ", ");
}

std::vector<Mapping> MappingsOf(const ParallelPlan& plan) {
  std::vector<Mapping> mappings;
  std::set<std::string> seen;
  Mapping mapping = kPlanMapping;  // sorted: the first permutation
  do {
    if (seen.insert(MappingName(plan, mapping)).second) mappings.push_back(mapping);
  } while (std::next_permutation(mapping.begin(), mapping.end()));
  return mappings;
}

std::vector<int64_t> GpusOfRanks(const ParallelPlan& plan, const Mapping& mapping) {
  std::array<int64_t, 4> stride{};
  int64_t count = 1;
  for (const PlanAxis axis : mapping) {
    stride[static_cast<size_t>(axis)] = count;
    count *= SizeOf(plan, axis);
  }
  std::vector<int64_t> gpus(static_cast<size_t>(count), 0);
  for (int64_t rank = 0; rank < count; ++rank) {
    int64_t rest = rank;
    for (const PlanAxis axis : kPlanMapping) {
      gpus[static_cast<size_t>(rank)] +=
          rest % SizeOf(plan, axis) * stride[static_cast<size_t>(axis)];
      rest /= SizeOf(plan, axis);
    }
  }
  return gpus;
}

std::vector<Traffic> TrafficOf(const Job& job, const orchestrator::TrainingGraph& graph) {
  return Collector(job, graph).Collect();
}

}  // namespace sextant::resilience
