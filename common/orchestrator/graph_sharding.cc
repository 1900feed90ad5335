// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "common/orchestrator/graph_builder.h"

namespace sextant::orchestrator {

using collectives::CollectiveKind;
using hardware::Precision;
using operator_cost::MemoryBoundKind;
using operator_cost::MemoryBoundShape;
using operator_cost::Operator;

void GraphBuilder::SumGradients(Block& block, double parameters) {
  if (options_.fused_gradient_sum || parameters <= 0) return;
  constexpr int64_t kColumns = 1024;
  Use(block,
      Operator{MemoryBoundShape{.kind = MemoryBoundKind::kAdd,
                                .rows = std::max<int64_t>(1, std::llround(parameters / kColumns)),
                                .columns = kColumns},
               Precision::kFp32},
      OperatorClass::kMemoryBound);
}

void GraphBuilder::ShardedData(TrainingBlocks& blocks, const RankParameters& all,
                               const RankParameters& trained) {
  if (plan_.zero_stage < 2) return;
  const auto category = CommunicationClass::kShardedData;
  const auto exchange = [&](double parameters, double trained_parameters, Placement group) {
    if (parameters <= 0) return;
    if (plan_.zero_stage >= 3) {
      const double bytes = parameters * activation_bytes_;
      Use(blocks.forward, CollectiveKind::kAllGather, bytes, group, category);
      Use(blocks.backward, CollectiveKind::kAllGather, bytes, group, category);
    }
    if (trained_parameters <= 0) return;
    Use(blocks.backward, CollectiveKind::kReduceScatter,
        trained_parameters * std::min(options_.gradient_bytes, 4.0), group, category);
  };
  exchange(all.Dense(), trained.Dense(), ShardGroup(DataGroup(), tp_));
  exchange(
      all.expert, trained.expert,
      ShardGroup(ExpertDataGroup(), ExpertTensorParallelSize(plan_) * plan_.expert_parallel_size));
}

Placement GraphBuilder::ShardGroup(const Placement& group, int64_t stride) const {
  const int64_t size = ShardGroupSize(plan_, group.group_size);
  return size == group.group_size ? group : Place(job_, size, stride);
}

Placement GraphBuilder::CopyGroup(const Placement& group, int64_t stride) const {
  const int64_t size = ShardGroupSize(plan_, group.group_size);
  return Place(job_, group.group_size / size, stride * size);
}

Placement GraphBuilder::DataGroup() const {
  return Place(job_, plan_.data_parallel_size * plan_.context_parallel_size, tp_);
}

Placement GraphBuilder::ExpertDataGroup() const {
  const int64_t etp = ExpertTensorParallelSize(plan_);
  const int64_t size = plan_.data_parallel_size * plan_.context_parallel_size * (tp_ / etp) /
                       plan_.expert_parallel_size;
  return Place(job_, std::max<int64_t>(1, size), etp * plan_.expert_parallel_size);
}

StageStep GraphBuilder::Step(const StageClass& stage, workload::Optimizer optimizer) {
  StageStep step{.stage = stage};
  const RankParameters rank = CountTrainedParameters(job_, stage);
  const Placement dense_group = DataGroup();
  const Placement expert_group = ExpertDataGroup();
  const auto shards = [&](const Placement& group) {
    return plan_.zero_stage >= 1 ? static_cast<double>(ShardGroupSize(plan_, group.group_size))
                                 : 1.0;
  };
  const double owned = rank.Dense() / shards(dense_group) + rank.expert / shards(expert_group);
  // Fused over all tensors: as many equal rows as fill the device, whatever the tensors' shapes.
  constexpr int64_t kColumns = 1024;
  const int64_t rows = std::max<int64_t>(1, std::llround(owned / kColumns));
  const auto stream = [&](MemoryBoundKind kind) {
    Use(step.optimizer,
        Operator{MemoryBoundShape{.kind = kind, .rows = rows, .columns = kColumns},
                 Precision::kFp32},
        OperatorClass::kMemoryBound);
  };
  stream(optimizer == workload::Optimizer::kAdam ? MemoryBoundKind::kOptimizer
                                                 : MemoryBoundKind::kAdd);
  stream(MemoryBoundKind::kElementwise);  // norm and clipping of the gradients
  Reduce(step, rank.Dense(), dense_group, tp_);
  Reduce(step, rank.expert, expert_group,
         ExpertTensorParallelSize(plan_) * plan_.expert_parallel_size);
  return step;
}

Placement GraphBuilder::PipelineNeighbours() const {
  const int64_t stride = tp_ * plan_.context_parallel_size * plan_.data_parallel_size;
  const bool inside = stride * plan_.pipeline_parallel_size <= job_.cluster.gpus_per_node;
  return {.group_size = 2,
          .ranks_per_node = inside ? 2 : 1,
          .groups_per_node =
              std::max<int64_t>(1, std::min<int64_t>(stride, job_.cluster.gpus_per_node))};
}

void GraphBuilder::Send(std::vector<CollectiveUse>& uses, double count) {
  const bool split = options_.pipeline_send_split || plan_.sequence_parallel;
  const double tokens = static_cast<double>(split ? CeilDivide(tokens_, tp_) : tokens_);
  if (plan_.pipeline_parallel_size <= 1 || count <= 0) return;
  uses.push_back(Communicate(CollectiveKind::kSendReceive,
                             tokens * static_cast<double>(model_.hidden_size) * activation_bytes_,
                             PipelineNeighbours(), CommunicationClass::kTensor, count));
}

void GraphBuilder::Reduce(StageStep& step, double parameters, const Placement& group,
                          int64_t stride) {
  if (group.group_size <= 1 || parameters <= 0) return;
  const double gradients = parameters * options_.gradient_bytes;
  const auto category = CommunicationClass::kShardedData;
  if (plan_.zero_stage == 0) {
    const double buckets = options_.reduce_bucket_bytes > 0
                               ? std::max(1.0, std::ceil(gradients / options_.reduce_bucket_bytes))
                               : 1.0;
    step.reduce.push_back(
        Communicate(CollectiveKind::kAllReduce, gradients / buckets, group, category, buckets));
    return;
  }
  const Placement shards = ShardGroup(group, stride);
  const Placement copies = CopyGroup(group, stride);
  const double messages = std::max(1.0, std::round(options_.shard_messages_per_layer *
                                                   static_cast<double>(step.stage.LayerCount())));
  const auto exchange = [&](CollectiveKind kind, double bytes, const Placement& place) {
    if (place.group_size <= 1) return;
    step.reduce.push_back(Communicate(kind, bytes / messages, place, category, messages));
  };
  if (plan_.zero_stage == 1) exchange(CollectiveKind::kReduceScatter, gradients, shards);
  exchange(CollectiveKind::kAllReduce, gradients / static_cast<double>(shards.group_size), copies);
  if (plan_.zero_stage <= 2) {
    exchange(CollectiveKind::kAllGather, parameters * activation_bytes_, shards);
  }
}

}  // namespace sextant::orchestrator
