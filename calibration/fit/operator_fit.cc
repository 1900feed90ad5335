// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/operator_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "calibration/fit/block_fit.h"
#include "common/operator_cost/operator_cost.h"
#include "common/operator_cost/operator_formula.h"
#include "common/operator_cost/operator_parameters.h"

namespace sextant::calibration {
namespace {

using operator_cost::Block;
using parameters::ParameterDescriptor;

// Room for the largest block; one size, so that each formula is compiled once for derivatives.
constexpr int kJetSize = 12;
constexpr int kLeastRowsOfProfile = 15;
// A measurement this far below the roofline is wrong or of another card.
constexpr double kRooflineTolerance = 0.95;

// Searched from as well, see BlockFitProblem::other_starts: decode kernels that do not split the
// cache, and kernels that serve the heads of a wide group one by one.
struct OtherStart {
  Block block;
  std::vector<std::pair<absl::string_view, double>> values;
};
const std::vector<OtherStart>& OtherStarts() {
  static const auto& starts = *new std::vector<OtherStart>{
      {Block::kUngroupedDecode, {{"blocks_per_sm", 0.02}}},
      {Block::kWideDecode, {{"wide_group_unshared", 0.95}, {"block_seconds", 1e-6}}},
      {Block::kWideDecode, {{"wide_group_unshared", 0.05}}},
      {Block::kLatentDecode, {{"blocks_per_sm", 0.02}, {"key_seconds", 50e-9}}},
  };
  return starts;
}

struct RowFormula {
  const OperatorFitRow* row;
  Block block;
  const operator_cost::OperatorParameters<double>* others;

  template <typename T>
  bool operator()(const T* values, T* seconds) const {
    *seconds = operator_cost::BlockCost(block, row->op, row->accelerator, values, *others).seconds;
    return true;
  }
};

// Least seconds that the row's hardware allows.
double RooflineSeconds(const OperatorFitRow& row, Block block,
                       const operator_cost::OperatorParameters<double>& p) {
  std::vector<double> initial;
  for (const ParameterDescriptor& d : operator_cost::BlockDescriptors(block)) {
    initial.push_back(d.initial);
  }
  return operator_cost::BlockCost(block, row.op, row.accelerator, initial.data(), p)
      .roofline_seconds;
}

// Rows of one block, and the names of profiles that get values of their own.
struct BlockRows {
  std::vector<const OperatorFitRow*> rows;
  int refused_count = 0;
};

std::vector<std::string> OwnProfiles(const std::vector<const OperatorFitRow*>& rows) {
  std::map<std::string, int> counts;
  for (const OperatorFitRow* row : rows) ++counts[row->profile];
  std::vector<std::string> names;
  if (counts.size() < 2) return names;
  for (const auto& [profile, count] : counts) {
    if (!profile.empty() && count >= kLeastRowsOfProfile) names.push_back(profile);
  }
  return names;
}

BlockFitProblem MakeProblem(Block block, const std::vector<const OperatorFitRow*>& rows,
                            const std::vector<std::string>& profiles,
                            const operator_cost::OperatorParameters<double>& others,
                            std::vector<double> start) {
  BlockFitProblem problem;
  const auto descriptors = operator_cost::BlockDescriptors(block);
  problem.descriptors.assign(descriptors.begin(), descriptors.end());
  problem.start = std::move(start);
  for (const OtherStart& point : OtherStarts()) {
    if (point.block != block) continue;
    std::vector<double>& other = problem.other_starts.emplace_back(problem.start);
    for (const auto& [name, value] : point.values) {
      for (size_t i = 0; i < descriptors.size(); ++i) {
        if (descriptors[i].name == name) other[i] = value;
      }
    }
  }
  if (!profiles.empty()) {
    for (const absl::string_view name : operator_cost::BlockProfileParameters(block)) {
      for (size_t i = 0; i < descriptors.size(); ++i) {
        if (descriptors[i].name == name) problem.grouped_parameters.push_back(i);
      }
    }
    problem.group_count = static_cast<int>(profiles.size());
  }
  // A table with many rows counts as the square root of their number, so that it does not drown
  // a small one.
  std::map<std::pair<std::string, std::string>, double> totals;
  for (const OperatorFitRow* row : rows) totals[{row->suite, row->profile}] += row->weight;
  for (const OperatorFitRow* row : rows) {
    FitRow fit_row;
    fit_row.predict =
        DifferentiatedRow<kJetSize>(RowFormula{row, block, &others}, descriptors.size());
    fit_row.measured_seconds = row->measured_seconds;
    fit_row.weight = row->weight / std::sqrt(totals[{row->suite, row->profile}]);
    const auto found = std::lower_bound(profiles.begin(), profiles.end(), row->profile);
    if (found != profiles.end() && *found == row->profile) {
      fit_row.group = static_cast<int>(found - profiles.begin());
    }
    problem.rows.push_back(std::move(fit_row));
  }
  return problem;
}

void AddDomain(Block block, const std::vector<const OperatorFitRow*>& rows,
               std::vector<parameters::DomainRange>& domain) {
  const auto names = operator_cost::DimensionNames(block);
  for (size_t d = 0; d < names.size(); ++d) {
    if (names[d].empty()) continue;
    parameters::DomainRange range{std::string(operator_cost::BlockName(block)),
                                  std::string(names[d]), HUGE_VAL, 0};
    for (const OperatorFitRow* row : rows) {
      const double size = operator_cost::DimensionsOf(row->op)[d];
      range.minimum = std::min(range.minimum, size);
      range.maximum = std::max(range.maximum, size);
    }
    domain.push_back(std::move(range));
  }
}

}  // namespace

absl::StatusOr<OperatorFitResult> FitOperators(absl::Span<const OperatorFitRow> rows,
                                               const hardware::Accelerator& accelerator,
                                               const parameters::ParameterSet& initial) {
  const operator_cost::OperatorParameters<double> others =
      operator_cost::ResolveOperatorParameters(initial, accelerator, "");
  const parameters::ParameterSource source =
      parameters::ResolveSource(initial, accelerator.name, accelerator.parameter_donor);

  std::map<Block, BlockRows> by_block;
  for (const OperatorFitRow& row : rows) {
    const Block block = operator_cost::BlockOf(row.op);
    BlockRows& block_rows = by_block[block];
    const bool usable =
        std::isfinite(row.measured_seconds) && row.measured_seconds > 0 &&
        std::isfinite(row.weight) && row.weight > 0 &&
        operator_cost::ValidateOperator(row.op, row.accelerator).ok() &&
        row.measured_seconds >= kRooflineTolerance * RooflineSeconds(row, block, others);
    if (usable) {
      block_rows.rows.push_back(&row);
    } else {
      ++block_rows.refused_count;
    }
  }

  OperatorFitResult result;
  for (const auto& [block, block_rows] : by_block) {
    OperatorBlockFit summary;
    summary.block = std::string(operator_cost::BlockName(block));
    summary.row_count = static_cast<int>(block_rows.rows.size());
    summary.refused_count = block_rows.refused_count;
    if (block_rows.rows.empty()) {
      result.blocks.push_back(std::move(summary));
      continue;
    }
    const auto descriptors = operator_cost::BlockDescriptors(block);
    const std::vector<std::string> profiles = OwnProfiles(block_rows.rows);
    const BlockFitProblem problem =
        MakeProblem(block, block_rows.rows, profiles, others,
                    parameters::BlockValues(initial, source, "", summary.block, descriptors.data(),
                                            static_cast<int>(descriptors.size())));
    // Unknown software gets the shared values: they should be the profiles' middle, not what the
    // few rows without a profile say.
    BlockFitOptions options;
    options.group_rows = 20;
    absl::StatusOr<BlockFitResult> fit = FitBlock(problem, options);
    if (!fit.ok()) return fit.status();
    summary.start_mape_percent = fit->start_mape_percent;
    summary.mape_percent = fit->mape_percent;
    summary.scatter = fit->scatter;
    for (size_t i = 0; i < descriptors.size(); ++i) {
      const FittedParameter& p = fit->shared[i];
      const std::string key = absl::StrCat(summary.block, ".", descriptors[i].name);
      result.parameters.shared[key] = {p.value, p.standard_error};
      if (!p.standard_error.has_value()) {
        summary.unidentified.push_back(std::string(descriptors[i].name));
      }
    }
    for (size_t g = 0; g < fit->groups.size(); ++g) {
      for (size_t j = 0; j < problem.grouped_parameters.size(); ++j) {
        const FittedParameter& p = fit->groups[g][j];
        const std::string key =
            absl::StrCat(summary.block, ".", descriptors[problem.grouped_parameters[j]].name);
        result.parameters.profiles[profiles[g]][key] = {p.value, p.standard_error};
      }
    }
    AddDomain(block, block_rows.rows, result.parameters.domain);
    result.blocks.push_back(std::move(summary));
  }
  if (result.parameters.shared.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no operator row of ", accelerator.name, " can be fitted"));
  }
  return result;
}

}  // namespace sextant::calibration
