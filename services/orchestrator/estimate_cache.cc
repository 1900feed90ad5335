// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/estimate_cache.h"

#include <cstring>
#include <variant>

namespace sextant::orchestrator_service {
namespace {

int64_t Bits(double value) {
  int64_t bits;
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <typename... Fields>
OperatorKey Packed(const Fields&... fields) {
  static_assert(sizeof...(fields) <= std::tuple_size_v<OperatorKey>);
  return {static_cast<int64_t>(fields)...};
}

// Structured bindings fail to compile when a shape gains a field, so that no field is forgotten.
OperatorKey ShapeKey(const operator_cost::GemmShape& shape, int64_t precision) {
  const auto& [m, n, k, batch, groups, weight_precision, block_scaled] = shape;
  return Packed(0, precision, m, n, k, batch, groups, weight_precision, block_scaled);
}

OperatorKey ShapeKey(const operator_cost::AttentionShape& shape, int64_t precision) {
  const auto& [phase, batch, query_tokens, key_tokens, heads, kv_heads, head_size, causal,
               kv_precision, latent_size] = shape;
  return Packed(1, precision, phase, batch, query_tokens, key_tokens, heads, kv_heads, head_size,
                causal, kv_precision, latent_size);
}

OperatorKey ShapeKey(const operator_cost::MemoryBoundShape& shape, int64_t precision) {
  const auto& [kind, rows, columns] = shape;
  return Packed(2, precision, kind, rows, columns);
}

OperatorKey ShapeKey(const operator_cost::ExpertFfnShape& shape, int64_t precision) {
  const auto& [tokens, hidden_size, ffn_size, experts, experts_per_token, tensor_size, expert_size,
               gated, weight_precision, block_scaled, imbalance] = shape;
  return Packed(3, precision, tokens, hidden_size, ffn_size, experts, experts_per_token,
                tensor_size, expert_size, gated,
                static_cast<int64_t>(weight_precision) * 2 + static_cast<int64_t>(block_scaled),
                Bits(imbalance));
}

}  // namespace

OperatorKey KeyOf(const operator_cost::Operator& op) {
  const auto& [shape, precision] = op;
  const auto precision_word = static_cast<int64_t>(precision);
  return std::visit([&](const auto& s) { return ShapeKey(s, precision_word); }, shape);
}

CollectiveKey KeyOf(const collectives::Collective& collective) {
  const auto& [kind, bytes, group_size, ranks_per_node, groups_per_node] = collective;
  return {static_cast<int64_t>(kind), Bits(bytes), group_size, ranks_per_node, groups_per_node};
}

}  // namespace sextant::orchestrator_service
