// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert_sweep.h"

#include <cmath>
#include <limits>
#include <utility>

#include "common/wire/convert.h"
#include "common/wire/convert_economics.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

using google::protobuf::FieldDescriptor;
using sweep::Metric;

const FieldDescriptor* MetricField(int metric) {
  return types::v1::SweepRow::descriptor()->FindFieldByName(
      std::string(sweep::MetricName(static_cast<Metric>(metric))));
}

template <typename Settings>
void AddSettings(const std::vector<std::pair<std::string, std::string>>& settings, Settings* out) {
  for (const auto& [path, value] : settings) {
    types::v1::SweepSetting& setting = *out->Add();
    setting.set_path(path);
    setting.set_value(value);
  }
}

template <typename Settings>
std::vector<std::pair<std::string, std::string>> ReadSettings(const Settings& settings) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const types::v1::SweepSetting& s : settings) out.emplace_back(s.path(), s.value());
  return out;
}

// What a question and its answer both say of the order, the front and the limits.
template <typename Proto>
void AddSummary(const sweep::SummaryOptions& options, const std::vector<sweep::Limit>& limits,
                Proto& proto) {
  proto.set_rank_by(std::string(sweep::MetricName(options.rank_by)));
  for (const Metric m : options.pareto) {
    proto.add_pareto_metrics(std::string(sweep::MetricName(m)));
  }
  proto.set_top_count(static_cast<int64_t>(options.top_count));
  proto.set_sample_count(static_cast<int64_t>(options.sample_count));
  for (const sweep::Limit& limit : limits) {
    types::v1::SweepLimit& out = *proto.add_limits();
    out.set_metric(std::string(sweep::MetricName(limit.metric)));
    out.set_bound(limit.bound);
  }
}

template <typename Proto>
std::vector<Metric> ReadPareto(const Proto& proto, Reader& reader) {
  std::vector<Metric> metrics;
  for (const std::string& name : proto.pareto_metrics()) {
    metrics.push_back(
        reader.Word("pareto_metrics", name, sweep::ParseMetric, Metric::kTotalSeconds));
  }
  return metrics;
}

template <typename Proto>
std::vector<sweep::Limit> ReadLimits(const Proto& proto, Reader& reader) {
  std::vector<sweep::Limit> limits;
  for (const types::v1::SweepLimit& limit : proto.limits()) {
    limits.push_back(
        {reader.Word("limits.metric", limit.metric(), sweep::ParseMetric, Metric::kTotalSeconds),
         reader.Finite("limits.bound", limit.bound())});
  }
  return limits;
}

template <typename Rows>
void AddRows(const std::vector<sweep::ReportRow>& rows, Rows* out) {
  for (const sweep::ReportRow& row : rows) *out->Add() = ToProto(row);
}

template <typename Rows>
std::vector<sweep::ReportRow> ReadRows(absl::string_view field, const Rows& rows, Reader& reader) {
  std::vector<sweep::ReportRow> out;
  for (int i = 0; i < rows.size(); ++i) {
    out.push_back(reader.Nested(absl::StrCat(field, "[", i, "]"), FromProto(rows.Get(i))));
  }
  return out;
}

using sweep::Choice;
using types::v1::SweepChoice;
using types::v1::SweepPlanSpace;

const FieldDescriptor* DimensionField(const sweep::PlanDimension& dimension) {
  return SweepPlanSpace::descriptor()->FindFieldByName(std::string(dimension.name));
}

SweepChoice ChoiceToProto(absl::string_view name, const Choice& choice) {
  SweepChoice proto;
  proto.set_all(choice.all);
  for (const int64_t value : choice.values) {
    if (name == "schedule") {
      const auto schedule = static_cast<workload::PipelineSchedule>(value);
      proto.add_words(std::string(workload::PipelineScheduleName(schedule)));
    } else if (name == "recompute") {
      proto.add_words(
          std::string(workload::RecomputeName(static_cast<workload::Recompute>(value))));
    } else {
      proto.add_values(value);
    }
  }
  return proto;
}

Choice ChoiceFromProto(absl::string_view name, const SweepChoice& proto, Reader& reader) {
  Choice choice{.all = proto.all()};
  choice.values.assign(proto.values().begin(), proto.values().end());
  const std::string field = absl::StrCat("plan.", name);
  const bool has_words = name == "schedule" || name == "recompute";
  if (has_words ? proto.values_size() > 0 : proto.words_size() > 0) {
    reader.Add(field, has_words ? "has values but takes words" : "has words but takes values");
  }
  for (const std::string& word : proto.words()) {
    if (name == "schedule") {
      choice.values.push_back(static_cast<int64_t>(reader.Word(
          field, word, workload::ParsePipelineSchedule, workload::PipelineSchedule::k1f1b)));
    } else if (name == "recompute") {
      choice.values.push_back(static_cast<int64_t>(
          reader.Word(field, word, workload::ParseRecompute, workload::Recompute::kNone)));
    }
  }
  return choice;
}

}  // namespace

types::v1::SweepSpec ToProto(const sweep::SweepSpec& spec) {
  types::v1::SweepSpec proto;
  for (const sweep::Scenario& scenario : spec.scenarios) {
    types::v1::SweepScenario& out = *proto.add_scenarios();
    *out.mutable_job() = ToProto(scenario.job);
    AddSettings(scenario.settings, out.mutable_settings());
  }
  for (const sweep::PlanDimension& d : sweep::kPlanDimensions) {
    const Choice& choice = spec.plan.*d.choice;
    if (choice.IsFixed()) continue;
    SweepPlanSpace& plan = *proto.mutable_plan();
    plan.GetReflection()
        ->MutableMessage(&plan, DimensionField(d))
        ->CopyFrom(ChoiceToProto(d.name, choice));
  }
  *proto.mutable_economics() = ToProto(spec.economics);
  proto.set_require_fit(spec.require_fit);
  AddSummary(spec.summary, spec.limits, proto);
  return proto;
}

absl::StatusOr<sweep::SweepSpec> FromProto(const types::v1::SweepSpec& proto) {
  Reader reader;
  sweep::SweepSpec spec;
  for (int i = 0; i < proto.scenarios_size(); ++i) {
    const types::v1::SweepScenario& in = proto.scenarios(i);
    sweep::Scenario scenario;
    scenario.job = reader.Nested(absl::StrCat("scenarios[", i, "].job"), FromProto(in.job()));
    scenario.settings = ReadSettings(in.settings());
    spec.scenarios.push_back(std::move(scenario));
  }
  for (const sweep::PlanDimension& d : sweep::kPlanDimensions) {
    const auto& choice = static_cast<const SweepChoice&>(
        proto.plan().GetReflection()->GetMessage(proto.plan(), DimensionField(d)));
    spec.plan.*d.choice = ChoiceFromProto(d.name, choice, reader);
  }
  spec.economics = reader.Nested("economics", FromProto(proto.economics()));
  if (proto.has_require_fit()) spec.require_fit = proto.require_fit();
  spec.limits = ReadLimits(proto, reader);
  spec.summary.rank_by =
      reader.Word("rank_by", proto.rank_by(), sweep::ParseMetric, Metric::kTokensPerSecond);
  if (proto.pareto_metrics_size() > 0) spec.summary.pareto = ReadPareto(proto, reader);
  const auto rows = [&](absl::string_view field, int64_t value) {
    if (value >= 0 && value <= sweep::kMaxRows) return static_cast<size_t>(value);
    reader.Add(field, absl::StrCat("is ", value, " but must be between 0 and ", sweep::kMaxRows));
    return size_t{0};
  };
  if (proto.has_top_count()) spec.summary.top_count = rows("top_count", proto.top_count());
  spec.summary.sample_count = rows("sample_count", proto.sample_count());
  return reader.Finish(std::move(spec));
}

types::v1::SweepRow ToProto(const sweep::ReportRow& row) {
  types::v1::SweepRow proto;
  proto.set_id(static_cast<int64_t>(row.point.id));
  proto.set_scenario(row.point.scenario);
  AddSettings(row.settings, proto.mutable_settings());
  proto.set_cluster(row.cluster);
  proto.set_accelerator(row.accelerator);
  workload::ParallelPlan plan;
  row.point.layout.ApplyTo(plan);
  *proto.mutable_plan() = ToProto(plan);
  for (int m = 0; m < sweep::kMetricCount; ++m) {
    const double value = row.point.metrics[static_cast<Metric>(m)];
    if (std::isfinite(value)) proto.GetReflection()->SetDouble(&proto, MetricField(m), value);
  }
  proto.set_interval_low_seconds(row.interval_low_seconds);
  proto.set_interval_high_seconds(row.interval_high_seconds);
  if (row.energy_joules_per_token.has_value()) {
    proto.set_energy_low_joules_per_token(row.energy_joules_per_token->low);
    proto.set_energy_high_joules_per_token(row.energy_joules_per_token->high);
  }
  if (row.cost_dollars_per_million_tokens.has_value()) {
    proto.set_cost_low_dollars_per_million_tokens(row.cost_dollars_per_million_tokens->low);
    proto.set_cost_high_dollars_per_million_tokens(row.cost_dollars_per_million_tokens->high);
  }
  proto.set_fits(row.fits);
  proto.set_memory_capacity_bytes(row.memory_capacity_bytes);
  proto.set_shortfall_bytes(row.shortfall_bytes);
  for (const auto& [name, bytes] : row.memory_breakdown) {
    (*proto.mutable_memory_breakdown())[name] = bytes;
  }
  for (const auto& [name, seconds] : row.breakdown) (*proto.mutable_breakdown())[name] = seconds;
  for (const std::string& name : row.binding) proto.add_binding(name);
  proto.set_extrapolated(row.extrapolated);
  for (const std::string& warning : row.warnings) proto.add_warnings(warning);
  if (row.excess.has_value() && std::isfinite(*row.excess)) proto.set_excess(*row.excess);
  return proto;
}

absl::StatusOr<sweep::ReportRow> FromProto(const types::v1::SweepRow& proto) {
  Reader reader;
  sweep::ReportRow row;
  row.point.id = static_cast<uint64_t>(proto.id());
  row.point.scenario = static_cast<uint32_t>(reader.Int("scenario", proto.scenario()));
  row.settings = ReadSettings(proto.settings());
  row.cluster = proto.cluster();
  row.accelerator = proto.accelerator();
  row.point.layout = sweep::Layout::Of(reader.Nested("plan", FromProto(proto.plan())));
  for (int m = 0; m < sweep::kMetricCount; ++m) {
    const FieldDescriptor* field = MetricField(m);
    if (!proto.GetReflection()->HasField(proto, field)) continue;
    row.point.metrics[static_cast<Metric>(m)] =
        reader.Finite(field->name(), proto.GetReflection()->GetDouble(proto, field));
  }
  row.interval_low_seconds = reader.Finite("interval_low_seconds", proto.interval_low_seconds());
  row.interval_high_seconds = reader.Finite("interval_high_seconds", proto.interval_high_seconds());
  const auto estimate = [&](Metric metric, bool known, double low, double high) {
    return known ? std::make_optional(energy::Estimate{.value = row.point.metrics[metric],
                                                       .low = low,
                                                       .high = high})
                 : std::nullopt;
  };
  row.energy_joules_per_token = estimate(
      Metric::kEnergyJoulesPerToken, proto.has_energy_low_joules_per_token(),
      reader.Finite("energy_low_joules_per_token", proto.energy_low_joules_per_token()),
      reader.Finite("energy_high_joules_per_token", proto.energy_high_joules_per_token()));
  row.cost_dollars_per_million_tokens =
      estimate(Metric::kCostDollarsPerMillionTokens, proto.has_cost_low_dollars_per_million_tokens(),
               reader.Finite("cost_low_dollars_per_million_tokens",
                             proto.cost_low_dollars_per_million_tokens()),
               reader.Finite("cost_high_dollars_per_million_tokens",
                             proto.cost_high_dollars_per_million_tokens()));
  row.fits = proto.fits();
  row.memory_capacity_bytes = proto.memory_capacity_bytes();
  row.shortfall_bytes = proto.shortfall_bytes();
  row.memory_breakdown.insert(proto.memory_breakdown().begin(), proto.memory_breakdown().end());
  for (const auto& [name, seconds] : proto.breakdown()) {
    row.breakdown[name] = reader.Finite(absl::StrCat("breakdown[", name, "]"), seconds);
  }
  row.binding.assign(proto.binding().begin(), proto.binding().end());
  row.extrapolated = proto.extrapolated();
  row.warnings.assign(proto.warnings().begin(), proto.warnings().end());
  if (proto.has_excess()) row.excess = reader.Finite("excess", proto.excess());
  return reader.Finish(std::move(row));
}

types::v1::SweepReport ToProto(const sweep::SweepReport& r) {
  types::v1::SweepReport proto;
  proto.set_model(r.model);
  proto.set_parameter_set(r.parameter_set);
  proto.set_shard_index(r.shard.index);
  proto.set_shard_count(r.shard.count);
  proto.set_complete(r.complete);
  AddSummary(r.options, r.limits, proto);
  proto.set_require_fit(r.require_fit);
  proto.set_whole_candidate_count(r.whole_candidate_count);
  proto.set_candidate_count(r.counts.candidate_count);
  proto.set_predicted_count(r.counts.predicted_count);
  proto.set_accepted_count(r.counts.accepted_count);
  for (const auto& [reason, count] : r.counts.rejected) {
    (*proto.mutable_rejected())[reason] = count;
  }
  for (const std::string& sentence : r.excluded) proto.add_excluded(sentence);
  AddRows(r.top, proto.mutable_top());
  AddRows(r.pareto, proto.mutable_pareto());
  AddRows(r.nearest, proto.mutable_nearest());
  AddRows(r.best, proto.mutable_best());
  AddRows(r.sample, proto.mutable_sample());
  return proto;
}

absl::StatusOr<sweep::SweepReport> FromProto(const types::v1::SweepReport& proto) {
  Reader reader;
  sweep::SweepReport r;
  const auto size = [&](absl::string_view field, int64_t value) {
    return static_cast<size_t>(std::max(reader.Int(field, value), 0));
  };
  r.model = proto.model();
  r.parameter_set = proto.parameter_set();
  r.shard = {.index = proto.shard_index(), .count = proto.shard_count()};
  r.complete = proto.complete();
  r.options.rank_by =
      reader.Word("rank_by", proto.rank_by(), sweep::ParseMetric, Metric::kTotalSeconds);
  r.options.pareto = ReadPareto(proto, reader);
  r.options.top_count = size("top_count", proto.top_count());
  r.options.sample_count = size("sample_count", proto.sample_count());
  r.require_fit = proto.require_fit();
  r.limits = ReadLimits(proto, reader);
  r.whole_candidate_count = proto.whole_candidate_count();
  r.counts = {.candidate_count = proto.candidate_count(),
              .predicted_count = proto.predicted_count(),
              .accepted_count = proto.accepted_count()};
  r.counts.rejected.insert(proto.rejected().begin(), proto.rejected().end());
  r.excluded.assign(proto.excluded().begin(), proto.excluded().end());
  r.top = ReadRows("top", proto.top(), reader);
  r.pareto = ReadRows("pareto", proto.pareto(), reader);
  r.nearest = ReadRows("nearest", proto.nearest(), reader);
  r.best = ReadRows("best", proto.best(), reader);
  r.sample = ReadRows("sample", proto.sample(), reader);
  return reader.Finish(std::move(r));
}

}  // namespace sextant::wire
