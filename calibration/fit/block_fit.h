// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_FIT_BLOCK_FIT_H_
#define SEXTANT_CALIBRATION_FIT_BLOCK_FIT_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ceres/jet.h"
#include "common/parameters/parameter_descriptor.h"

namespace sextant::calibration {

// Seconds that a formula predicts for one row under a block's parameters (descriptor order), and,
// where `gradient` is not null, the derivative by each of them.
using PredictSeconds =
    std::function<void(const double* parameters, double* seconds, double* gradient)>;

// Makes PredictSeconds of a templated functor `bool operator()(const T* parameters, T* seconds)
// const` that works for double and for ceres::Jet<double, N>; N >= the number of parameters.
template <int N, typename Functor>
PredictSeconds DifferentiatedRow(Functor functor, size_t parameter_count) {
  return [functor = std::move(functor), parameter_count](const double* parameters, double* seconds,
                                                         double* gradient) {
    if (gradient == nullptr) {
      functor(parameters, seconds);
      return;
    }
    using Jet = ceres::Jet<double, N>;
    Jet jets[N];
    for (size_t i = 0; i < parameter_count; ++i) {
      jets[i] = Jet(parameters[i], static_cast<int>(i));
    }
    Jet result;
    functor(static_cast<const Jet*>(jets), &result);
    *seconds = result.a;
    for (size_t i = 0; i < parameter_count; ++i) gradient[i] = result.v[static_cast<int>(i)];
  };
}

struct FitRow {
  PredictSeconds predict;
  double measured_seconds = 0;
  double weight = 1;
  int group = -1;  // whose own values of `grouped_parameters` apply; -1: the shared ones
};

// Fit of one block of parameters. The residual of a row is log(predicted / measured) under a
// robust loss, so that the sum follows the mean absolute percentage error.
struct BlockFitProblem {
  std::vector<parameters::ParameterDescriptor> descriptors;
  std::vector<double> start;   // empty: the descriptors' initial values
  std::vector<bool> constant;  // empty: none is held at its start
  // Further points to search from, in full; the best solution wins. For formulas with a maximum,
  // one side of which has no gradient at the start. The prior stays at `start`.
  std::vector<std::vector<double>> other_starts;
  std::vector<FitRow> rows;
  // Indices of parameters that each group (a software profile) has for itself, drawn weakly
  // towards the shared value.
  std::vector<size_t> grouped_parameters;
  int group_count = 0;
};

struct BlockFitOptions {
  double robust_scale = 0.05;  // relative error from which a row counts linearly
  // Pull of start values, and of groups to the shared value: as that many rows (of the mean
  // weight) that say so with a scatter of 10 % when a parameter is moved by its own size.
  double prior_rows = 1;
  double group_rows = 1;
  int max_iterations = 100;
};

struct FittedParameter {
  double value = 0;
  std::optional<double> standard_error;  // absent where the data do not pin it down
  bool at_bound = false;
};

struct BlockFitResult {
  std::vector<FittedParameter> shared;               // descriptor order
  std::vector<std::vector<FittedParameter>> groups;  // [group][index in grouped_parameters]
  double start_mape_percent = 0;                     // weighted, at the start values
  double mape_percent = 0;                           // weighted, at the solution
  double scatter = 0;  // robust standard deviation of log(predicted / measured)
  bool converged = false;
};

// Deterministic; one thread. INVALID_ARGUMENT names rows or starts that cannot be used (all
// violations). Cost: about 20 passes over the rows.
absl::StatusOr<BlockFitResult> FitBlock(const BlockFitProblem& problem,
                                        const BlockFitOptions& options = {});

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_FIT_BLOCK_FIT_H_
