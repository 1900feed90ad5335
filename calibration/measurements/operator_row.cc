// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "calibration/measurements/row_reader.h"
#include "common/operator_cost/expert_ffn_formula.h"
#include "common/operator_cost/operator_cost.h"

namespace sextant::calibration {
namespace {

using hardware::Precision;
using operator_cost::AttentionPhase;
using operator_cost::AttentionShape;
using operator_cost::ExpertFfnShape;
using operator_cost::GemmShape;
using operator_cost::MemoryBoundKind;
using operator_cost::MemoryBoundShape;

// DeepSeek-V2 (arXiv:2405.04434): latent 512 and rotary 64; a head's query is 128 + 64 wide.
constexpr int64_t kLatentSize = 512 + 64;
constexpr int64_t kLatentQuerySize = 128 + 64;

// How a dtype word stores activations and weights.
struct Formats {
  Precision activations = Precision::kBf16;
  Precision weights = Precision::kBf16;
  bool block_scaled = false;
};

std::optional<Formats> ReadFormats(RowReader& row, RowFacts* facts) {
  const absl::string_view dtype = row.Text("dtype");
  if (dtype.empty()) {
    facts->warnings.push_back("dtype not stated: bf16 assumed");
    return Formats{};
  }
  if (dtype == "int8_wo") return Formats{Precision::kFp16, Precision::kInt8, false};
  if (dtype == "int4_wo") return Formats{Precision::kFp16, Precision::kInt4, false};
  if (dtype == "sq") return Formats{Precision::kInt8, Precision::kInt8, false};
  if (dtype == "fp8_block") return Formats{Precision::kFp8, Precision::kFp8, true};
  const auto precision = hardware::ParsePrecision(dtype);
  if (!precision.ok()) {
    row.violations().Add("dtype", OneLine(precision.status()));
    return std::nullopt;
  }
  return Formats{*precision, *precision, false};
}

// The number after `key` in the row's notes, such as 20 for "groups=20;...".
std::optional<double> NoteNumber(const RowReader& row, absl::string_view key) {
  absl::string_view notes = row.Text("notes");
  const size_t at = notes.find(key);
  if (at == absl::string_view::npos) return std::nullopt;
  notes.remove_prefix(at + key.size());
  double value = 0;
  const size_t length = std::min(notes.find_first_not_of("0123456789."), notes.size());
  return absl::SimpleAtod(notes.substr(0, length), &value) ? std::make_optional(value)
                                                           : std::nullopt;
}

const std::map<std::string, MemoryBoundKind, std::less<>>& StreamingKinds() {
  static const auto& kinds = *new std::map<std::string, MemoryBoundKind, std::less<>>{
      {"norm", MemoryBoundKind::kNorm},
      {"layernorm", MemoryBoundKind::kNorm},
      {"rmsnorm", MemoryBoundKind::kNorm},
      {"softmax", MemoryBoundKind::kSoftmax},
      {"rope", MemoryBoundKind::kRotary},
      {"silu_mul", MemoryBoundKind::kGatedActivation},
      {"gelu", MemoryBoundKind::kActivation},
      {"relu", MemoryBoundKind::kActivation},
      {"tanh", MemoryBoundKind::kActivation},
      {"silu", MemoryBoundKind::kActivation},
      {"add", MemoryBoundKind::kAdd},
      {"mul", MemoryBoundKind::kAdd},
      {"div", MemoryBoundKind::kAdd},
      {"pow", MemoryBoundKind::kAdd},
      {"addu", MemoryBoundKind::kElementwise},
      {"mulu", MemoryBoundKind::kElementwise},
      {"divu", MemoryBoundKind::kElementwise},
      {"powu", MemoryBoundKind::kElementwise},
      {"embedding", MemoryBoundKind::kEmbedding}};
  return kinds;
}

GemmShape ReadGemm(RowReader& row, const Formats& formats, RowFacts* facts) {
  GemmShape shape;
  shape.m = row.RequiredInteger("m");
  shape.n = row.RequiredInteger("n");
  shape.k = row.RequiredInteger("k");
  shape.batch_count = row.Integer("batch").value_or(1);
  shape.weight_precision = formats.weights;
  shape.block_scaled = formats.block_scaled;
  if (row.Text("op") == "bmm" && !row.Has("batch")) row.Missing("batch");
  if (row.Text("op") == "grouped_gemm") {
    if (row.Has("groups")) {
      shape.group_count = row.RequiredInteger("groups");
    } else if (const auto noted = NoteNumber(row, "groups="); noted && *noted >= 1) {
      shape.group_count = static_cast<int64_t>(*noted);
      facts->warnings.push_back("groups taken from the notes");
    } else {
      row.Missing("groups");
    }
  }
  return shape;
}

AttentionShape ReadAttention(RowReader& row, const Formats& formats, bool decode, bool latent,
                             RowFacts* facts) {
  AttentionShape shape;
  shape.phase = decode ? AttentionPhase::kDecode : AttentionPhase::kPrefill;
  shape.batch_size = row.RequiredInteger("batch");
  shape.query_tokens = decode ? row.Integer("seq_q").value_or(1) : row.RequiredInteger("seq_q");
  shape.key_tokens = row.RequiredInteger("seq_kv");
  shape.head_count = row.RequiredInteger("heads");
  if (latent) {
    shape.kv_head_count = shape.head_count;
    shape.latent_size = kLatentSize;
    shape.head_size = row.Integer("head_dim").value_or(kLatentQuerySize);
  } else {
    shape.kv_head_count = row.Has("kv_heads") ? row.RequiredInteger("kv_heads") : shape.head_count;
    if (!row.Has("kv_heads")) facts->warnings.push_back("kv_heads not stated: heads assumed");
    shape.head_size = row.RequiredInteger("head_dim");
  }
  shape.causal = row.Has("causal") ? row.RequiredInteger("causal", 0) != 0 : !decode;
  if (!row.Has("causal") && !decode) facts->warnings.push_back("causal not stated: 1 assumed");
  const auto kv = ReadPrecision(row, "kv_dtype");
  shape.kv_precision = kv.value_or(formats.activations);
  return shape;
}

ExpertFfnShape ReadExpertFfn(RowReader& row, const Formats& formats, RowFacts* facts) {
  ExpertFfnShape shape;
  const int64_t m = row.RequiredInteger("m");
  shape.hidden_size = row.RequiredInteger("k");
  shape.ffn_size = row.RequiredInteger("n");
  shape.expert_count = row.RequiredInteger("experts");
  shape.experts_per_token = row.RequiredInteger("topk");
  shape.weight_precision = formats.weights;
  shape.block_scaled = formats.block_scaled;
  shape.gated = !absl::StrContains(row.Text("notes"), "nongated");
  shape.token_count = m;
  if (row.Text("op") == "moe_ffn") {
    shape.tensor_parallel_size = row.IntegerOr("moe_tp", 1, &facts->warnings);
    shape.expert_parallel_size = row.IntegerOr("moe_ep", 1, &facts->warnings);
    absl::string_view distribution = row.Text("expert_distribution");
    double exponent = 0;
    if (absl::ConsumePrefix(&distribution, "power_law_") &&
        absl::SimpleAtod(distribution, &exponent) && m > 0 && shape.expert_count > 0) {
      shape.imbalance = operator_cost::PowerLawImbalance(
          m, shape.expert_count, shape.experts_per_token, shape.expert_parallel_size, exponent);
    }
    // SGLang's benchmark keeps tokens on the measured rank: its times do not fall with moe_ep up to
    // 8 (one node), and beyond fall as from there.
    if (absl::StartsWithIgnoreCase(row.Text("software"), "sglang")) {
      shape.imbalance *= static_cast<double>(std::min<int64_t>(shape.expert_parallel_size, 8));
    }
    return shape;
  }
  // moe_grouped_gemm: one rank's experts and its share of n. m counts the rows that reach them,
  // except where the notes count these as routed_tokens.
  if (row.Has("groups")) {
    shape.expert_count = row.RequiredInteger("groups");
  } else if (const auto local = NoteNumber(row, "local experts "); local && *local >= 1) {
    shape.expert_count = static_cast<int64_t>(*local);
  }
  shape.experts_per_token =
      std::max<int64_t>(1, std::min(shape.experts_per_token, shape.expert_count));
  const double rows = NoteNumber(row, "routed_tokens=").value_or(static_cast<double>(m));
  shape.token_count = std::max<int64_t>(
      m > 0 ? 1 : 0, static_cast<int64_t>(rows) / std::max<int64_t>(1, shape.experts_per_token));
  return shape;
}

}  // namespace

OperatorRow ReadOperatorRow(RowReader& row, Lookups& lookups) {
  OperatorRow result;
  result.facts = ReadFacts(row, "software");
  RowFacts& facts = result.facts;
  facts.family = std::string(row.Text("family"));
  const absl::string_view op = row.Text("op");
  if (facts.family.empty()) facts.family = std::string(op);

  const auto* accelerator = &lookups.Accelerator(facts.accelerator);
  if (facts.accelerator.empty()) {
    row.Missing("accelerator");
  } else if (!accelerator->ok()) {
    row.violations().Add("accelerator", OneLine(accelerator->status()));
  }
  result.measured_seconds = row.RequiredPositive("latency_us") * 1e-6;
  const std::optional<Formats> formats = ReadFormats(row, &facts);
  if (formats) {
    result.op.precision = formats->activations;
    const auto streaming = StreamingKinds().find(std::string(op));
    if (op == "gemm" || op == "bmm" || op == "grouped_gemm") {
      result.op.shape = ReadGemm(row, *formats, &facts);
    } else if (op == "attention_prefill" || op == "attention_decode" || op == "mla_prefill" ||
               op == "mla_decode") {
      result.op.shape = ReadAttention(row, *formats, absl::EndsWith(op, "_decode"),
                                      absl::StartsWith(op, "mla_"), &facts);
    } else if (op == "moe_ffn" || op == "moe_grouped_gemm") {
      result.op.shape = ReadExpertFfn(row, *formats, &facts);
    } else if (streaming != StreamingKinds().end()) {
      result.op.shape =
          MemoryBoundShape{streaming->second, row.RequiredInteger("m"), row.RequiredInteger("n")};
    } else if (op.empty()) {
      row.Missing("op");
    } else {
      row.violations().Add("op", absl::StrCat("is \"", op, "\", which is not an operator"));
    }
  }
  if (row.violations().empty()) {
    // Runs at a locked clock say so; every on-chip rate scales with it, HBM does not.
    const auto clock = NoteNumber(row, "sm_clock_GHz=");
    const double scale = clock ? *clock * 1e9 / (*accelerator)->boost_clock_hz : 1;
    std::shared_ptr<const hardware::Accelerator>& shared =
        lookups.accelerators[absl::StrCat(facts.accelerator, "\n", scale)];
    if (shared == nullptr) {
      auto copy = std::make_shared<hardware::Accelerator>(**accelerator);
      copy->boost_clock_hz *= scale;
      for (double& rate : copy->matrix_flop_per_second) rate *= scale;
      copy->vector_flop_per_second *= scale;
      copy->l2_bandwidth_bytes_per_second *= scale;
      shared = std::move(copy);
    }
    if (clock) {
      facts.warnings.push_back(absl::StrCat("measured at a clock of ", *clock, " GHz"));
    }
    result.accelerator = shared;
    const absl::Status valid = operator_cost::ValidateOperator(result.op, *shared);
    for (const base::Violation& violation : base::ViolationsOf(valid)) {
      row.violations().Add(violation.field, violation.description);
    }
  }
  facts.refusal = row.Refusal();
  return result;
}

}  // namespace sextant::calibration
