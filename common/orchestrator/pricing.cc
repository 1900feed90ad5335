// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/pricing.h"

#include <algorithm>
#include <variant>

#include "common/operator_cost/attention_formula.h"

namespace sextant::orchestrator {
namespace {

constexpr double kSmallestBindingShare = 0.05;

}  // namespace

double DecodeAttentionSeconds(const Graph& graph, const PortAnswers& answers, int index,
                              double vector_rate) {
  if (index < 0) return 0;
  const size_t i = static_cast<size_t>(index);
  const double seconds = answers.operators[i].seconds;
  const auto* shape = std::get_if<operator_cost::AttentionShape>(&graph.operators[i].shape);
  if (!(vector_rate > 0) || shape == nullptr || shape->latent_size > 0) return seconds;
  return std::max(seconds, operator_cost::FlopCount(*shape) / vector_rate);
}

PricedBlock PriceBlock(const Block& block, const PortAnswers& answers) {
  PricedBlock priced;
  for (const OperatorUse& use : block.operators) {
    const double seconds = use.count * answers.operators[static_cast<size_t>(use.index)].seconds;
    priced.kernel_count += use.count;
    switch (use.category) {
      case OperatorClass::kMatrixMultiply:
        priced.matrix_seconds += seconds;
        if (use.weight_gradient) priced.weight_gradient_seconds += seconds;
        break;
      case OperatorClass::kAttention:
        priced.attention_seconds += seconds;
        break;
      case OperatorClass::kMemoryBound:
        priced.memory_bound_seconds += seconds;
        break;
    }
  }
  for (const CollectiveUse& use : block.collectives) {
    const double seconds = use.count * answers.collectives[static_cast<size_t>(use.index)].seconds;
    priced.kernel_count += use.count;
    switch (use.category) {
      case CommunicationClass::kTensor:
        priced.tensor_parallel_seconds += seconds;
        priced.tensor_collective_count += use.count;
        break;
      case CommunicationClass::kContext:
        priced.context_parallel_seconds += seconds;
        break;
      case CommunicationClass::kExpert:
        priced.expert_parallel_seconds += seconds;
        break;
      case CommunicationClass::kShardedData:
        priced.sharded_data_seconds += seconds;
        break;
    }
  }
  return priced;
}

double PriceCollectives(const std::vector<CollectiveUse>& uses, const PortAnswers& answers) {
  double seconds = 0;
  for (const CollectiveUse& use : uses) {
    seconds += use.count * answers.collectives[static_cast<size_t>(use.index)].seconds;
  }
  return seconds;
}

void BindingShares::Add(absl::string_view name, double seconds) {
  total_ += seconds;
  for (auto& [known, sum] : shares_) {
    if (known == name) {
      sum += seconds;
      return;
    }
  }
  shares_.emplace_back(std::string(name), seconds);
}
void BindingShares::AddBlock(const Block& block, const PortAnswers& answers, double factor) {
  for (const OperatorUse& use : block.operators) {
    const auto& estimate = answers.operators[static_cast<size_t>(use.index)];
    Add(operator_cost::BindingName(estimate.binding), factor * use.count * estimate.seconds);
  }
  AddCollectives(block.collectives, answers, factor);
}
void BindingShares::AddCollectives(const std::vector<CollectiveUse>& uses,
                                   const PortAnswers& answers, double factor) {
  for (const CollectiveUse& use : uses) {
    const auto& estimate = answers.collectives[static_cast<size_t>(use.index)];
    Add(estimate.network_bound ? "network_bandwidth" : "node_bandwidth",
        factor * use.count * estimate.seconds);
  }
}
std::vector<std::string> BindingShares::Largest() {
  std::stable_sort(shares_.begin(), shares_.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& [name, seconds] : shares_) {
    if (seconds >= kSmallestBindingShare * total_ && seconds > 0) names.push_back(name);
  }
  return names;
}

}  // namespace sextant::orchestrator
