// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/block_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ceres/cost_function.h"
#include "ceres/loss_function.h"
#include "ceres/problem.h"
#include "ceres/solver.h"
#include "common/base/violations.h"

namespace sextant::calibration {
namespace {

using parameters::ParameterDescriptor;

// Noise that a prior is expressed against, see BlockFitOptions.
constexpr double kPriorScatter = 0.1;

// The solver works on parameter / scale, so that seconds of 1e-6 and sizes of 1e2 move alike.
double ScaleOf(const ParameterDescriptor& d) {
  return std::max(std::abs(d.initial), 0.05 * (d.upper - d.lower));
}

// Parameters of a row in their own units: shared, with the group's own put in.
class Layout {
 public:
  explicit Layout(const BlockFitProblem& problem) : grouped_(problem.grouped_parameters) {
    for (const ParameterDescriptor& d : problem.descriptors) scales_.push_back(ScaleOf(d));
  }
  size_t size() const { return scales_.size(); }
  const std::vector<size_t>& grouped() const { return grouped_; }
  double scale(size_t i) const { return scales_[i]; }

  void Unscale(const double* shared, const double* group, double* values) const {
    for (size_t i = 0; i < scales_.size(); ++i) values[i] = shared[i] * scales_[i];
    if (group == nullptr) return;
    for (size_t j = 0; j < grouped_.size(); ++j) {
      values[grouped_[j]] = group[j] * scales_[grouped_[j]];
    }
  }

 private:
  std::vector<size_t> grouped_;
  std::vector<double> scales_;
};

class RowResidual final : public ceres::CostFunction {
 public:
  RowResidual(const FitRow& row, const Layout& layout) : row_(row), layout_(layout) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(layout.size()));
    if (row.group >= 0) {
      mutable_parameter_block_sizes()->push_back(static_cast<int>(layout.grouped().size()));
    }
  }

  bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
    const double* group = row_.group >= 0 ? blocks[1] : nullptr;
    std::vector<double> values(layout_.size());
    std::vector<double> gradient(layout_.size());
    layout_.Unscale(blocks[0], group, values.data());
    double seconds = 0;
    row_.predict(values.data(), &seconds, jacobians == nullptr ? nullptr : gradient.data());
    if (!(seconds > 0) || !std::isfinite(seconds)) return false;
    residuals[0] = std::log(seconds / row_.measured_seconds);
    if (jacobians == nullptr) return true;
    for (size_t i = 0; i < layout_.size(); ++i) gradient[i] *= layout_.scale(i) / seconds;
    if (group != nullptr && jacobians[1] != nullptr) {
      for (size_t j = 0; j < layout_.grouped().size(); ++j) {
        jacobians[1][j] = gradient[layout_.grouped()[j]];
      }
    }
    if (group != nullptr) {
      for (const size_t i : layout_.grouped()) gradient[i] = 0;
    }
    if (jacobians[0] != nullptr) std::copy(gradient.begin(), gradient.end(), jacobians[0]);
    return true;
  }

 private:
  const FitRow& row_;
  const Layout& layout_;
};

// strength * (x - start), each parameter.
class StartPrior final : public ceres::CostFunction {
 public:
  StartPrior(std::vector<double> start, double strength)
      : start_(std::move(start)), strength_(strength) {
    set_num_residuals(static_cast<int>(start_.size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(start_.size()));
  }
  bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
    const size_t n = start_.size();
    for (size_t i = 0; i < n; ++i) residuals[i] = strength_ * (blocks[0][i] - start_[i]);
    if (jacobians != nullptr && jacobians[0] != nullptr) {
      std::fill_n(jacobians[0], n * n, 0.0);
      for (size_t i = 0; i < n; ++i) jacobians[0][i * n + i] = strength_;
    }
    return true;
  }

 private:
  std::vector<double> start_;
  double strength_;
};

// strength * (group value - shared value), each grouped parameter.
class GroupPrior final : public ceres::CostFunction {
 public:
  GroupPrior(const Layout& layout, double strength) : layout_(layout), strength_(strength) {
    set_num_residuals(static_cast<int>(layout.grouped().size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(layout.size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(layout.grouped().size()));
  }
  bool Evaluate(double const* const* blocks, double* residuals, double** jacobians) const override {
    const size_t m = layout_.grouped().size();
    for (size_t j = 0; j < m; ++j) {
      residuals[j] = strength_ * (blocks[1][j] - blocks[0][layout_.grouped()[j]]);
    }
    if (jacobians == nullptr) return true;
    if (jacobians[0] != nullptr) {
      std::fill_n(jacobians[0], m * layout_.size(), 0.0);
      for (size_t j = 0; j < m; ++j) {
        jacobians[0][j * layout_.size() + layout_.grouped()[j]] = -strength_;
      }
    }
    if (jacobians[1] != nullptr) {
      std::fill_n(jacobians[1], m * m, 0.0);
      for (size_t j = 0; j < m; ++j) jacobians[1][j * m + j] = strength_;
    }
    return true;
  }

 private:
  const Layout& layout_;
  double strength_;
};

absl::Status Check(const BlockFitProblem& problem) {
  base::Violations violations;
  const size_t n = problem.descriptors.size();
  if (n == 0) violations.Add("descriptors", "are empty; name at least one parameter");
  if (!problem.start.empty() && problem.start.size() != n) {
    violations.Add("start", absl::StrCat("has ", problem.start.size(), " values but must have ", n,
                                         " or none"));
  }
  for (size_t i = 0; i < problem.other_starts.size(); ++i) {
    if (problem.other_starts[i].size() != n) {
      violations.Add(
          absl::StrCat("other_starts[", i, "]"),
          absl::StrCat("has ", problem.other_starts[i].size(), " values but must have ", n));
    }
  }
  if (!problem.constant.empty() && problem.constant.size() != n) {
    violations.Add("constant", absl::StrCat("has ", problem.constant.size(),
                                            " values but must have ", n, " or none"));
  }
  for (const size_t i : problem.grouped_parameters) {
    if (i >= n) violations.Add("grouped_parameters", absl::StrCat("has ", i, " of ", n));
  }
  for (size_t i = 0; i < problem.rows.size(); ++i) {
    const FitRow& row = problem.rows[i];
    const auto bad = [](double x) { return !(x > 0) || !std::isfinite(x); };
    if (bad(row.measured_seconds)) {
      violations.Add(absl::StrCat("rows[", i, "].measured_seconds"),
                     absl::StrCat("is ", row.measured_seconds, " but must be positive"));
    }
    if (bad(row.weight)) {
      violations.Add(absl::StrCat("rows[", i, "].weight"),
                     absl::StrCat("is ", row.weight, " but must be positive"));
    }
    if (row.group >= problem.group_count) {
      violations.Add(absl::StrCat("rows[", i, "].group"),
                     absl::StrCat("is ", row.group, " of ", problem.group_count));
    }
  }
  return violations.ToStatus();
}

// Everything that one fit holds while the solver runs.
class Fit {
 public:
  Fit(const BlockFitProblem& problem, const BlockFitOptions& options)
      : problem_(problem), options_(options), layout_(problem) {
    const size_t n = layout_.size();
    for (size_t i = 0; i < n; ++i) {
      const ParameterDescriptor& d = problem.descriptors[i];
      const double start = problem.start.empty() ? d.initial : problem.start[i];
      start_.push_back(std::clamp(start, d.lower, d.upper) / layout_.scale(i));
    }
    MoveTo(start_);
    double sum = 0;
    for (const FitRow& row : problem.rows) sum += row.weight;
    mean_weight_ = problem.rows.empty() ? 1 : sum / static_cast<double>(problem.rows.size());
  }

  BlockFitResult Run() {
    BlockFitResult result;
    result.start_mape_percent = MapePercent();
    if (!problem_.rows.empty()) SolveFromEveryStart(result.converged);
    result.mape_percent = MapePercent();
    result.scatter = Scatter();
    Fill(result);
    return result;
  }

 private:
  bool Grouped(const FitRow& row) const { return row.group >= 0 && !groups_.empty(); }
  double Predict(const FitRow& row, double* gradient) const {
    std::vector<double> values(layout_.size());
    layout_.Unscale(shared_.data(),
                    Grouped(row) ? groups_[static_cast<size_t>(row.group)].data() : nullptr,
                    values.data());
    double seconds = 0;
    row.predict(values.data(), &seconds, gradient);
    return seconds;
  }
  double PriorStrength(double rows) const { return std::sqrt(rows) * kPriorScatter; }

  void MoveTo(const std::vector<double>& start) {
    shared_ = start;
    if (layout_.grouped().empty()) return;
    std::vector<double> own;
    for (const size_t i : layout_.grouped()) own.push_back(start[i]);
    groups_.assign(static_cast<size_t>(problem_.group_count), own);
  }

  void SolveFromEveryStart(bool& converged) {
    double best_cost = Solve(converged);
    for (const std::vector<double>& other : problem_.other_starts) {
      const std::vector<double> best_shared = shared_;
      const std::vector<std::vector<double>> best_groups = groups_;
      std::vector<double> scaled;
      for (size_t i = 0; i < layout_.size(); ++i) {
        const ParameterDescriptor& d = problem_.descriptors[i];
        const bool held = !problem_.constant.empty() && problem_.constant[i];
        scaled.push_back(held ? start_[i]
                              : std::clamp(other[i], d.lower, d.upper) / layout_.scale(i));
      }
      MoveTo(scaled);
      bool other_converged = false;
      const double cost = Solve(other_converged);
      if (cost < best_cost) {
        best_cost = cost;
        converged = other_converged;
      } else {
        shared_ = best_shared;
        groups_ = best_groups;
      }
    }
  }

  // Final cost of the search from where the parameters stand.
  double Solve(bool& converged) {
    ceres::Problem::Options own;
    own.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
    std::vector<std::unique_ptr<ceres::LossFunction>> losses;
    ceres::Problem solver_problem(own);
    solver_problem.AddParameterBlock(shared_.data(), static_cast<int>(shared_.size()));
    for (std::vector<double>& group : groups_) {
      solver_problem.AddParameterBlock(group.data(), static_cast<int>(group.size()));
    }
    rows_.clear();
    rows_.reserve(problem_.rows.size());
    for (const FitRow& row : problem_.rows) {
      rows_.push_back(row);
      if (groups_.empty()) rows_.back().group = -1;
      const FitRow& held = rows_.back();
      losses.push_back(
          std::make_unique<ceres::ScaledLoss>(new ceres::SoftLOneLoss(options_.robust_scale),
                                              held.weight / mean_weight_, ceres::TAKE_OWNERSHIP));
      auto* residual = new RowResidual(held, layout_);
      if (held.group >= 0) {
        solver_problem.AddResidualBlock(residual, losses.back().get(), shared_.data(),
                                        groups_[static_cast<size_t>(held.group)].data());
      } else {
        solver_problem.AddResidualBlock(residual, losses.back().get(), shared_.data());
      }
    }
    solver_problem.AddResidualBlock(new StartPrior(start_, PriorStrength(options_.prior_rows)),
                                    nullptr, shared_.data());
    for (std::vector<double>& group : groups_) {
      solver_problem.AddResidualBlock(new GroupPrior(layout_, PriorStrength(options_.group_rows)),
                                      nullptr, shared_.data(), group.data());
    }
    SetBounds(solver_problem);
    ceres::Solver::Options solver_options;
    solver_options.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
    solver_options.max_num_iterations = options_.max_iterations;
    solver_options.use_nonmonotonic_steps = true;  // steps over the kinks of tile choices
    solver_options.function_tolerance = 1e-6;
    solver_options.logging_type = ceres::SILENT;
    solver_options.num_threads = 1;  // same rows, same bits
    ceres::Solver::Summary summary;
    ceres::Solve(solver_options, &solver_problem, &summary);
    converged = summary.termination_type == ceres::CONVERGENCE;
    return summary.final_cost;
  }

  void SetBounds(ceres::Problem& solver_problem) {
    const auto bound = [&](double* block, size_t at, size_t i) {
      const ParameterDescriptor& d = problem_.descriptors[i];
      const bool held = !problem_.constant.empty() && problem_.constant[i];
      // A constant is a bound pair that is closed up to rounding.
      const double slack = 1e-9;
      const double lower = held ? start_[i] - slack : d.lower / layout_.scale(i);
      const double upper = held ? start_[i] + slack : d.upper / layout_.scale(i);
      solver_problem.SetParameterLowerBound(block, static_cast<int>(at), lower);
      solver_problem.SetParameterUpperBound(block, static_cast<int>(at), upper);
    };
    for (size_t i = 0; i < layout_.size(); ++i) bound(shared_.data(), i, i);
    for (std::vector<double>& group : groups_) {
      for (size_t j = 0; j < group.size(); ++j) bound(group.data(), j, layout_.grouped()[j]);
    }
  }

  double MapePercent() const {
    double sum = 0;
    double weights = 0;
    for (const FitRow& row : problem_.rows) {
      sum += row.weight * std::abs(Predict(row, nullptr) / row.measured_seconds - 1);
      weights += row.weight;
    }
    return weights > 0 ? 100 * sum / weights : 0;
  }

  // 1.4826 x median absolute deviation from zero.
  double Scatter() const {
    if (problem_.rows.empty()) return 0;
    std::vector<double> sizes;
    for (const FitRow& row : problem_.rows) {
      sizes.push_back(std::abs(std::log(Predict(row, nullptr) / row.measured_seconds)));
    }
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    return 1.4826 * *middle;
  }

  // Gauss-Newton covariance in scaled units: shared parameters first, then each group's.
  Eigen::MatrixXd Information(double scatter, Eigen::MatrixXd* prior) const {
    const size_t n = layout_.size();
    const size_t m = groups_.empty() ? 0 : layout_.grouped().size();
    const auto total = static_cast<Eigen::Index>(n + m * groups_.size());
    Eigen::MatrixXd data = Eigen::MatrixXd::Zero(total, total);
    std::vector<double> gradient(n);
    std::vector<Eigen::Index> at(n);
    for (const FitRow& row : problem_.rows) {
      const double seconds = Predict(row, gradient.data());
      for (size_t i = 0; i < n; ++i) at[i] = static_cast<Eigen::Index>(i);
      if (Grouped(row)) {
        for (size_t j = 0; j < m; ++j) {
          at[layout_.grouped()[j]] =
              static_cast<Eigen::Index>(n + static_cast<size_t>(row.group) * m + j);
        }
      }
      const double weight = row.weight / mean_weight_ / (scatter * scatter);
      for (size_t i = 0; i < n; ++i) gradient[i] *= layout_.scale(i) / seconds;
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) data(at[i], at[j]) += weight * gradient[i] * gradient[j];
      }
    }
    *prior = Eigen::MatrixXd::Zero(total, total);
    for (size_t i = 0; i < n; ++i) {
      const auto at_i = static_cast<Eigen::Index>(i);
      (*prior)(at_i, at_i) += options_.prior_rows;
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t j = 0; j < m; ++j) {
        const auto own = static_cast<Eigen::Index>(n + g * m + j);
        const auto all = static_cast<Eigen::Index>(layout_.grouped()[j]);
        (*prior)(own, own) += options_.group_rows;
        (*prior)(all, all) += options_.group_rows;
        (*prior)(own, all) -= options_.group_rows;
        (*prior)(all, own) -= options_.group_rows;
      }
    }
    return data;
  }

  void Fill(BlockFitResult& result) const {
    Eigen::MatrixXd prior;
    const Eigen::MatrixXd data = Information(std::max(result.scatter, 1e-4), &prior);
    const Eigen::MatrixXd covariance = (data + prior).inverse();
    const Eigen::MatrixXd prior_only = prior.inverse();
    const auto fitted = [&](size_t i, double scaled, Eigen::Index at) {
      const ParameterDescriptor& d = problem_.descriptors[i];
      FittedParameter p;
      p.value = std::clamp(scaled * layout_.scale(i), d.lower, d.upper);
      const double margin = 1e-6 * (d.upper - d.lower);
      p.at_bound = p.value < d.lower + margin || p.value > d.upper - margin;
      const bool held = !problem_.constant.empty() && problem_.constant[i];
      // Where the data narrow the prior by less than a tenth they do not identify it.
      if (!held && covariance(at, at) < 0.8 * prior_only(at, at)) {
        p.standard_error = std::sqrt(std::max(0.0, covariance(at, at))) * layout_.scale(i);
      }
      return p;
    };
    for (size_t i = 0; i < layout_.size(); ++i) {
      result.shared.push_back(fitted(i, shared_[i], static_cast<Eigen::Index>(i)));
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<FittedParameter> own;
      const size_t m = layout_.grouped().size();
      for (size_t j = 0; j < m; ++j) {
        own.push_back(fitted(layout_.grouped()[j], groups_[g][j],
                             static_cast<Eigen::Index>(layout_.size() + g * m + j)));
      }
      result.groups.push_back(std::move(own));
    }
  }

  const BlockFitProblem& problem_;
  const BlockFitOptions& options_;
  Layout layout_;
  std::vector<double> start_;   // scaled
  std::vector<double> shared_;  // scaled
  std::vector<std::vector<double>> groups_;
  std::vector<FitRow> rows_;
  double mean_weight_ = 1;
};

}  // namespace

absl::StatusOr<BlockFitResult> FitBlock(const BlockFitProblem& problem,
                                        const BlockFitOptions& options) {
  if (const absl::Status status = Check(problem); !status.ok()) return status;
  return Fit(problem, options).Run();
}

}  // namespace sextant::calibration
