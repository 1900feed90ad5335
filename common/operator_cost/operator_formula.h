// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_OPERATOR_FORMULA_H_
#define SEXTANT_COMMON_OPERATOR_COST_OPERATOR_FORMULA_H_

#include <variant>

#include "common/operator_cost/operator_parameters.h"

namespace sextant::operator_cost {

// Cost of any valid operator: the one formula that is both served (T = double) and fitted.
template <typename T>
Cost<T> OperatorCost(const Operator& op, const hardware::Accelerator& accelerator,
                     const OperatorParameters<T>& p) {
  const Block block = BlockOf(op);
  const auto index = [block](Block first) {
    return static_cast<size_t>(block) - static_cast<size_t>(first);
  };
  if (const auto* gemm = std::get_if<GemmShape>(&op.shape)) {
    return GemmCost(*gemm, op.precision, accelerator, p.gemm[index(Block::kGemmFp32)]);
  }
  if (const auto* attention = std::get_if<AttentionShape>(&op.shape)) {
    switch (attention->phase) {
      case AttentionPhase::kPrefill:
        return PrefillCost(*attention, op.precision, accelerator,
                           p.prefill[index(Block::kPrefill16Bit)]);
      case AttentionPhase::kBackward:
        return BackwardCost(*attention, op.precision, accelerator, p.prefill[0], p.backward);
      case AttentionPhase::kDecode:
        return DecodeCost(*attention, op.precision, accelerator, p.decode[index(Block::kDecode)]);
    }
  }
  if (const auto* memory = std::get_if<MemoryBoundShape>(&op.shape)) {
    return MemoryBoundCost(*memory, op.precision, accelerator, p.memory_bound[index(Block::kNorm)]);
  }
  return ExpertFfnCost(std::get<ExpertFfnShape>(op.shape), op.precision, accelerator,
                       p.expert_ffn[index(Block::kExpertFfn16Bit)]);
}

// The same with the values of `block` (that of `op`) as an array in descriptor order; what a block
// leans on beside its own values (attention backward on forward) comes from `others`.
template <typename T>
Cost<T> BlockCost(Block block, const Operator& op, const hardware::Accelerator& accelerator,
                  const T* values, const OperatorParameters<double>& others) {
  if (const auto* gemm = std::get_if<GemmShape>(&op.shape)) {
    return GemmCost(*gemm, op.precision, accelerator, GemmParameters<T>::FromArray(values));
  }
  if (const auto* attention = std::get_if<AttentionShape>(&op.shape)) {
    if (attention->phase == AttentionPhase::kDecode) {
      return DecodeCost(*attention, op.precision, accelerator,
                        DecodeParameters<T>::FromArray(values));
    }
    if (block == Block::kBackward) {
      return BackwardCost(*attention, op.precision, accelerator, others.prefill[0].template As<T>(),
                          BackwardParameters<T>::FromArray(values));
    }
    return PrefillCost(*attention, op.precision, accelerator,
                       PrefillParameters<T>::FromArray(values));
  }
  if (const auto* memory = std::get_if<MemoryBoundShape>(&op.shape)) {
    return MemoryBoundCost(*memory, op.precision, accelerator,
                           MemoryBoundParameters<T>::FromArray(values));
  }
  return ExpertFfnCost(std::get<ExpertFfnShape>(op.shape), op.precision, accelerator,
                       ExpertFfnParameters<T>::FromArray(values));
}

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_OPERATOR_FORMULA_H_
