// SPDX-License-Identifier: Apache-2.0
#include "calibration/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "calibration/calibrate/intervals.h"
#include "calibration/calibrate/stages.h"
#include "calibration/evaluate/validate.h"
#include "common/base/status_macros.h"
#include "common/operator_cost/operator_cost.h"

namespace sextant::calibration {
namespace {

using operator_cost::AttentionShape;
using operator_cost::ExpertFfnShape;
using operator_cost::GemmShape;
using operator_cost::MemoryBoundShape;

// What is held out together: kernels of the same matrices, heads or experts, whatever the number
// of tokens, so that a held-out shape is one the fit never saw.
struct ShapeGroup {
  std::string operator()(const GemmShape& s) const { return absl::StrCat("gemm ", s.n, " ", s.k); }
  std::string operator()(const AttentionShape& s) const {
    return absl::StrCat("attention ", s.head_count, " ", s.kv_head_count, " ", s.head_size);
  }
  std::string operator()(const MemoryBoundShape& s) const {
    return absl::StrCat("stream ", s.columns);
  }
  std::string operator()(const ExpertFfnShape& s) const {
    return absl::StrCat("experts ", s.hidden_size, " ", s.ffn_size, " ", s.expert_count);
  }
};

std::string GroupOf(const OperatorRow& row) {
  return absl::StrCat(row.facts.family, " ", std::visit(ShapeGroup(), row.op.shape));
}
std::string GroupOf(const CollectiveRow& row) {
  return absl::StrCat(row.facts.suite, " ", row.facts.profile, " ", row.facts.family, " ",
                      row.collective.group_size);
}
std::string GroupOf(const TrainingRow& row) { return row.job.model.name; }
std::string GroupOf(const InferenceRow& row) {
  return absl::StrCat(row.job.model.name, " ", row.job.plan.tensor_parallel_size);
}

// FNV-1a: the same on every machine, unlike std::hash.
uint64_t Hash(absl::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}

template <typename Row>
int FoldOf(const Row& row, int fold_count) {
  return static_cast<int>(Hash(GroupOf(row)) % static_cast<uint64_t>(fold_count));
}

// Rows that may be fitted, and those refused.
struct Screened {
  Measurements rows;
  std::vector<RefusedRow> refused;
  int64_t offered = 0;
};

bool Offered(const RowFacts& facts) { return facts.may_fit && facts.quality.empty(); }

// True where the row goes on to the checks of its kind.
bool Usable(const RowFacts& facts, Screened* screened) {
  if (!Offered(facts)) return false;
  ++screened->offered;
  std::string reason = facts.refusal.empty() ? facts.skip_reason : facts.refusal;
  if (reason.empty() && !facts.counted) {
    reason = "the fabric between nodes is not stated: its time cannot be fitted";
  }
  if (reason.empty()) return true;
  screened->refused.push_back({facts.id, std::move(reason)});
  return false;
}

Screened Screen(const Measurements& measurements) {
  Screened screened;
  const operator_cost::OperatorParameters<double> initial =
      operator_cost::ResolveOperatorParameters(parameters::ParameterSet(), {}, "");
  std::set<std::string> ids;
  const auto first = [&](const RowFacts& facts) {
    if (facts.id.empty() || ids.insert(facts.id).second) return true;
    screened.refused.push_back({facts.id, "is a duplicate: the id occurred before"});
    return false;
  };
  for (const OperatorRow& row : measurements.operators) {
    if (!Usable(row.facts, &screened) || !first(row.facts)) continue;
    const double roofline =
        operator_cost::EstimateOperator(row.op, *row.accelerator, initial).roofline_seconds;
    if (row.measured_seconds < roofline) {
      screened.refused.push_back(
          {row.facts.id, absl::StrCat("beats physics: measured ", row.measured_seconds,
                                      " s, but the roofline is ", roofline, " s")});
      continue;
    }
    screened.rows.operators.push_back(row);
  }
  for (const CollectiveRow& row : measurements.collectives) {
    if (Usable(row.facts, &screened) && first(row.facts)) screened.rows.collectives.push_back(row);
  }
  for (const TrainingRow& row : measurements.training) {
    if (!Usable(row.facts, &screened) || !first(row.facts)) continue;
    if (!row.measured_seconds && !(row.measured_memory_bytes && row.memory_is_allocated)) {
      screened.refused.push_back({row.facts.id, "no step time and no allocated memory to fit"});
      continue;
    }
    screened.rows.training.push_back(row);
  }
  for (const InferenceRow& row : measurements.inference) {
    if (Usable(row.facts, &screened) && first(row.facts)) screened.rows.inference.push_back(row);
  }
  return screened;
}

template <typename Row>
void Deal(const std::vector<Row>& rows, int fold, int fold_count, std::vector<Row>* train,
          std::vector<Row>* held_out) {
  for (const Row& row : rows) {
    (FoldOf(row, fold_count) == fold ? held_out : train)->push_back(row);
  }
}

// Errors by (stage, accelerator, family).
using GroupKey = std::tuple<std::string, std::string, std::string>;
struct Sum {
  double absolute_percent = 0;
  int64_t count = 0;

  double Mean() const { return absolute_percent / static_cast<double>(count); }
};
using GroupSums = std::map<GroupKey, Sum>;

std::shared_ptr<const parameters::ParameterSet> Share(parameters::ParameterSet set) {
  return std::make_shared<const parameters::ParameterSet>(std::move(set));
}

// Adds the errors of `rows` under `set`, and appends their residuals; either may be null.
absl::Status AddErrors(const Measurements& rows,
                       const std::shared_ptr<const parameters::ParameterSet>& set, GroupSums* sums,
                       std::vector<Residual>* residuals) {
  SEXTANT_ASSIGN_OR_RETURN(const ValidationReport report, Validate(rows, set));
  if (residuals != nullptr) {
    for (Residual& residual : ResidualsOf(rows, report)) residuals->push_back(std::move(residual));
  }
  if (sums == nullptr) return absl::OkStatus();
  for (const ValidationRow& row : report.rows) {
    if (!row.error_percent) continue;
    // One measurement counts once: throughput and end-to-end time of a static batch are the same.
    if (row.metric == "throughput" || (row.kind == "inference" && row.metric == "e2e")) continue;
    const bool kernel = row.kind == "operator" || row.kind == "collective";
    Sum& sum = (*sums)[GroupKey(kernel ? absl::StrCat(row.kind, "s") : "framework", row.accelerator,
                                kernel ? row.family : absl::StrCat(row.kind, " ", row.metric))];
    sum.absolute_percent += std::fabs(*row.error_percent);
    ++sum.count;
  }
  return absl::OkStatus();
}

parameters::Provenance MakeProvenance(const Measurements& rows,
                                      const parameters::ParameterSet& initial,
                                      const CalibrationOptions& options) {
  std::map<std::string, int64_t> counts;
  for (const auto& row : rows.operators) ++counts[absl::StrCat(row.facts.suite, " operators")];
  for (const auto& row : rows.collectives) {
    ++counts[absl::StrCat(row.facts.suite, " collectives")];
  }
  for (const auto& row : rows.training) ++counts[absl::StrCat(row.facts.suite, " training")];
  for (const auto& row : rows.inference) ++counts[absl::StrCat(row.facts.suite, " inference")];
  parameters::Provenance provenance;
  provenance.name = options.name;
  provenance.parents = {initial.version()};
  for (const auto& [name, count] : counts) {
    provenance.measurements.push_back(absl::StrCat(name, ": ", count, " rows"));
  }
  return provenance;
}

}  // namespace

absl::StatusOr<CalibrationResult> Calibrate(const Measurements& measurements,
                                            const parameters::ParameterSet& initial,
                                            const CalibrationOptions& options) {
  const Screened screened = Screen(measurements);
  if (screened.rows.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no row can be fitted: ", screened.offered, " rows have role fit and good quality, ",
        screened.refused.size(), " of these were refused; give rows with role \"fit\""));
  }
  CalibrationResult result;
  CalibrationReport& report = result.report;
  SEXTANT_ASSIGN_OR_RETURN(auto fitted, FitStages(screened.rows, initial,
                                                  MakeProvenance(screened.rows, initial, options),
                                                  options, &report.notes));
  fitted = Share(WithMeasuredBlocks(*fitted, screened.rows));
  report.name = options.name;
  report.initial_version = initial.version();
  report.offered_row_count = screened.offered;
  report.used_row_count = static_cast<int64_t>(screened.rows.size());
  report.refused = screened.refused;

  GroupSums before;
  GroupSums train;
  GroupSums held_out;
  const auto initial_set = std::make_shared<const parameters::ParameterSet>(initial);
  SEXTANT_RETURN_IF_ERROR(AddErrors(screened.rows, initial_set, &before, nullptr));
  std::vector<Residual> fitted_residuals;
  std::vector<Residual> held_out_residuals;
  std::vector<Residual> unknown_residuals;
  SEXTANT_RETURN_IF_ERROR(AddErrors(screened.rows, fitted, &train, &fitted_residuals));
  const Measurements unknown = WithoutProfiles(screened.rows);
  SEXTANT_RETURN_IF_ERROR(AddErrors(unknown, fitted, nullptr, &unknown_residuals));
  for (int fold = 0; options.fold_count > 1 && fold < options.fold_count; ++fold) {
    Measurements rest;
    Measurements held;
    Deal(screened.rows.operators, fold, options.fold_count, &rest.operators, &held.operators);
    Deal(screened.rows.collectives, fold, options.fold_count, &rest.collectives, &held.collectives);
    Deal(screened.rows.training, fold, options.fold_count, &rest.training, &held.training);
    Deal(screened.rows.inference, fold, options.fold_count, &rest.inference, &held.inference);
    if (rest.size() == 0 || held.size() == 0) continue;
    SEXTANT_ASSIGN_OR_RETURN(const auto set,
                             FitStages(rest, initial, {.name = "held-out"}, options, nullptr));
    SEXTANT_RETURN_IF_ERROR(
        AddErrors(held, Share(WithMeasuredBlocks(*set, rest)), &held_out, &held_out_residuals));
  }
  result.set =
      Share(WithSpreads(*fitted, Unseen(fitted_residuals, held_out_residuals), unknown_residuals));
  report.version = result.set->version();
  Sum all_before;
  Sum all_held_out;
  for (const auto& [key, sum] : before) {
    CalibrationGroup group;
    std::tie(group.stage, group.accelerator, group.family) = key;
    group.row_count = sum.count;
    group.initial_mape_percent = sum.Mean();
    if (const auto it = train.find(key); it != train.end()) {
      group.train_mape_percent = it->second.Mean();
    }
    if (const auto it = held_out.find(key); it != held_out.end()) {
      group.held_out_mape_percent = it->second.Mean();
      all_before.absolute_percent += sum.absolute_percent;
      all_before.count += sum.count;
      all_held_out.absolute_percent += it->second.absolute_percent;
      all_held_out.count += it->second.count;
    }
    report.groups.push_back(std::move(group));
  }
  if (all_held_out.count > 0) {
    report.initial_mape_percent = all_before.Mean();
    report.held_out_mape_percent = all_held_out.Mean();
    report.improved = *report.held_out_mape_percent <= *report.initial_mape_percent;
  }
  return result;
}

}  // namespace sextant::calibration
