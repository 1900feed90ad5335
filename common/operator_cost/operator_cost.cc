// SPDX-License-Identifier: Apache-2.0
#include "common/operator_cost/operator_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"
#include "common/operator_cost/operator_formula.h"

namespace sextant::operator_cost {
namespace {

// Sizes are counted in double: products below 2^53 are exact, and far beyond what a GPU holds.
constexpr int64_t kLargestSize = int64_t{1} << 40;
constexpr double kLargestProduct = 9007199254740992.0;  // 2^53
constexpr double kLargestFlopCount = 1e24;

class Checker {
 public:
  Checker(base::Violations& violations, absl::string_view family)
      : violations_(violations), family_(family) {}

  void Size(absl::string_view field, int64_t value, int64_t minimum = 1) {
    if (value < minimum || value > kLargestSize) {
      violations_.Add(absl::StrCat(family_, ".", field),
                      absl::StrCat("is ", value, " but must be between ", minimum, " and 2^40"));
    }
  }
  // The product of `sizes` stays countable.
  void Product(absl::string_view field, std::initializer_list<int64_t> sizes,
               double limit = kLargestProduct) {
    double product = 1;
    for (const int64_t size : sizes) product *= static_cast<double>(size);
    if (product > limit) {
      violations_.Add(absl::StrCat(family_, ".", field),
                      absl::StrCat("makes a product of sizes of ", product, " but at most ", limit,
                                   " can be costed; use smaller sizes"));
    }
  }
  void Add(absl::string_view field, absl::string_view description) {
    violations_.Add(absl::StrCat(family_, ".", field), description);
  }

 private:
  base::Violations& violations_;
  absl::string_view family_;
};

void Validate(const GemmShape& shape, Checker check) {
  check.Size("m", shape.m);
  check.Size("n", shape.n);
  check.Size("k", shape.k);
  check.Size("batch_count", shape.batch_count);
  check.Size("group_count", shape.group_count);
  check.Product("m", {shape.m, shape.k, shape.batch_count});
  check.Product("n", {shape.n, shape.k, shape.batch_count, shape.group_count});
  check.Product("k", {shape.m, shape.n, shape.batch_count});
  check.Product("m", {shape.m, shape.n, shape.k, shape.batch_count}, kLargestFlopCount);
}

void Validate(const AttentionShape& shape, Checker check) {
  check.Size("batch_size", shape.batch_size);
  check.Size("query_tokens", shape.query_tokens);
  check.Size("key_tokens", shape.key_tokens);
  check.Size("head_count", shape.head_count);
  check.Size("kv_head_count", shape.kv_head_count);
  check.Size("head_size", shape.head_size);
  check.Size("latent_size", shape.latent_size, 0);
  if (shape.latent_size == 0 && shape.kv_head_count > 0 &&
      shape.head_count % shape.kv_head_count != 0) {
    check.Add("kv_head_count", absl::StrCat("is ", shape.kv_head_count,
                                            " but must divide head_count ", shape.head_count));
  }
  if (shape.phase == AttentionPhase::kDecode && shape.query_tokens > 64) {
    check.Add("query_tokens", absl::StrCat("is ", shape.query_tokens,
                                           " but a decode step has at most 64 (speculated) new "
                                           "tokens; use phase prefill"));
  }
  if (shape.query_tokens > shape.key_tokens && shape.causal) {
    check.Add("query_tokens", absl::StrCat("is ", shape.query_tokens, " but key_tokens ",
                                           shape.key_tokens, " include the new tokens"));
  }
  check.Product("query_tokens",
                {shape.batch_size, shape.query_tokens, shape.head_count, shape.head_size});
  check.Product("key_tokens",
                {shape.batch_size, shape.key_tokens, shape.kv_head_count, shape.head_size});
  check.Product(
      "key_tokens",
      {shape.batch_size, shape.query_tokens, shape.key_tokens, shape.head_count, shape.head_size},
      kLargestFlopCount);
}

void Validate(const MemoryBoundShape& shape, Checker check) {
  check.Size("rows", shape.rows);
  check.Size("columns", shape.columns);
  check.Product("rows", {shape.rows, shape.columns});
}

void Validate(const ExpertFfnShape& shape, Checker check) {
  check.Size("token_count", shape.token_count);
  check.Size("hidden_size", shape.hidden_size);
  check.Size("ffn_size", shape.ffn_size);
  check.Size("expert_count", shape.expert_count);
  check.Size("experts_per_token", shape.experts_per_token);
  check.Size("tensor_parallel_size", shape.tensor_parallel_size);
  check.Size("expert_parallel_size", shape.expert_parallel_size);
  if (shape.experts_per_token > shape.expert_count) {
    check.Add("experts_per_token", absl::StrCat("is ", shape.experts_per_token,
                                                " but expert_count is ", shape.expert_count));
  }
  if (shape.expert_parallel_size > shape.expert_count) {
    check.Add("expert_parallel_size", absl::StrCat("is ", shape.expert_parallel_size,
                                                   " but expert_count is ", shape.expert_count));
  }
  if (shape.tensor_parallel_size > shape.ffn_size) {
    check.Add("tensor_parallel_size",
              absl::StrCat("is ", shape.tensor_parallel_size, " but ffn_size is ", shape.ffn_size));
  }
  if (!(shape.imbalance >= 1) || !std::isfinite(shape.imbalance)) {
    check.Add("imbalance", absl::StrCat("is ", shape.imbalance, " but must be finite and >= 1"));
  }
  check.Product("token_count", {shape.token_count, shape.experts_per_token, shape.hidden_size});
  check.Product("token_count", {shape.token_count, shape.experts_per_token, shape.ffn_size});
  check.Product("expert_count", {shape.expert_count, shape.hidden_size, shape.ffn_size});
  check.Product("token_count",
                {shape.token_count, shape.experts_per_token, shape.hidden_size, shape.ffn_size},
                kLargestFlopCount);
}

constexpr std::array<absl::string_view, 4> kFamilyNames = {"gemm", "attention", "memory_bound",
                                                           "expert_ffn"};

std::string SupportedPrecisions(const hardware::Accelerator& accelerator) {
  std::string names;
  for (int i = 0; i < hardware::kPrecisionCount; ++i) {
    const Precision precision = static_cast<Precision>(i);
    if (!accelerator.Supports(precision)) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", hardware::PrecisionName(precision));
  }
  return names;
}

bool InsideDomain(const Operator& op, const BlockDomain& domain) {
  if (!domain.fitted || domain.transferred) return false;
  const auto sizes = DimensionsOf(op);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (domain.maximum[i] <= 0) continue;  // dimension without a range
    if (sizes[i] < domain.minimum[i] || sizes[i] > domain.maximum[i]) return false;
  }
  return true;
}

}  // namespace

absl::string_view BindingName(Binding binding) {
  constexpr std::array<absl::string_view, 5> kNames = {"matrix_rate", "l2_bandwidth",
                                                       "hbm_bandwidth", "launch", "vector_rate"};
  return kNames[static_cast<size_t>(binding)];
}

absl::Status ValidateOperator(const Operator& op, const hardware::Accelerator& accelerator) {
  base::Violations violations;
  Checker check(violations, kFamilyNames[op.shape.index()]);
  std::visit([&](const auto& shape) { Validate(shape, check); }, op.shape);
  // Streaming operators use the vector units, which take every format.
  if (!std::holds_alternative<MemoryBoundShape>(op.shape) && !accelerator.Supports(op.precision)) {
    violations.Add("precision", absl::StrCat("is ", hardware::PrecisionName(op.precision), " but ",
                                             accelerator.name, " multiplies in ",
                                             SupportedPrecisions(accelerator), " only"));
  }
  return violations.ToStatus();
}

OperatorEstimate EstimateOperator(const Operator& op, const hardware::Accelerator& accelerator,
                                  const OperatorParameters<double>& parameters) {
  const Cost<double> cost = OperatorCost(op, accelerator, parameters);
  OperatorEstimate estimate;
  estimate.seconds = cost.seconds;
  estimate.binding = cost.binding;
  estimate.flop_count = cost.flop_count;
  estimate.hbm_bytes = cost.hbm_bytes;
  estimate.roofline_seconds = cost.roofline_seconds;
  const auto block = static_cast<size_t>(BlockOf(op));
  estimate.extrapolated = !InsideDomain(op, parameters.domain[block]);
  const parameters::Interval interval =
      parameters::IntervalAround(estimate.seconds, parameters.spread[block], estimate.extrapolated);
  estimate.interval_low_seconds = std::max(interval.low, estimate.roofline_seconds);
  estimate.interval_high_seconds = interval.high;
  return estimate;
}

absl::StatusOr<std::vector<OperatorEstimate>> EstimateOperators(
    absl::Span<const Operator> operators, const hardware::Accelerator& accelerator,
    const OperatorParameters<double>& parameters) {
  base::Violations violations;
  for (size_t i = 0; i < operators.size(); ++i) {
    const absl::Status status = ValidateOperator(operators[i], accelerator);
    if (status.ok()) continue;
    for (const base::Violation& v : base::ViolationsOf(status)) {
      violations.Add(absl::StrCat("operators[", i, "].", v.field), v.description);
    }
  }
  if (!violations.empty()) return violations.ToStatus();
  std::vector<OperatorEstimate> estimates;
  estimates.reserve(operators.size());
  for (const Operator& op : operators) {
    estimates.push_back(EstimateOperator(op, accelerator, parameters));
  }
  return estimates;
}

}  // namespace sextant::operator_cost
