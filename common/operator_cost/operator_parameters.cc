// SPDX-License-Identifier: Apache-2.0
#include "common/operator_cost/operator_parameters.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"

namespace sextant::operator_cost {
namespace {

using parameters::ParameterDescriptor;

constexpr std::array<absl::string_view, kBlockCount> kBlockNames = {"gemm.fp32",
                                                                    "gemm.tf32",
                                                                    "gemm.16bit",
                                                                    "gemm.fp8",
                                                                    "gemm.fp8_block",
                                                                    "gemm.int8",
                                                                    "gemm.weight_only",
                                                                    "attention.prefill.16bit",
                                                                    "attention.prefill.8bit",
                                                                    "attention.prefill.latent",
                                                                    "attention.backward",
                                                                    "attention.decode.16bit",
                                                                    "attention.decode.8bit",
                                                                    "attention.decode.ungrouped",
                                                                    "attention.decode.wide",
                                                                    "attention.decode.latent",
                                                                    "memory_bound.norm",
                                                                    "memory_bound.softmax",
                                                                    "memory_bound.elementwise",
                                                                    "memory_bound.gated_activation",
                                                                    "memory_bound.activation",
                                                                    "memory_bound.rotary",
                                                                    "memory_bound.gather",
                                                                    "memory_bound.cross_entropy",
                                                                    "memory_bound.optimizer",
                                                                    "expert_ffn.16bit",
                                                                    "expert_ffn.8bit",
                                                                    "expert_ffn.8bit_block"};

// What differs between software stacks: how good the kernels are and what a launch costs. The rest
// is the accelerator's.
constexpr std::array<absl::string_view, 3> kGemmProfile = {"peak_efficiency", "hbm_efficiency",
                                                           "fixed_seconds"};
constexpr std::array<absl::string_view, 5> kPrefillProfile = {
    "peak_efficiency", "tile_fixed_seconds", "hbm_efficiency", "packed_share", "fixed_seconds"};
constexpr std::array<absl::string_view, 3> kMemoryBoundProfile = {"hbm_efficiency", "l2_efficiency",
                                                                  "fixed_seconds"};
constexpr std::array<absl::string_view, 7> kDecodeProfile = {
    "hbm_efficiency",  "key_seconds",         "block_seconds", "blocks_per_sm",
    "combine_seconds", "wide_group_unshared", "fixed_seconds"};

bool Between(Block block, Block first, int count) {
  const int offset = static_cast<int>(block) - static_cast<int>(first);
  return offset >= 0 && offset < count;
}
bool IsGemm(Block block) { return Between(block, Block::kGemmFp32, kGemmBlockCount); }
bool IsPrefill(Block block) { return Between(block, Block::kPrefill16Bit, kPrefillBlockCount); }
bool IsDecode(Block block) { return Between(block, Block::kDecode, kDecodeBlockCount); }
bool IsMemoryBound(Block block) { return Between(block, Block::kNorm, kMemoryBoundBlockCount); }

Block GemmBlock(const GemmShape& shape, Precision precision) {
  if (hardware::BytesPerElement(shape.weight_precision) < hardware::BytesPerElement(precision)) {
    return Block::kGemmWeightOnly;
  }
  switch (precision) {
    case Precision::kFp32:
      return Block::kGemmFp32;
    case Precision::kTf32:
      return Block::kGemmTf32;
    case Precision::kFp16:
    case Precision::kBf16:
      return Block::kGemm16Bit;
    case Precision::kFp8:
    case Precision::kFp4:
      return shape.block_scaled ? Block::kGemmFp8Block : Block::kGemmFp8;
    case Precision::kInt8:
    case Precision::kInt4:
      return Block::kGemmInt8;
  }
  return Block::kGemm16Bit;
}

Block AttentionBlock(const AttentionShape& shape, Precision precision) {
  const bool latent = shape.latent_size > 0;
  switch (shape.phase) {
    case AttentionPhase::kPrefill:
      if (latent) return Block::kLatentPrefill;
      return hardware::BytesPerElement(precision) < 2 ? Block::kPrefill8Bit : Block::kPrefill16Bit;
    case AttentionPhase::kBackward:
      return Block::kBackward;
    case AttentionPhase::kDecode:
      if (latent) return Block::kLatentDecode;
      // Libraries have kernels of their own for heads that share no keys, and none, or others, for
      // very wide groups.
      if (shape.head_count == shape.kv_head_count) return Block::kUngroupedDecode;
      if (shape.head_count > kWidestSharedGroup * shape.kv_head_count) return Block::kWideDecode;
      return hardware::BytesPerElement(shape.kv_precision) < 2 ? Block::kDecode8Bit
                                                               : Block::kDecode;
  }
  return Block::kPrefill16Bit;
}

Block MemoryBoundBlock(MemoryBoundKind kind) {
  switch (kind) {
    case MemoryBoundKind::kNorm:
    case MemoryBoundKind::kNormBackward:
      return Block::kNorm;
    case MemoryBoundKind::kSoftmax:
      return Block::kSoftmax;
    case MemoryBoundKind::kRotary:
      return Block::kRotary;
    case MemoryBoundKind::kGatedActivation:
      return Block::kGatedActivation;
    case MemoryBoundKind::kActivation:
    case MemoryBoundKind::kActivationBackward:
      return Block::kActivation;
    case MemoryBoundKind::kAdd:
    case MemoryBoundKind::kElementwise:
    case MemoryBoundKind::kCopy:
      return Block::kElementwise;
    case MemoryBoundKind::kEmbedding:
    case MemoryBoundKind::kTranspose:
      return Block::kGather;
    case MemoryBoundKind::kCrossEntropy:
      return Block::kCrossEntropy;
    case MemoryBoundKind::kOptimizer:
      return Block::kOptimizer;
  }
  return Block::kElementwise;
}

// Whose values stand in for a block that nothing was fitted on: the nearest block of the same
// formula, which knows the accelerator's bandwidths and launches. Its own where there is none.
Block StandIn(Block block) {
  switch (block) {
    case Block::kGemmFp8Block:
      return Block::kGemmFp8;
    case Block::kGemmFp8:
    case Block::kGemmInt8:
      return Block::kGemm16Bit;
    case Block::kPrefill8Bit:
      return Block::kPrefill16Bit;
    case Block::kDecode8Bit:
    case Block::kUngroupedDecode:
    case Block::kWideDecode:
      return Block::kDecode;
    case Block::kExpertFfn8BitBlock:
      return Block::kExpertFfn8Bit;
    case Block::kExpertFfn8Bit:
      return Block::kExpertFfn16Bit;
    default:
      return block;
  }
}

bool HasValues(const parameters::ParameterSet& set, absl::string_view accelerator, Block block) {
  const auto descriptors = BlockDescriptors(block);
  return std::any_of(descriptors.begin(), descriptors.end(), [&](const ParameterDescriptor& d) {
    return set.Find(accelerator, "", absl::StrCat(BlockName(block), ".", d.name)).has_value();
  });
}

}  // namespace

absl::string_view BlockName(Block block) { return kBlockNames[static_cast<size_t>(block)]; }

absl::Span<const ParameterDescriptor> BlockDescriptors(Block block) {
  if (IsGemm(block)) return kGemmDescriptors;
  if (IsPrefill(block)) return kPrefillDescriptors;
  if (block == Block::kBackward) return kBackwardDescriptors;
  if (IsDecode(block)) return kDecodeDescriptors;
  if (IsMemoryBound(block)) return kMemoryBoundDescriptors;
  return kExpertFfnDescriptors;
}

absl::Span<const absl::string_view> BlockProfileParameters(Block block) {
  if (IsPrefill(block)) return kPrefillProfile;
  if (block == Block::kBackward) return {};
  if (IsDecode(block)) return kDecodeProfile;
  if (IsMemoryBound(block)) return kMemoryBoundProfile;
  return kGemmProfile;
}

Block BlockOf(const Operator& op) {
  if (const auto* gemm = std::get_if<GemmShape>(&op.shape)) return GemmBlock(*gemm, op.precision);
  if (const auto* attention = std::get_if<AttentionShape>(&op.shape)) {
    return AttentionBlock(*attention, op.precision);
  }
  if (const auto* memory = std::get_if<MemoryBoundShape>(&op.shape)) {
    return MemoryBoundBlock(memory->kind);
  }
  if (hardware::BytesPerElement(op.precision) >= 2) return Block::kExpertFfn16Bit;
  return std::get<ExpertFfnShape>(op.shape).block_scaled ? Block::kExpertFfn8BitBlock
                                                         : Block::kExpertFfn8Bit;
}

std::array<double, kDimensionCount> DimensionsOf(const Operator& op) {
  const auto d = [](int64_t value) { return static_cast<double>(value); };
  if (const auto* gemm = std::get_if<GemmShape>(&op.shape)) {
    return {d(gemm->m), d(gemm->n), d(gemm->k), d(gemm->batch_count) * d(gemm->group_count)};
  }
  if (const auto* attention = std::get_if<AttentionShape>(&op.shape)) {
    return {d(attention->batch_size), d(attention->key_tokens), d(attention->head_count),
            d(attention->head_size)};
  }
  if (const auto* memory = std::get_if<MemoryBoundShape>(&op.shape)) {
    return {d(memory->rows) * d(memory->columns), d(memory->columns), 1, 1};
  }
  const auto& ffn = std::get<ExpertFfnShape>(op.shape);
  return {d(ffn.token_count), d(ffn.hidden_size), d(ffn.ffn_size), d(ffn.expert_count)};
}

std::array<absl::string_view, kDimensionCount> DimensionNames(Block block) {
  if (IsGemm(block)) return {"m", "n", "k", "copies"};
  if (IsPrefill(block) || IsDecode(block) || block == Block::kBackward) {
    return {"batch_size", "key_tokens", "head_count", "head_size"};
  }
  if (IsMemoryBound(block)) return {"elements", "columns", "", ""};
  return {"token_count", "hidden_size", "ffn_size", "expert_count"};
}

OperatorParameters<double> ResolveOperatorParameters(const parameters::ParameterSet& set,
                                                     const hardware::Accelerator& accelerator,
                                                     absl::string_view profile) {
  const parameters::ParameterSource source =
      parameters::ResolveSource(set, accelerator.name, accelerator.parameter_donor);
  OperatorParameters<double> p;
  for (int i = 0; i < kBlockCount; ++i) {
    const absl::string_view block = BlockName(static_cast<Block>(i));
    p.domain[static_cast<size_t>(i)].transferred =
        source.transferred && !parameters::IsMeasured(set, source, block, accelerator.name);
    p.spread[static_cast<size_t>(i)] =
        parameters::FindSpread(set, source, profile, block, kUnmeasuredKernel);
  }
  const auto values = [&](Block block) {
    while (!HasValues(set, source.accelerator, block) && StandIn(block) != block) {
      block = StandIn(block);
    }
    const auto descriptors = BlockDescriptors(block);
    return parameters::BlockValues(set, source, profile, BlockName(block), descriptors.data(),
                                   static_cast<int>(descriptors.size()));
  };
  const auto fill = [&](auto& blocks, Block first) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Block block = static_cast<Block>(static_cast<size_t>(first) + i);
      blocks[i] = std::decay_t<decltype(blocks[i])>::FromArray(values(block).data());
    }
  };
  fill(p.gemm, Block::kGemmFp32);
  fill(p.prefill, Block::kPrefill16Bit);
  p.backward = BackwardParameters<double>::FromArray(values(Block::kBackward).data());
  fill(p.decode, Block::kDecode);
  fill(p.memory_bound, Block::kNorm);
  fill(p.expert_ffn, Block::kExpertFfn16Bit);

  const auto found = set.accelerators().find(source.accelerator);
  if (found == set.accelerators().end()) return p;
  for (const parameters::DomainRange& range : found->second.domain) {
    for (int i = 0; i < kBlockCount; ++i) {
      const Block block = static_cast<Block>(i);
      if (range.block != BlockName(block)) continue;
      const auto names = DimensionNames(block);
      BlockDomain& domain = p.domain[static_cast<size_t>(i)];
      for (size_t d = 0; d < names.size(); ++d) {
        if (names[d] != range.dimension) continue;
        domain.fitted = true;
        domain.minimum[d] = range.minimum;
        domain.maximum[d] = range.maximum;
      }
    }
  }
  return p;
}

std::vector<parameters::KeyedDescriptor> OperatorDescriptors() {
  std::vector<parameters::KeyedDescriptor> all;
  for (int i = 0; i < kBlockCount; ++i) {
    const Block block = static_cast<Block>(i);
    for (const ParameterDescriptor& descriptor : BlockDescriptors(block)) {
      all.push_back({absl::StrCat(BlockName(block), ".", descriptor.name), descriptor});
    }
    parameters::AppendSpreadDescriptors(BlockName(block), kUnmeasuredKernel, all);
  }
  return all;
}

}  // namespace sextant::operator_cost
