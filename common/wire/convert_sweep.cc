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

struct Dimension {
  absl::string_view name;
  Choice sweep::PlanSpace::*choice;
  SweepChoice* (SweepPlanSpace::*mutable_field)();
  const SweepChoice& (SweepPlanSpace::*field)() const;
};
#define SEXTANT_DIMENSION(name) \
  { #name, &sweep::PlanSpace::name, &SweepPlanSpace::mutable_##name, &SweepPlanSpace::name }
constexpr Dimension kDimensions[] = {
    SEXTANT_DIMENSION(tensor_parallel_size),  SEXTANT_DIMENSION(pipeline_parallel_size),
    SEXTANT_DIMENSION(virtual_pipeline_size), SEXTANT_DIMENSION(context_parallel_size),
    SEXTANT_DIMENSION(expert_parallel_size),  SEXTANT_DIMENSION(data_parallel_size),
    SEXTANT_DIMENSION(micro_batch_size),      SEXTANT_DIMENSION(zero_stage),
    SEXTANT_DIMENSION(sequence_parallel),     SEXTANT_DIMENSION(schedule),
    SEXTANT_DIMENSION(recompute)};
#undef SEXTANT_DIMENSION

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
    for (const auto& [path, value] : scenario.settings) {
      types::v1::SweepSetting& setting = *out.add_settings();
      setting.set_path(path);
      setting.set_value(value);
    }
  }
  for (const Dimension& d : kDimensions) {
    const Choice& choice = spec.plan.*d.choice;
    if (choice.IsFixed()) continue;
    *(proto.mutable_plan()->*d.mutable_field)() = ChoiceToProto(d.name, choice);
  }
  *proto.mutable_economics() = ToProto(spec.economics);
  proto.set_require_fit(spec.require_fit);
  for (const sweep::Limit& limit : spec.limits) {
    types::v1::SweepLimit& out = *proto.add_limits();
    out.set_metric(std::string(sweep::MetricName(limit.metric)));
    out.set_bound(limit.bound);
  }
  proto.set_rank_by(std::string(sweep::MetricName(spec.summary.rank_by)));
  for (const Metric m : spec.summary.pareto) {
    proto.add_pareto_metrics(std::string(sweep::MetricName(m)));
  }
  proto.set_top_count(static_cast<int64_t>(spec.summary.top_count));
  proto.set_sample_count(static_cast<int64_t>(spec.summary.sample_count));
  return proto;
}

absl::StatusOr<sweep::SweepSpec> FromProto(const types::v1::SweepSpec& proto) {
  constexpr int64_t kMaxRows = 100'000;
  Reader reader;
  sweep::SweepSpec spec;
  for (int i = 0; i < proto.scenarios_size(); ++i) {
    const types::v1::SweepScenario& in = proto.scenarios(i);
    sweep::Scenario scenario;
    scenario.job = reader.Nested(absl::StrCat("scenarios[", i, "].job"), FromProto(in.job()));
    for (const types::v1::SweepSetting& s : in.settings()) {
      scenario.settings.emplace_back(s.path(), s.value());
    }
    spec.scenarios.push_back(std::move(scenario));
  }
  for (const Dimension& d : kDimensions) {
    spec.plan.*d.choice = ChoiceFromProto(d.name, (proto.plan().*d.field)(), reader);
  }
  spec.economics = reader.Nested("economics", FromProto(proto.economics()));
  if (proto.has_require_fit()) spec.require_fit = proto.require_fit();
  for (const types::v1::SweepLimit& limit : proto.limits()) {
    spec.limits.push_back(
        {reader.Word("limits.metric", limit.metric(), sweep::ParseMetric, Metric::kTotalSeconds),
         reader.Finite("limits.bound", limit.bound())});
  }
  spec.summary.rank_by =
      reader.Word("rank_by", proto.rank_by(), sweep::ParseMetric, Metric::kTokensPerSecond);
  if (proto.pareto_metrics_size() > 0) spec.summary.pareto.clear();
  for (const std::string& name : proto.pareto_metrics()) {
    spec.summary.pareto.push_back(
        reader.Word("pareto_metrics", name, sweep::ParseMetric, Metric::kTotalSeconds));
  }
  const auto rows = [&](absl::string_view field, int64_t value) {
    if (value >= 0 && value <= kMaxRows) return static_cast<size_t>(value);
    reader.Add(field, absl::StrCat("is ", value, " but must be between 0 and ", kMaxRows));
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
  for (const auto& [path, value] : row.settings) {
    types::v1::SweepSetting& setting = *proto.add_settings();
    setting.set_path(path);
    setting.set_value(value);
  }
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
  for (const types::v1::SweepSetting& s : proto.settings()) {
    row.settings.emplace_back(s.path(), s.value());
  }
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
  proto.set_rank_by(std::string(sweep::MetricName(r.options.rank_by)));
  for (const Metric m : r.options.pareto) {
    proto.add_pareto_metrics(std::string(sweep::MetricName(m)));
  }
  proto.set_top_count(static_cast<int64_t>(r.options.top_count));
  proto.set_sample_count(static_cast<int64_t>(r.options.sample_count));
  proto.set_require_fit(r.require_fit);
  for (const sweep::Limit& limit : r.limits) {
    types::v1::SweepLimit& out = *proto.add_limits();
    out.set_metric(std::string(sweep::MetricName(limit.metric)));
    out.set_bound(limit.bound);
  }
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
  const auto metric = [&](const std::string& field, const std::string& name) {
    return reader.Word(field, name, sweep::ParseMetric, Metric::kTotalSeconds);
  };
  const auto size = [&](absl::string_view field, int64_t value) {
    return static_cast<size_t>(std::max(reader.Int(field, value), 0));
  };
  r.model = proto.model();
  r.parameter_set = proto.parameter_set();
  r.shard = {.index = proto.shard_index(), .count = proto.shard_count()};
  r.complete = proto.complete();
  r.options.rank_by = metric("rank_by", proto.rank_by());
  r.options.pareto.clear();
  for (const std::string& name : proto.pareto_metrics()) {
    r.options.pareto.push_back(metric("pareto_metrics", name));
  }
  r.options.top_count = size("top_count", proto.top_count());
  r.options.sample_count = size("sample_count", proto.sample_count());
  r.require_fit = proto.require_fit();
  for (const types::v1::SweepLimit& limit : proto.limits()) {
    r.limits.push_back({metric("limits.metric", limit.metric()),
                        reader.Finite("limits.bound", limit.bound())});
  }
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
