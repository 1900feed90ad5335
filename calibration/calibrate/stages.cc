// SPDX-License-Identifier: Apache-2.0
#include "calibration/calibrate/stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibration/fit/operator_fit.h"
#include "calibration/fit_collectives/fit_collectives.h"
#include "calibration/fit_framework/fit_framework.h"
#include "common/base/status_macros.h"

namespace sextant::calibration {
namespace {

std::string TargetOf(const hardware::Accelerator& accelerator) {
  return accelerator.parameter_donor.empty() ? accelerator.name : accelerator.parameter_donor;
}

void Note(std::vector<std::string>* notes, std::string text) {
  if (notes != nullptr) notes->push_back(std::move(text));
}

// `fitted` over the values of the same keys and blocks.
void Merge(const parameters::AcceleratorParameters& fitted,
           parameters::AcceleratorParameters* target) {
  for (const auto& [key, value] : fitted.shared) target->shared[key] = value;
  for (const auto& [profile, values] : fitted.profiles) {
    for (const auto& [key, value] : values) target->profiles[profile][key] = value;
  }
  std::set<std::string> blocks;
  for (const parameters::DomainRange& range : fitted.domain) blocks.insert(range.block);
  target->domain.erase(std::remove_if(target->domain.begin(), target->domain.end(),
                                      [&](const parameters::DomainRange& range) {
                                        return blocks.count(range.block) > 0;
                                      }),
                       target->domain.end());
  target->domain.insert(target->domain.end(), fitted.domain.begin(), fitted.domain.end());
}

absl::StatusOr<parameters::ParameterSet> FitOperatorStage(const std::vector<OperatorRow>& rows,
                                                          const parameters::ParameterSet& set,
                                                          const parameters::Provenance& provenance,
                                                          std::vector<std::string>* notes) {
  struct Target {
    hardware::Accelerator accelerator;
    std::vector<OperatorFitRow> rows;
  };
  std::map<std::string, Target> targets;
  for (const OperatorRow& row : rows) {
    const std::string name = TargetOf(*row.accelerator);
    Target& target = targets[name];
    // The chip itself where it was measured, else a sibling under its name.
    if (target.accelerator.name.empty() || row.accelerator->name == name) {
      if (target.accelerator.name.empty() || !target.accelerator.parameter_donor.empty()) {
        target.accelerator = *row.accelerator;
      }
    }
    target.rows.push_back(
        {row.op, *row.accelerator, row.facts.profile, row.facts.suite, row.measured_seconds, 1});
  }
  auto accelerators = set.accelerators();
  for (auto& [name, target] : targets) {
    target.accelerator.name = name;
    target.accelerator.parameter_donor.clear();
    auto fit = FitOperators(target.rows, target.accelerator, set);
    if (!fit.ok()) {
      Note(notes, absl::StrCat(name, " operators: ", fit.status().message()));
      continue;
    }
    Merge(fit->parameters, &accelerators[name]);
    for (const OperatorBlockFit& block : fit->blocks) {
      Note(notes, absl::StrCat(name, " ", block.block, ": ", block.row_count, " rows, error ",
                               block.start_mape_percent, " % -> ", block.mape_percent, " %",
                               block.unidentified.empty() ? "" : ", not pinned down: ",
                               absl::StrJoin(block.unidentified, ", ")));
    }
  }
  return parameters::ParameterSet(provenance, std::move(accelerators));
}

absl::StatusOr<parameters::ParameterSet> FitCollectiveStage(
    const std::vector<CollectiveRow>& rows, const parameters::ParameterSet& set,
    const parameters::Provenance& provenance, std::vector<std::string>* notes) {
  std::vector<CollectiveFitRow> fit_rows;
  fit_rows.reserve(rows.size());
  for (const CollectiveRow& row : rows) {
    CollectiveFitRow fit_row{row.facts.id,
                             row.facts.suite,
                             row.collective,
                             *row.cluster,
                             row.facts.profile,
                             row.measured_seconds,
                             1};
    fit_row.cluster.accelerator.name = TargetOf(row.cluster->accelerator);
    fit_row.cluster.accelerator.parameter_donor.clear();
    fit_rows.push_back(std::move(fit_row));
  }
  auto fit = FitCollectives(fit_rows, set);
  if (!fit.ok()) {
    Note(notes, absl::StrCat("collectives: ", fit.status().message()));
    return set;
  }
  for (const std::string& note : fit->notes) Note(notes, note);
  return WithCollectives(set, *fit, provenance);
}

absl::StatusOr<parameters::ParameterSet> FitFrameworkStage(const Measurements& rows,
                                                           parameters::ParameterSet set,
                                                           const parameters::Provenance& provenance,
                                                           std::vector<std::string>* notes) {
  const std::vector<FrameworkTrainingRow> training = FrameworkTrainingRows(rows);
  const std::vector<FrameworkInferenceRow> inference = FrameworkInferenceRows(rows);
  // Overheads are host times and verdicts of whole machines: not a sibling's.
  std::set<std::string> names;
  const auto add = [&names](const hardware::Accelerator& accelerator) {
    if (accelerator.parameter_donor.empty()) names.insert(accelerator.name);
  };
  for (const FrameworkTrainingRow& row : training) add(row.job.cluster.accelerator);
  for (const FrameworkInferenceRow& row : inference) add(row.job.cluster.accelerator);
  for (const std::string& name : names) {
    auto fit = FitFramework(training, inference, name, set);
    if (!fit.ok()) {
      Note(notes, absl::StrCat(name, " framework: ", fit.status().message()));
      continue;
    }
    for (const FrameworkFit& block : fit->fits) {
      Note(notes, absl::StrCat(name, " ", block.profile, " ", block.block, ": ", block.row_count,
                               " rows, error ", block.start_mape_percent, " % -> ",
                               block.mape_percent, " %"));
    }
    for (const std::string& note : fit->notes) Note(notes, absl::StrCat(name, " ", note));
    set = WithFramework(set, name, fit->parameters, provenance);
  }
  return set;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> FitStages(
    const Measurements& rows, const parameters::ParameterSet& initial,
    parameters::Provenance provenance, const CalibrationOptions& options,
    std::vector<std::string>* notes) {
  parameters::ParameterSet set(provenance, initial.accelerators());
  if (options.fit_operators && !rows.operators.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(set, FitOperatorStage(rows.operators, set, provenance, notes));
  }
  if (options.fit_collectives && !rows.collectives.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(set, FitCollectiveStage(rows.collectives, set, provenance, notes));
  }
  if (options.fit_framework && (!rows.training.empty() || !rows.inference.empty())) {
    SEXTANT_ASSIGN_OR_RETURN(set, FitFrameworkStage(rows, std::move(set), provenance, notes));
  }
  return std::make_shared<const parameters::ParameterSet>(std::move(set));
}

}  // namespace sextant::calibration
