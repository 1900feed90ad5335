// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/report.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"

namespace sextant::sweep {
namespace {

std::vector<Point> BestPoints(const Summary& summary) {
  std::vector<Point> points;
  for (const auto& [scenario, point] : summary.BestPerScenario()) points.push_back(point);
  return points;
}

std::vector<ReportRow> RowsOf(const std::map<uint64_t, ReportRow>& by_id,
                              const std::vector<Point>& points) {
  std::vector<ReportRow> rows;
  for (const Point& point : points) rows.push_back(by_id.at(point.id));
  return rows;
}

absl::Status RequireOneSweep(const std::vector<SweepReport>& reports) {
  base::Violations violations;
  std::set<int64_t> shards;
  const SweepReport& first = reports.front();
  for (size_t i = 0; i < reports.size(); ++i) {
    const SweepReport& r = reports[i];
    const std::string field = absl::StrCat("reports[", i, "]");
    if (r.parameter_set != first.parameter_set) {
      violations.Add(field, absl::StrCat("was made with parameter set ", r.parameter_set,
                                         " but the first with ", first.parameter_set,
                                         "; run all shards with the same --parameters"));
    }
    if (r.whole_candidate_count != first.whole_candidate_count || r.model != first.model ||
        !(r.options == first.options) || r.limits != first.limits ||
        r.require_fit != first.require_fit || r.shard.count != first.shard.count) {
      violations.Add(field, "is of another sweep, or of another number of shards, than the first");
    }
    if (!shards.insert(r.shard.index).second) {
      violations.Add(field, absl::StrCat("is shard ", r.shard.index, " of ", r.shard.count,
                                         ", which was given before; give each once"));
    }
  }
  return violations.ToStatus();
}

}  // namespace

ReportRow RowOf(const SweepSpec& spec, Row row) {
  const Scenario& scenario = spec.scenarios[row.point.scenario];
  orchestrator::Prediction& p = row.prediction;
  ReportRow out{.point = row.point,
                .settings = scenario.settings,
                .cluster = scenario.job.cluster.name,
                .accelerator = scenario.job.cluster.accelerator.name,
                .interval_low_seconds = p.interval_low_seconds,
                .interval_high_seconds = p.interval_high_seconds,
                .fits = p.memory.fits,
                .memory_capacity_bytes = p.memory.capacity_bytes,
                .shortfall_bytes = p.memory.shortfall_bytes,
                .binding = std::move(p.binding),
                .extrapolated = p.extrapolated,
                .warnings = std::move(p.warnings)};
  out.point.metrics = MetricsOf(scenario.job, row.prediction, spec.economics);
  const double tokens = energy::TokenCount(p);
  if (spec.economics.power.IsKnown() && tokens > 0) {
    out.energy_joules_per_token =
        energy::EnergyJoules(scenario.job, p, spec.economics.power).Scaled(1 / tokens);
    out.energy_joules_per_token->value = out.point.metrics[Metric::kEnergyJoulesPerToken];
  }
  const auto dollars = energy::CostDollars(scenario.job, p, spec.economics);
  if (dollars.has_value() && tokens > 0) {
    out.cost_dollars_per_million_tokens = dollars->Scaled(1e6 / tokens);
    out.cost_dollars_per_million_tokens->value =
        out.point.metrics[Metric::kCostDollarsPerMillionTokens];
  }
  for (const auto& part : p.memory.breakdown) out.memory_breakdown[part.name] += part.bytes;
  for (const auto& part : p.breakdown) out.breakdown[part.name] += part.seconds;
  return out;
}

absl::StatusOr<SweepReport> ReportOf(const SweepSpec& spec, const SweepResult& result,
                                     const Shard& shard,
                                     std::shared_ptr<const parameters::ParameterSet> parameters) {
  const auto rows_of = [&](const std::vector<Point>& points,
                           std::vector<ReportRow>& out) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(std::vector<Row> rows, PredictPoints(spec, points, parameters));
    for (Row& row : rows) out.push_back(RowOf(spec, std::move(row)));
    return absl::OkStatus();
  };
  const Summary& summary = result.summary;
  SweepReport report;
  report.model = spec.scenarios.front().job.model.name;
  report.parameter_set = result.parameter_set;
  report.shard = shard;
  report.complete = result.complete;
  report.options = spec.summary;
  report.require_fit = spec.require_fit;
  report.limits = spec.limits;
  report.whole_candidate_count = result.whole_candidate_count;
  report.counts = summary.counts();
  report.excluded = result.excluded;
  SEXTANT_RETURN_IF_ERROR(rows_of(summary.Top(), report.top));
  SEXTANT_RETURN_IF_ERROR(rows_of(summary.Pareto(), report.pareto));
  std::vector<Point> nearest;
  for (const NearMiss& miss : summary.NearMisses()) nearest.push_back(miss.point);
  SEXTANT_RETURN_IF_ERROR(rows_of(nearest, report.nearest));
  for (size_t i = 0; i < nearest.size(); ++i) {
    report.nearest[i].excess = summary.NearMisses()[i].excess;
  }
  SEXTANT_RETURN_IF_ERROR(rows_of(BestPoints(summary), report.best));
  SEXTANT_RETURN_IF_ERROR(rows_of(summary.Sample(), report.sample));
  return report;
}

absl::StatusOr<SweepReport> MergeReports(const std::vector<SweepReport>& reports) {
  if (reports.empty()) return absl::InvalidArgumentError("there is no report to merge");
  SEXTANT_RETURN_IF_ERROR(RequireOneSweep(reports));
  const SweepReport& first = reports.front();
  SweepReport merged = first;
  merged.shard = Shard();
  merged.complete = true;
  // What is best of all is among the best of some shard.
  std::map<uint64_t, ReportRow> accepted;
  std::map<uint64_t, ReportRow> missed;
  Summary summary(first.options);
  for (const SweepReport& report : reports) {
    summary.counts().Add(report.counts);
    for (const auto* list : {&report.top, &report.pareto, &report.best, &report.sample}) {
      for (const ReportRow& row : *list) accepted.emplace(row.point.id, row);
    }
    for (const ReportRow& row : report.nearest) missed.emplace(row.point.id, row);
    merged.complete = merged.complete && report.complete;
  }
  for (const auto& [id, row] : accepted) summary.Add(row.point);
  for (const auto& [id, row] : missed) {
    summary.Miss({.point = row.point, .fits = row.fits, .excess = row.excess.value_or(0)});
  }
  merged.counts = summary.counts();
  merged.complete =
      merged.complete && merged.counts.candidate_count == first.whole_candidate_count;
  merged.top = RowsOf(accepted, summary.Top());
  merged.pareto = RowsOf(accepted, summary.Pareto());
  std::vector<Point> nearest;
  for (const NearMiss& miss : summary.NearMisses()) nearest.push_back(miss.point);
  merged.nearest = RowsOf(missed, nearest);
  merged.best = RowsOf(accepted, BestPoints(summary));
  merged.sample = RowsOf(accepted, summary.Sample());
  return merged;
}

}  // namespace sextant::sweep
