// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_OPERATOR_PARAMETERS_H_
#define SEXTANT_COMMON_OPERATOR_COST_OPERATOR_PARAMETERS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/hardware/accelerator.h"
#include "common/operator_cost/attention_formula.h"
#include "common/operator_cost/expert_ffn_formula.h"
#include "common/operator_cost/gemm_formula.h"
#include "common/operator_cost/memory_bound_formula.h"
#include "common/operator_cost/operator.h"
#include "common/parameters/parameter_set.h"
#include "common/parameters/spread.h"

namespace sextant::operator_cost {

// A block of parameters that are fitted together. Order is that of kBlocks.
enum class Block : int {
  kGemmFp32,
  kGemmTf32,
  kGemm16Bit,
  kGemmFp8,
  kGemmFp8Block,
  kGemmInt8,
  kGemmWeightOnly,
  kPrefill16Bit,
  kPrefill8Bit,
  kLatentPrefill,
  kBackward,
  kDecode,
  kDecode8Bit,
  kUngroupedDecode,
  kWideDecode,
  kLatentDecode,
  kNorm,
  kSoftmax,
  kElementwise,
  kGatedActivation,
  kActivation,
  kRotary,
  kGather,
  kCrossEntropy,
  kOptimizer,
  kExpertFfn16Bit,
  kExpertFfn8Bit,
  kExpertFfn8BitBlock,
};
inline constexpr int kBlockCount = 28;
inline constexpr int kGemmBlockCount = 7;
inline constexpr int kPrefillBlockCount = 3;
inline constexpr int kDecodeBlockCount = 5;
inline constexpr int kMemoryBoundBlockCount = 9;
inline constexpr int kExpertFfnBlockCount = 3;

// "gemm.16bit", "attention.decode", ...
absl::string_view BlockName(Block block);
absl::Span<const parameters::ParameterDescriptor> BlockDescriptors(Block block);
// Names of the few parameters of the block that a software profile may override.
absl::Span<const absl::string_view> BlockProfileParameters(Block block);
// The block whose parameters cost `op`.
Block BlockOf(const Operator& op);

// Sizes of an operator that the domain of its block is told in, in the order of DimensionNames.
inline constexpr int kDimensionCount = 4;
std::array<double, kDimensionCount> DimensionsOf(const Operator& op);
std::array<absl::string_view, kDimensionCount> DimensionNames(Block block);

// Ranges of sizes that a block was fitted on.
struct BlockDomain {
  bool fitted = false;
  bool transferred = true;  // no row of the accelerator took part in the fit
  std::array<double, kDimensionCount> minimum{};
  std::array<double, kDimensionCount> maximum{};
};

// All parameters of the room for one (accelerator, profile).
template <typename T>
struct OperatorParameters {
  std::array<GemmParameters<T>, kGemmBlockCount> gemm;           // from Block::kGemmFp32
  std::array<PrefillParameters<T>, kPrefillBlockCount> prefill;  // from Block::kPrefill16Bit
  BackwardParameters<T> backward;
  std::array<DecodeParameters<T>, kDecodeBlockCount> decode;                  // from Block::kDecode
  std::array<MemoryBoundParameters<T>, kMemoryBoundBlockCount> memory_bound;  // from Block::kNorm
  std::array<ExpertFfnParameters<T>, kExpertFfnBlockCount> expert_ffn;
  std::array<BlockDomain, kBlockCount> domain;
  std::array<parameters::Spread, kBlockCount> spread;
};

// Parameters for `accelerator` (its own, else its donor's, else initial values) under `profile`
// (unknown or empty: the shared values).
OperatorParameters<double> ResolveOperatorParameters(const parameters::ParameterSet& set,
                                                     const hardware::Accelerator& accelerator,
                                                     absl::string_view profile);

// Where no row was ever measured: 0.6 to 1.6 times the time of the formulas' initial values; an
// assumption.
inline constexpr parameters::Spread kUnmeasuredKernel = {-0.5, 0.5};

// Every parameter of the room under its full key.
std::vector<parameters::KeyedDescriptor> OperatorDescriptors();

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_OPERATOR_PARAMETERS_H_
