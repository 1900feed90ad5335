// SPDX-License-Identifier: Apache-2.0
#include "calibration/calibrate/intervals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/collectives/collective.h"
#include "common/collectives/collective_parameters.h"
#include "common/operator_cost/operator_parameters.h"
#include "common/orchestrator/framework_parameters.h"
#include "common/parameters/spread.h"

namespace sextant::calibration {
namespace {

using parameters::Spread;

// A group's own quantiles weigh as its rows, its parent's as this many.
constexpr double kParentRows = 8;
// The spread of unmeasured software rests on how many were measured, not on their rows.
constexpr double kPriorProfiles = 2;

std::string OwnerOf(const hardware::Accelerator& accelerator) {
  return accelerator.parameter_donor.empty() ? accelerator.name : accelerator.parameter_donor;
}

const orchestrator::AnswerDescriptor& Of(orchestrator::Answer answer) {
  return orchestrator::kAnswers[static_cast<size_t>(answer)];
}

absl::string_view InferenceBlock(const InferenceRow& row, absl::string_view metric) {
  using orchestrator::Answer;
  const bool serving = row.job.serving.has_value();
  if (metric == "ttft") {
    return Of(serving ? Answer::kServingFirstToken : Answer::kBatchFirstToken).block;
  }
  if (metric == "itl") {
    return Of(serving ? Answer::kServingNextToken : Answer::kBatchNextToken).block;
  }
  return Of(orchestrator::TotalAnswer(row.job)).block;
}

// Calls visit(accelerator, facts, block) for every number that a row of `rows` is validated on, in
// the order of a ValidationReport; `metric_of(i)` names the metric of the i-th.
template <typename MetricOf, typename Visit>
void ForEachNumber(const Measurements& rows, const MetricOf& metric_of, const Visit& visit) {
  size_t index = 0;
  for (const OperatorRow& row : rows.operators) {
    visit(index++, *row.accelerator, row.facts,
          operator_cost::BlockName(operator_cost::BlockOf(row.op)));
  }
  for (const CollectiveRow& row : rows.collectives) {
    visit(index++, row.cluster->accelerator, row.facts,
          collectives::SpreadBlock(row.collective, *row.cluster));
  }
  for (const TrainingRow& row : rows.training) {
    visit(index++, row.job.cluster.accelerator, row.facts,
          Of(orchestrator::TotalAnswer(row.job)).block);
  }
  for (const InferenceRow& row : rows.inference) {
    for (size_t i = 0; i < std::max<size_t>(1, row.measured.size()); ++i, ++index) {
      visit(index, row.job.cluster.accelerator, row.facts, InferenceBlock(row, metric_of(index)));
    }
  }
}

// The shortest interval around the prediction that holds the share of `log_ratios`; a 90 % interval
// is asked for with a margin, since it is chosen on the same rows and one more row must be held.
// Shortest, not of equal tails: a few runs that failed slowly shall not stretch every answer.
Spread SpreadOf(std::vector<double> log_ratios) {
  constexpr double kShare = 0.92;
  std::sort(log_ratios.begin(), log_ratios.end());
  const size_t count = log_ratios.size();
  const size_t held = std::min(
      count, static_cast<size_t>(std::ceil(kShare * static_cast<double>(count + 1) - 1e-9)));
  const auto width = [](const Spread& s) { return std::exp(s.high_log) - std::exp(s.low_log); };
  std::optional<Spread> shortest;
  for (size_t first = 0; first + held <= count; ++first) {
    const Spread spread = {std::min(0.0, log_ratios[first]),
                           std::max(0.0, log_ratios[first + held - 1])};
    if (!shortest.has_value() || width(spread) < width(*shortest)) shortest = spread;
  }
  return *shortest;
}

Spread Drawn(const Spread& own, double weight, const Spread& parent, double parent_weight) {
  const double share = weight / (weight + parent_weight);
  return {share * own.low_log + (1 - share) * parent.low_log,
          share * own.high_log + (1 - share) * parent.high_log};
}

std::map<std::string, Spread> InitialSpreads() {
  std::map<std::string, Spread> initial;
  for (int i = 0; i < operator_cost::kBlockCount; ++i) {
    initial[std::string(operator_cost::BlockName(static_cast<operator_cost::Block>(i)))] =
        operator_cost::kUnmeasuredKernel;
  }
  for (size_t c = 0; c < collectives::kCarrierCount; ++c) {
    for (size_t f = 0; f < collectives::kFamilyCount; ++f) {
      initial[std::string(collectives::FabricBlock(static_cast<collectives::Carrier>(c),
                                                   static_cast<collectives::Family>(f)))] =
          collectives::kUnmeasuredCollective;
    }
  }
  initial[std::string(collectives::kNetworkBlock)] = collectives::kUnmeasuredCollective;
  for (const orchestrator::AnswerDescriptor& answer : orchestrator::kAnswers) {
    initial[std::string(answer.block)] = answer.unmeasured;
  }
  return initial;
}

void Store(const std::string& block, const Spread& spread, parameters::ParameterValues* values) {
  (*values)[parameters::LowKey(block)] = {.value = std::max(spread.low_log, -5.0)};
  (*values)[parameters::HighKey(block)] = {.value = std::min(spread.high_log, 5.0)};
}

bool IsWholeAnswer(absl::string_view block) {
  return std::any_of(orchestrator::kAnswers.begin(), orchestrator::kAnswers.end(),
                     [&](const auto& answer) { return answer.block == block; });
}

Spread Scaled(const Spread& spread, double factor) {
  return {factor * spread.low_log, factor * spread.high_log};
}

// Root mean square of new rows' residuals over that of `count` fitted rows, of a fit of p
// parameters (Akaike's final prediction error): sqrt((n + p) / (n - p)).
double NewRowFactor(size_t count) {
  constexpr double kParameters = 8;  // of a framework or an engine
  const double n = static_cast<double>(count);
  return n > 2 * kParameters ? std::sqrt((n + kParameters) / (n - kParameters)) : std::sqrt(3.0);
}

using Groups = std::map<std::tuple<std::string, std::string, std::string>, std::vector<double>>;

}  // namespace

std::vector<Residual> ResidualsOf(const Measurements& rows, const ValidationReport& report) {
  std::vector<Residual> residuals;
  ForEachNumber(
      rows, [&](size_t i) { return report.rows[i].metric; },
      [&](size_t i, const hardware::Accelerator& accelerator, const RowFacts& facts,
          absl::string_view block) {
        const ValidationRow& row = report.rows[i];
        if (row.status != RowStatus::kOk || row.metric == "throughput") return;
        if (!(row.measured_seconds.value_or(0) > 0 && row.predicted_seconds.value_or(0) > 0)) {
          return;
        }
        residuals.push_back(
            {facts.id.empty() ? "" : absl::StrCat(row.kind, " ", facts.id, " ", row.metric),
             OwnerOf(accelerator), accelerator.name, facts.profile, std::string(block),
             std::log(*row.measured_seconds / *row.predicted_seconds) / row.interval_widening,
             row.extrapolated});
      });
  return residuals;
}

parameters::ParameterSet WithMeasuredBlocks(const parameters::ParameterSet& set,
                                            const Measurements& rows) {
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> counts;
  ForEachNumber(
      rows, [](size_t) { return std::string(); },
      [&](size_t, const hardware::Accelerator& accelerator, const RowFacts&,
          absl::string_view block) {
        ++counts[{OwnerOf(accelerator), std::string(block), accelerator.name}];
      });
  auto accelerators = set.accelerators();
  for (const auto& [key, count] : counts) {
    const auto& [owner, block, accelerator] = key;
    const auto place = accelerators.find(owner);
    if (place == accelerators.end()) continue;  // nothing was fitted
    std::vector<parameters::MeasuredBlock>& known = place->second.measured;
    const auto same = [&](const parameters::MeasuredBlock& m) {
      return m.block == block && m.accelerator == accelerator;
    };
    const auto found = std::find_if(known.begin(), known.end(), same);
    if (found == known.end()) {
      known.push_back({block, accelerator, count});
    } else {
      found->row_count = count;
    }
  }
  return parameters::ParameterSet(set.provenance(), std::move(accelerators));
}

std::vector<Residual> Unseen(absl::Span<const Residual> fitted,
                             absl::Span<const Residual> held_out) {
  std::map<absl::string_view, const Residual*> by_key;
  for (const Residual& residual : held_out) {
    if (!residual.key.empty()) by_key[residual.key] = &residual;
  }
  std::vector<Residual> unseen;
  for (const Residual& residual : fitted) {
    const auto found = by_key.find(residual.key);
    const bool usable = found != by_key.end() && !IsWholeAnswer(residual.block) &&
                        (!found->second->extrapolated || residual.extrapolated);
    unseen.push_back(usable ? *found->second : residual);
  }
  return unseen;
}

Measurements WithoutProfiles(Measurements rows) {
  for (OperatorRow& row : rows.operators) row.facts.profile.clear();
  for (CollectiveRow& row : rows.collectives) row.facts.profile.clear();
  for (TrainingRow& row : rows.training) row.job.framework.clear();
  for (InferenceRow& row : rows.inference) row.job.framework.clear();
  return rows;
}

parameters::ParameterSet WithSpreads(const parameters::ParameterSet& set,
                                     absl::Span<const Residual> own,
                                     absl::Span<const Residual> unknown) {
  const std::map<std::string, Spread> initial = InitialSpreads();
  auto accelerators = set.accelerators();
  std::map<std::string, std::vector<double>> blocks;
  std::map<std::string, std::set<std::string>> profiles;
  Groups groups;
  for (const Residual& r : own) {
    blocks[r.block].push_back(r.log_ratio);
    groups[{r.owner, r.profile, r.block}].push_back(r.log_ratio);
    profiles[r.block].insert(r.profile);
  }
  std::map<std::string, Spread> parents;
  for (const auto& [block, values] : blocks) {
    parents[block] =
        Drawn(SpreadOf(values), static_cast<double>(values.size()), initial.at(block), kParentRows);
  }
  for (const auto& [key, values] : groups) {
    const auto& [owner, profile, block] = key;
    if (profile.empty()) continue;  // shared values, below
    const Spread spread = IsWholeAnswer(block)
                              ? Scaled(SpreadOf(values), NewRowFactor(values.size()))
                              : SpreadOf(values);
    Store(block, Drawn(spread, static_cast<double>(values.size()), parents[block], kParentRows),
          &accelerators[owner].profiles[profile]);
  }
  Groups shared;
  for (const Residual& r : unknown) {
    // What one framework adds says nothing of another's.
    if (!IsWholeAnswer(r.block)) shared[{r.owner, "", r.block}].push_back(r.log_ratio);
  }
  for (const auto& [key, values] : shared) {
    const auto& [owner, profile, block] = key;
    Store(block,
          Drawn(SpreadOf(values), static_cast<double>(profiles[block].size()), initial.at(block),
                kPriorProfiles),
          &accelerators[owner].shared);
  }
  return parameters::ParameterSet(set.provenance(), std::move(accelerators));
}

}  // namespace sextant::calibration
