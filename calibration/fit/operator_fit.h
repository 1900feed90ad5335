// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_FIT_OPERATOR_FIT_H_
#define SEXTANT_CALIBRATION_FIT_OPERATOR_FIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/hardware/accelerator.h"
#include "common/operator_cost/operator.h"
#include "common/parameters/parameter_set.h"

namespace sextant::calibration {

// One measured kernel. Its accelerator may be a sibling of the one that is fitted (a PCIe card of
// the same chip): efficiencies are shares of each row's own rates.
struct OperatorFitRow {
  operator_cost::Operator op;
  hardware::Accelerator accelerator;
  std::string profile;  // software; empty: shared values only
  std::string suite;    // rows of a block are balanced over (suite, profile)
  double measured_seconds = 0;
  double weight = 1;
};

// What the fit of one block reached.
struct OperatorBlockFit {
  std::string block;
  int row_count = 0;
  int refused_count = 0;  // rows that beat the roofline or are invalid; not fitted
  double start_mape_percent = 0;
  double mape_percent = 0;
  double scatter = 0;                     // robust standard deviation of log(predicted / measured)
  std::vector<std::string> unidentified;  // parameters that the data do not pin down
};

struct OperatorFitResult {
  parameters::AcceleratorParameters parameters;
  std::vector<OperatorBlockFit> blocks;
};

// Fits every operator block of `accelerator` that has rows; shared values and, for profiles with
// at least 15 rows in a block that has two or more, overrides of the block's profile parameters.
// Starts from the values of `initial`. Blocks without rows get no values. Deterministic. Cost:
// milliseconds per thousand rows and pass. INVALID_ARGUMENT where no row is usable.
absl::StatusOr<OperatorFitResult> FitOperators(absl::Span<const OperatorFitRow> rows,
                                               const hardware::Accelerator& accelerator,
                                               const parameters::ParameterSet& initial);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_FIT_OPERATOR_FIT_H_
