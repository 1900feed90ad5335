// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/sweep.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/wire/convert_sweep.h"
#include "services/cli/render/message_json.h"
#include "services/cli/render/number.h"
#include "services/cli/render/quantity.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using sweep::Metric;
using sweep::ReportRow;
using sweep::SweepReport;

std::string MetricText(Metric metric, double value) {
  if (!std::isfinite(value)) return "-";
  switch (metric) {
    case Metric::kTotalSeconds:
    case Metric::kTimeToFirstTokenSeconds:
    case Metric::kInterTokenLatencySeconds:
      return FormatSeconds(value);
    case Metric::kTokensPerSecond:
    case Metric::kTokensPerSecondPerGpu:
      return FormatRate(value, "tokens");
    case Metric::kModelFlopsUtilization:
      return FormatShare(value);
    case Metric::kMemoryBytes:
      return FormatBytes(static_cast<int64_t>(value));
    case Metric::kGpuCount:
      return absl::StrCat(static_cast<int64_t>(value));
    case Metric::kEnergyJoulesPerToken:
      return absl::StrCat(FormatNumber(value), " J");
    case Metric::kCostDollarsPerMillionTokens:
      return absl::StrCat("$", FormatNumber(value));
  }
  return "-";
}

// Metrics that some row has, without those that all rows share a column for.
std::vector<Metric> KnownMetrics(const std::vector<ReportRow>& rows) {
  std::vector<Metric> known;
  for (int m = 0; m < sweep::kMetricCount; ++m) {
    const auto metric = static_cast<Metric>(m);
    if (std::any_of(rows.begin(), rows.end(), [&](const ReportRow& row) {
          return std::isfinite(row.point.metrics[metric]);
        })) {
      known.push_back(metric);
    }
  }
  return known;
}

std::string RowsText(const std::string& title, const std::vector<ReportRow>& rows) {
  if (rows.empty()) return "";
  const std::vector<Metric> metrics = KnownMetrics(rows);
  std::vector<Column> columns = {{title, Align::kRight}};
  for (const Metric metric : metrics) {
    columns.push_back({std::string(sweep::MetricName(metric)), Align::kRight});
  }
  columns.push_back({"90 % interval"});
  columns.push_back({"plan"});
  Table table(std::move(columns));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells = {absl::StrCat(i + 1)};
    for (const Metric metric : metrics) {
      cells.push_back(MetricText(metric, rows[i].point.metrics[metric]));
    }
    cells.push_back(absl::StrCat(FormatSeconds(rows[i].interval_low_seconds), " to ",
                                 FormatSeconds(rows[i].interval_high_seconds)));
    cells.push_back(RowText(rows[i]));
    table.AddRow(std::move(cells));
  }
  return absl::StrCat("\n", table.ToText());
}

// Paths that any row sets, in order of first appearance.
std::vector<std::string> SettingPaths(const SweepReport& report) {
  std::vector<std::string> paths;
  for (const auto* list : {&report.top, &report.pareto, &report.nearest}) {
    for (const ReportRow& row : *list) {
      for (const auto& [path, value] : row.settings) {
        if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
      }
    }
  }
  return paths;
}

std::vector<std::string> PlanCells(const sweep::Layout& l) {
  return {absl::StrCat(l.tensor),
          l.sequence_parallel != 0 ? "true" : "false",
          absl::StrCat(l.pipeline),
          absl::StrCat(l.chunks),
          absl::StrCat(l.context),
          absl::StrCat(l.expert),
          absl::StrCat(l.data),
          absl::StrCat(l.micro_batch),
          absl::StrCat(l.zero),
          std::string(workload::PipelineScheduleName(
              static_cast<workload::PipelineSchedule>(l.schedule))),
          std::string(workload::RecomputeName(static_cast<workload::Recompute>(l.recompute)))};
}

constexpr absl::string_view kPlanColumns[] = {
    "tensor_parallel_size",  "sequence_parallel",    "pipeline_parallel_size",
    "virtual_pipeline_size", "context_parallel_size", "expert_parallel_size",
    "data_parallel_size",    "micro_batch_size",     "zero_stage",
    "schedule",              "recompute"};

}  // namespace

std::string RowText(const ReportRow& row) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : row.settings) parts.push_back(absl::StrCat(path, "=", value));
  const sweep::Layout& l = row.point.layout;
  std::string sizes = absl::StrCat("tp ", l.tensor, l.sequence_parallel != 0 ? "+sp" : "", " pp ",
                                   l.pipeline);
  if (l.chunks > 1) absl::StrAppend(&sizes, "x", l.chunks);
  if (l.context > 1) absl::StrAppend(&sizes, " cp ", l.context);
  if (l.expert > 1) absl::StrAppend(&sizes, " ep ", l.expert);
  absl::StrAppend(&sizes, " dp ", l.data);
  parts.push_back(sizes);
  const bool training = !std::isfinite(row.point.metrics[Metric::kTimeToFirstTokenSeconds]);
  if (training) {
    parts.push_back(absl::StrCat("micro-batch ", l.micro_batch));
    if (l.zero > 0) parts.push_back(absl::StrCat("ZeRO ", l.zero));
    const std::vector<std::string> cells = PlanCells(l);
    if (l.pipeline > 1) parts.push_back(cells[9]);
    if (l.recompute != 0) parts.push_back(absl::StrCat("recompute ", cells[10]));
  }
  return Printable(absl::StrJoin(parts, ", "));
}

std::string SweepJson(const SweepReport& report) { return MessageJson(wire::ToProto(report)); }

absl::StatusOr<SweepReport> ParseSweepJson(const std::string& text) {
  types::v1::SweepReport proto;
  SEXTANT_RETURN_IF_ERROR(ParseMessageJson(text, &proto));
  if (proto.shard_count() < 1) {
    return absl::InvalidArgumentError(
        "is not the answer of a sweep; 'sextant sweep run ... --output json' makes one");
  }
  return wire::FromProto(proto);
}

std::string SweepCsv(const SweepReport& report) {
  const std::vector<std::string> paths = SettingPaths(report);
  std::vector<std::string> header = {"list", "rank", "id"};
  for (const std::string& path : paths) header.push_back(CsvField(path));
  header.insert(header.end(), {"cluster", "accelerator"});
  for (const absl::string_view name : kPlanColumns) header.emplace_back(name);
  for (const std::string& name : sweep::MetricNames()) header.push_back(name);
  header.insert(header.end(),
                {"interval_low_seconds", "interval_high_seconds", "energy_low_joules_per_token",
                 "energy_high_joules_per_token", "cost_low_dollars_per_million_tokens",
                 "cost_high_dollars_per_million_tokens", "fits", "shortfall_bytes", "excess"});
  std::string text = absl::StrCat(absl::StrJoin(header, ","), "\n");
  const auto add = [&](const char* list, const std::vector<ReportRow>& rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const ReportRow& row = rows[i];
      std::vector<std::string> cells = {list, absl::StrCat(i + 1), absl::StrCat(row.point.id)};
      for (const std::string& path : paths) {
        const auto found = std::find_if(row.settings.begin(), row.settings.end(),
                                        [&](const auto& setting) { return setting.first == path; });
        cells.push_back(found == row.settings.end() ? "" : CsvField(found->second));
      }
      cells.push_back(CsvField(row.cluster));
      cells.push_back(CsvField(row.accelerator));
      for (std::string& cell : PlanCells(row.point.layout)) cells.push_back(std::move(cell));
      for (const double value : row.point.metrics.values) cells.push_back(ShortestNumber(value));
      cells.push_back(ShortestNumber(row.interval_low_seconds));
      cells.push_back(ShortestNumber(row.interval_high_seconds));
      for (const auto& range :
           {row.energy_joules_per_token, row.cost_dollars_per_million_tokens}) {
        cells.push_back(range.has_value() ? ShortestNumber(range->low) : "");
        cells.push_back(range.has_value() ? ShortestNumber(range->high) : "");
      }
      cells.push_back(row.fits ? "true" : "false");
      cells.push_back(absl::StrCat(row.shortfall_bytes));
      cells.push_back(row.excess.has_value() ? ShortestNumber(*row.excess) : "");
      absl::StrAppend(&text, absl::StrJoin(cells, ","), "\n");
    }
  };
  add("top", report.top);
  add("pareto", report.pareto);
  add("nearest", report.nearest);
  return text;
}

std::string SweepText(const SweepReport& report) {
  const sweep::Counts& counts = report.counts;
  Table head({{""}, {""}});
  head.AddRow({"model", Printable(report.model)});
  head.AddRow({"points", absl::StrCat(counts.candidate_count, " of ", report.whole_candidate_count,
                                      ", ", counts.predicted_count, " predicted, ",
                                      counts.accepted_count, " meet everything",
                                      report.complete ? "" : " (STOPPED BEFORE THE END)")});
  if (report.shard.count > 1) {
    head.AddRow({"shard", absl::StrCat(report.shard.index, " of ", report.shard.count)});
  }
  for (const sweep::Limit& limit : report.limits) {
    head.AddRow({"limit", absl::StrCat(std::string(sweep::MetricName(limit.metric)),
                                       sweep::LessIsBetter(limit.metric) ? " <= " : " >= ",
                                       MetricText(limit.metric, limit.bound))});
  }
  head.AddRow({"ranked by", std::string(sweep::MetricName(report.options.rank_by))});
  head.AddRow({"parameter set", report.parameter_set});
  std::string text = head.ToText();
  absl::StrAppend(&text, RowsText("best", report.top));
  absl::StrAppend(&text, RowsText("front", report.pareto));
  if (report.top.empty()) {
    absl::StrAppend(&text, "\nnothing meets everything; the nearest:\n",
                    RowsText("nearest", report.nearest));
  }
  if (!counts.rejected.empty()) {
    Table rejected({{"turned down"}, {"points", Align::kRight}});
    for (const auto& [reason, count] : counts.rejected) {
      rejected.AddRow({reason, absl::StrCat(count)});
    }
    absl::StrAppend(&text, "\n", rejected.ToText());
  }
  if (!report.excluded.empty()) absl::StrAppend(&text, "\nnever listed\n");
  for (const std::string& sentence : report.excluded) {
    absl::StrAppend(&text, "  ", Printable(sentence), "\n");
  }
  return text;
}

}  // namespace sextant::cli
