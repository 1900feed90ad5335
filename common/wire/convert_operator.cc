// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_join.h"
#include "common/wire/convert.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

using hardware::Precision;
using operator_cost::AttentionPhase;
using operator_cost::AttentionShape;
using operator_cost::Binding;
using operator_cost::ExpertFfnShape;
using operator_cost::GemmShape;
using operator_cost::MemoryBoundKind;
using operator_cost::MemoryBoundShape;

// In the order of the enumerators.
constexpr std::array<absl::string_view, 3> kPhases = {"prefill", "backward", "decode"};
constexpr std::array<absl::string_view, 14> kKinds = {
    "norm",          "norm_backward",       "softmax", "rotary",      "gated_activation",
    "activation",    "activation_backward", "add",     "elementwise", "embedding",
    "cross_entropy", "optimizer",           "copy",    "transpose"};
constexpr std::array<absl::string_view, 5> kBindings = {"matrix_rate", "l2_bandwidth",
                                                        "hbm_bandwidth", "launch", "vector_rate"};

template <typename Enum, size_t N>
absl::StatusOr<Enum> ParseWord(const std::array<absl::string_view, N>& names,
                               absl::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<Binding> ParseBinding(absl::string_view name) {
  return ParseWord<Binding>(kBindings, name);
}

std::string Word(Precision precision) { return std::string(hardware::PrecisionName(precision)); }

GemmShape ReadGemm(Reader& reader, const types::v1::GemmShape& proto, Precision precision) {
  return {.m = proto.m(),
          .n = proto.n(),
          .k = proto.k(),
          .batch_count = proto.has_batch_count() ? proto.batch_count() : 1,
          .group_count = proto.has_group_count() ? proto.group_count() : 1,
          .weight_precision = reader.Word("gemm.weight_precision", proto.weight_precision(),
                                          hardware::ParsePrecision, precision),
          .block_scaled = proto.block_scaled()};
}

AttentionShape ReadAttention(Reader& reader, const types::v1::AttentionShape& proto,
                             Precision precision) {
  return {.phase = reader.Word("attention.phase", proto.phase(), ParseAttentionPhase,
                               AttentionPhase::kPrefill),
          .batch_size = proto.batch_size(),
          .query_tokens = proto.query_tokens(),
          .key_tokens = proto.key_tokens(),
          .head_count = proto.head_count(),
          .kv_head_count = proto.kv_head_count(),
          .head_size = proto.head_size(),
          .causal = !proto.has_causal() || proto.causal(),
          .kv_precision = reader.Word("attention.kv_precision", proto.kv_precision(),
                                      hardware::ParsePrecision, precision),
          .latent_size = proto.latent_size()};
}

MemoryBoundShape ReadMemoryBound(Reader& reader, const types::v1::MemoryBoundShape& proto) {
  if (proto.kind().empty()) reader.Missing("memory_bound.kind", "say what the operator does");
  return {.kind = reader.Word("memory_bound.kind", proto.kind(), ParseMemoryBoundKind,
                              MemoryBoundKind::kCopy),
          .rows = proto.rows(),
          .columns = proto.columns()};
}

ExpertFfnShape ReadExpertFfn(Reader& reader, const types::v1::ExpertFfnShape& proto,
                             Precision precision) {
  return {
      .token_count = proto.token_count(),
      .hidden_size = proto.hidden_size(),
      .ffn_size = proto.ffn_size(),
      .expert_count = proto.expert_count(),
      .experts_per_token = proto.experts_per_token(),
      .tensor_parallel_size = proto.has_tensor_parallel_size() ? proto.tensor_parallel_size() : 1,
      .expert_parallel_size = proto.has_expert_parallel_size() ? proto.expert_parallel_size() : 1,
      .gated = !proto.has_gated() || proto.gated(),
      .weight_precision = reader.Word("expert_ffn.weight_precision", proto.weight_precision(),
                                      hardware::ParsePrecision, precision),
      .block_scaled = proto.block_scaled(),
      .imbalance =
          proto.has_imbalance() ? reader.Finite("expert_ffn.imbalance", proto.imbalance()) : 1};
}

void Fill(const GemmShape& shape, types::v1::Operator& proto) {
  types::v1::GemmShape& out = *proto.mutable_gemm();
  out.set_m(shape.m);
  out.set_n(shape.n);
  out.set_k(shape.k);
  out.set_batch_count(shape.batch_count);
  out.set_group_count(shape.group_count);
  out.set_weight_precision(Word(shape.weight_precision));
  out.set_block_scaled(shape.block_scaled);
}

void Fill(const AttentionShape& shape, types::v1::Operator& proto) {
  types::v1::AttentionShape& out = *proto.mutable_attention();
  out.set_phase(std::string(AttentionPhaseName(shape.phase)));
  out.set_batch_size(shape.batch_size);
  out.set_query_tokens(shape.query_tokens);
  out.set_key_tokens(shape.key_tokens);
  out.set_head_count(shape.head_count);
  out.set_kv_head_count(shape.kv_head_count);
  out.set_head_size(shape.head_size);
  out.set_causal(shape.causal);
  out.set_kv_precision(Word(shape.kv_precision));
  out.set_latent_size(shape.latent_size);
}

void Fill(const MemoryBoundShape& shape, types::v1::Operator& proto) {
  types::v1::MemoryBoundShape& out = *proto.mutable_memory_bound();
  out.set_kind(std::string(MemoryBoundKindName(shape.kind)));
  out.set_rows(shape.rows);
  out.set_columns(shape.columns);
}

void Fill(const ExpertFfnShape& shape, types::v1::Operator& proto) {
  types::v1::ExpertFfnShape& out = *proto.mutable_expert_ffn();
  out.set_token_count(shape.token_count);
  out.set_hidden_size(shape.hidden_size);
  out.set_ffn_size(shape.ffn_size);
  out.set_expert_count(shape.expert_count);
  out.set_experts_per_token(shape.experts_per_token);
  out.set_tensor_parallel_size(shape.tensor_parallel_size);
  out.set_expert_parallel_size(shape.expert_parallel_size);
  out.set_gated(shape.gated);
  out.set_weight_precision(Word(shape.weight_precision));
  out.set_block_scaled(shape.block_scaled);
  out.set_imbalance(shape.imbalance);
}

}  // namespace

absl::string_view AttentionPhaseName(AttentionPhase phase) {
  return kPhases[static_cast<size_t>(phase)];
}
absl::StatusOr<AttentionPhase> ParseAttentionPhase(absl::string_view name) {
  return ParseWord<AttentionPhase>(kPhases, name);
}
absl::string_view MemoryBoundKindName(MemoryBoundKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}
absl::StatusOr<MemoryBoundKind> ParseMemoryBoundKind(absl::string_view name) {
  return ParseWord<MemoryBoundKind>(kKinds, name);
}

types::v1::Operator ToProto(const operator_cost::Operator& op) {
  types::v1::Operator proto;
  std::visit([&](const auto& shape) { Fill(shape, proto); }, op.shape);
  proto.set_precision(Word(op.precision));
  return proto;
}

absl::StatusOr<operator_cost::Operator> FromProto(const types::v1::Operator& proto) {
  Reader reader;
  operator_cost::Operator op;
  op.precision =
      reader.Word("precision", proto.precision(), hardware::ParsePrecision, Precision::kBf16);
  switch (proto.shape_case()) {
    case types::v1::Operator::kGemm:
      op.shape = ReadGemm(reader, proto.gemm(), op.precision);
      break;
    case types::v1::Operator::kAttention:
      op.shape = ReadAttention(reader, proto.attention(), op.precision);
      break;
    case types::v1::Operator::kMemoryBound:
      op.shape = ReadMemoryBound(reader, proto.memory_bound());
      break;
    case types::v1::Operator::kExpertFfn:
      op.shape = ReadExpertFfn(reader, proto.expert_ffn(), op.precision);
      break;
    case types::v1::Operator::SHAPE_NOT_SET:
      reader.Missing("shape", "give one of gemm, attention, memory_bound, expert_ffn");
      break;
  }
  return reader.Finish(std::move(op));
}

types::v1::OperatorEstimate ToProto(const operator_cost::OperatorEstimate& estimate) {
  types::v1::OperatorEstimate proto;
  proto.set_seconds(estimate.seconds);
  proto.set_binding(std::string(kBindings[static_cast<size_t>(estimate.binding)]));
  proto.set_flop_count(estimate.flop_count);
  proto.set_hbm_bytes(estimate.hbm_bytes);
  proto.set_roofline_seconds(estimate.roofline_seconds);
  proto.set_extrapolated(estimate.extrapolated);
  proto.set_interval_low_seconds(estimate.interval_low_seconds);
  proto.set_interval_high_seconds(estimate.interval_high_seconds);
  return proto;
}

absl::StatusOr<operator_cost::OperatorEstimate> FromProto(
    const types::v1::OperatorEstimate& proto) {
  Reader reader;
  operator_cost::OperatorEstimate estimate;
  estimate.seconds = reader.Finite("seconds", proto.seconds());
  estimate.binding = reader.Word("binding", proto.binding(), ParseBinding, Binding::kMatrixRate);
  estimate.flop_count = reader.Finite("flop_count", proto.flop_count());
  estimate.hbm_bytes = reader.Finite("hbm_bytes", proto.hbm_bytes());
  estimate.roofline_seconds = reader.Finite("roofline_seconds", proto.roofline_seconds());
  estimate.extrapolated = proto.extrapolated();
  estimate.interval_low_seconds =
      reader.Finite("interval_low_seconds", proto.interval_low_seconds());
  estimate.interval_high_seconds =
      reader.Finite("interval_high_seconds", proto.interval_high_seconds());
  return reader.Finish(std::move(estimate));
}

types::v1::Collective ToProto(const collectives::Collective& collective) {
  types::v1::Collective proto;
  proto.set_kind(std::string(collectives::CollectiveKindName(collective.kind)));
  proto.set_bytes(collective.bytes);
  proto.set_group_size(collective.group_size);
  proto.set_ranks_per_node(collective.ranks_per_node);
  proto.set_groups_per_node(collective.groups_per_node);
  return proto;
}

absl::StatusOr<collectives::Collective> FromProto(const types::v1::Collective& proto) {
  Reader reader;
  collectives::Collective collective;
  if (proto.kind().empty()) reader.Missing("kind", "say which collective, for example all_reduce");
  collective.kind = reader.Word("kind", proto.kind(), collectives::ParseCollectiveKind,
                                collectives::CollectiveKind::kAllReduce);
  collective.bytes = reader.Finite("bytes", proto.bytes());
  if (proto.has_group_size()) collective.group_size = proto.group_size();
  if (proto.has_ranks_per_node()) collective.ranks_per_node = proto.ranks_per_node();
  if (proto.has_groups_per_node()) collective.groups_per_node = proto.groups_per_node();
  return reader.Finish(std::move(collective));
}

types::v1::CollectiveEstimate ToProto(const collectives::CollectiveEstimate& estimate) {
  types::v1::CollectiveEstimate proto;
  proto.set_seconds(estimate.seconds);
  proto.set_latency_seconds(estimate.latency_seconds);
  proto.set_network_bound(estimate.network_bound);
  proto.set_extrapolated(estimate.extrapolated);
  proto.set_interval_low_seconds(estimate.interval_low_seconds);
  proto.set_interval_high_seconds(estimate.interval_high_seconds);
  return proto;
}

absl::StatusOr<collectives::CollectiveEstimate> FromProto(
    const types::v1::CollectiveEstimate& proto) {
  Reader reader;
  collectives::CollectiveEstimate estimate;
  estimate.seconds = reader.Finite("seconds", proto.seconds());
  estimate.latency_seconds = reader.Finite("latency_seconds", proto.latency_seconds());
  estimate.network_bound = proto.network_bound();
  estimate.extrapolated = proto.extrapolated();
  estimate.interval_low_seconds =
      reader.Finite("interval_low_seconds", proto.interval_low_seconds());
  estimate.interval_high_seconds =
      reader.Finite("interval_high_seconds", proto.interval_high_seconds());
  return reader.Finish(std::move(estimate));
}

}  // namespace sextant::wire
