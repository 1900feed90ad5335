// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_OPERATOR_COST_OPERATOR_COST_H_
#define SEXTANT_COMMON_OPERATOR_COST_OPERATOR_COST_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/hardware/accelerator.h"
#include "common/operator_cost/operator.h"
#include "common/operator_cost/operator_parameters.h"
#include "common/parameters/parameter_set.h"

namespace sextant::operator_cost {

// Every rule that `op` breaks on `accelerator`: sizes below 1 or so large that a product leaves
// double's exact range, a precision that the accelerator lacks. Field paths: "gemm.m", "precision".
absl::Status ValidateOperator(const Operator& op, const hardware::Accelerator& accelerator);

// How long a valid `op` takes on `accelerator`, and what bounds it. Never below the roofline;
// finite and positive. O(tile candidates). Thread-safe.
OperatorEstimate EstimateOperator(const Operator& op, const hardware::Accelerator& accelerator,
                                  const OperatorParameters<double>& parameters);

// The same for a batch, in order. Violations of every operator are reported at once under
// "operators[i].".
absl::StatusOr<std::vector<OperatorEstimate>> EstimateOperators(
    absl::Span<const Operator> operators, const hardware::Accelerator& accelerator,
    const OperatorParameters<double>& parameters);

}  // namespace sextant::operator_cost

#endif  // SEXTANT_COMMON_OPERATOR_COST_OPERATOR_COST_H_
