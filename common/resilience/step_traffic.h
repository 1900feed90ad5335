// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_RESILIENCE_STEP_TRAFFIC_H_
#define SEXTANT_COMMON_RESILIENCE_STEP_TRAFFIC_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/collectives/collective.h"
#include "common/orchestrator/graph.h"
#include "common/workload/job.h"

namespace sextant::resilience {

// Dimensions of a plan in the order in which consecutive ranks vary, first fastest.
enum class PlanAxis : int { kTensor, kContext, kData, kPipeline };
using Mapping = std::array<PlanAxis, 4>;
inline constexpr Mapping kPlanMapping = {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData,
                                         PlanAxis::kPipeline};

// "tensor, data, pipeline": the axes of more than one rank.
std::string MappingName(const workload::ParallelPlan& plan, const Mapping& mapping);
// Every order of the axes that `plan` uses that places ranks differently, the plan's own first.
std::vector<Mapping> MappingsOf(const workload::ParallelPlan& plan);
// GPU of each rank of the plan (whose own numbering is kPlanMapping). A permutation. O(ranks).
std::vector<int64_t> GpusOfRanks(const workload::ParallelPlan& plan, const Mapping& mapping);

// Collectives of a step that the same groups of ranks run, whatever their bytes.
struct Traffic {
  std::string parallelism;  // "tensor", "context", "expert", "data", "pipeline", "tied_embedding"
  collectives::CollectiveKind kind = collectives::CollectiveKind::kAllReduce;
  double bytes = 0;                          // of the largest
  std::vector<int> collectives;              // indices into the graph
  std::vector<std::vector<int64_t>> groups;  // ranks of the plan
  bool of_one_stage = true;                  // no group reaches over pipeline stages
};

// What a training step sends between ranks. O(collectives x ranks).
std::vector<Traffic> TrafficOf(const workload::Job& job, const orchestrator::TrainingGraph& graph);

}  // namespace sextant::resilience

#endif  // SEXTANT_COMMON_RESILIENCE_STEP_TRAFFIC_H_
