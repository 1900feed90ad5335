// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_REPORT_H_
#define SEXTANT_COMMON_SWEEP_REPORT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sweep/run_sweep.h"

namespace sextant::sweep {

// One point as a reader sees it: what makes it different, and what `predict` says of it.
struct ReportRow {
  Point point;
  std::vector<std::pair<std::string, std::string>> settings;  // of its scenario
  std::string cluster;
  std::string accelerator;
  double interval_low_seconds = 0;  // 90 % interval of total_seconds
  double interval_high_seconds = 0;
  // What sources span (common/energy): of energy_joules_per_token, cost_dollars_per_million_tokens.
  std::optional<energy::Estimate> energy_joules_per_token;
  std::optional<energy::Estimate> cost_dollars_per_million_tokens;
  bool fits = true;
  int64_t memory_capacity_bytes = 0;
  int64_t shortfall_bytes = 0;
  std::map<std::string, int64_t> memory_breakdown;
  std::map<std::string, double> breakdown;  // sums to total_seconds
  std::vector<std::string> binding;
  bool extrapolated = false;
  std::vector<std::string> warnings;
  std::optional<double> excess;  // of a nearest miss: how far it misses, relative to the limit
};

// The answer to a sweep, or to one shard of it, self-contained.
struct SweepReport {
  std::string model;
  std::string parameter_set;
  Shard shard;
  bool complete = true;
  SummaryOptions options;
  bool require_fit = true;
  std::vector<Limit> limits;
  int64_t whole_candidate_count = 0;
  Counts counts;
  std::vector<std::string> excluded;
  std::vector<ReportRow> top;      // best first
  std::vector<ReportRow> pareto;   // in order of the first metric
  std::vector<ReportRow> nearest;  // best of what was turned down, nearest first
  std::vector<ReportRow> best;     // of each scenario that has one, in their order
  std::vector<ReportRow> sample;   // a fair sample of what was accepted
};

// Rows predicted in full; errors of predictions pass through.
absl::StatusOr<SweepReport> ReportOf(const SweepSpec& spec, const SweepResult& result,
                                     const Shard& shard,
                                     std::shared_ptr<const parameters::ParameterSet> parameters);

// A row of `spec` for a point whose prediction is known.
ReportRow RowOf(const SweepSpec& spec, Row row);

// The report of the whole sweep from those of its shards, in any order: equal to what one run
// answers. A missing or stopped shard makes it incomplete. INVALID_ARGUMENT where the reports are
// not of one sweep under one parameter set, or where a shard is given twice.
absl::StatusOr<SweepReport> MergeReports(const std::vector<SweepReport>& reports);

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_REPORT_H_
