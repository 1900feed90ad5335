// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/sweep_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/catalog/economics.h"
#include "common/catalog/job_node_reader.h"
#include "common/wire/yaml_node.h"

namespace sextant::catalog {
namespace {

using sweep::Choice;
using sweep::PlanDimension;
using sweep::PlanSpace;

constexpr size_t kMaxValues = 10'000;
// Combinations whose violations are listed; those of more are mostly the same.
constexpr size_t kMaxBrokenScenarios = 20;

void VaryWholePlan(PlanSpace& plan) {
  for (const PlanDimension& dimension : sweep::kPlanDimensions) (plan.*dimension.choice).all = true;
}

// One path outside the plan, and the YAML texts that it may hold.
struct Axis {
  std::string path;
  std::vector<std::string> values;
};

std::string FlowText(const YAML::Node& node) {
  if (node.IsScalar()) return node.Scalar();
  YAML::Emitter emitter;
  emitter.SetMapFormat(YAML::Flow);
  emitter.SetSeqFormat(YAML::Flow);
  emitter << node;
  return emitter.c_str();
}

class SweepReader {
 public:
  SweepReader(absl::string_view text, absl::string_view file_name,
              const std::vector<std::string>& overrides, const Catalog& catalog,
              std::vector<std::string>* notes)
      : text_(text),
        file_name_(file_name),
        job_file_name_(file_name),
        overrides_(overrides),
        catalog_(catalog),
        notes_(notes) {}

  absl::StatusOr<sweep::SweepSpec> Read(const YAML::Node& root) {
    if (!root.IsMap()) {
      violations_.Add(file_name_, "must be a mapping with job and vary");
      return violations_.ToStatus();
    }
    job_is_root_ = !root["job"].IsDefined() && root["model"].IsDefined();
    if (job_is_root_) {
      VaryWholePlan(spec_.plan);
    } else {
      RefuseUnknown(root);
      ReadBase(root["job"]);
      ReadVary(root["vary"]);
      ReadLimits(root["limits"]);
      ReadWords(root);
    }
    ReadScenarios();
    if (absl::StatusOr<energy::Economics> economics = DefaultEconomics(catalog_); economics.ok()) {
      spec_.economics = *std::move(economics);
    } else {
      violations_.AddStatus("economics", economics.status());
    }
    if (violations_.empty()) {
      violations_.AddStatus("", sweep::ValidateSweep(spec_));
    }
    if (violations_.empty()) return std::move(spec_);
    return violations_.ToStatus(violations_.items().size() == not_found_count_
                                    ? absl::StatusCode::kNotFound
                                    : absl::StatusCode::kInvalidArgument);
  }

 private:
  void Report(absl::string_view field, const YAML::Node& place, absl::string_view description) {
    violations_.Add(field, absl::StrCat(description, wire::PlaceOf(place, file_name_)));
  }

  void RefuseUnknown(const YAML::Node& root) {
    static const std::vector<std::string> known = {"job",     "vary",   "limits", "require_fit",
                                                   "rank_by", "pareto", "top",    "sample"};
    std::set<std::string> seen;
    for (const auto& item : root) {
      const std::string key = item.first.IsScalar() ? item.first.Scalar() : "?";
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        Report(key.substr(0, 128), item.first, base::UnknownName("field", key, known).message());
      } else if (!seen.insert(key).second) {
        Report(key, item.first, "is given twice; keep one");
      }
    }
  }

  void ReadBase(const YAML::Node& job) {
    if (!job.IsDefined() || job.IsNull()) {
      violations_.Add("job", "is missing; give a job, or the path of a job file");
    } else if (job.IsScalar()) {
      namespace fs = std::filesystem;
      std::error_code error;
      for (const fs::path& path : {fs::path(std::string(file_name_)).parent_path() / job.Scalar(),
                                   fs::path(job.Scalar())}) {
        if (!fs::is_regular_file(path, error)) continue;
        absl::StatusOr<std::string> text = ReadTextFile(path.string());
        if (!text.ok()) return violations_.AddStatus("job", text.status());
        job_text_ = *std::move(text);
        job_file_name_ = path.string();
        return;
      }
      ++not_found_count_;
      Report("job", job, absl::StrCat("no file \"", job.Scalar().substr(0, 256), "\""));
    } else if (!job.IsMap()) {
      Report("job", job, "is a list but must be a mapping or the path of a job file");
    }
  }

  void ReadVary(const YAML::Node& vary) {
    if (!vary.IsDefined() || vary.IsNull()) return VaryWholePlan(spec_.plan);
    if (!vary.IsMap()) return Report("vary", vary, "must be a mapping from paths to values");
    std::set<std::string> seen;
    for (const auto& item : vary) {
      const std::string path = item.first.IsScalar() ? item.first.Scalar() : "";
      const std::string field = absl::StrCat("vary.", path.substr(0, 128));
      if (path.empty()) {
        Report("vary", item.first, "has a key that is not a path");
      } else if (!seen.insert(path).second) {
        Report(field, item.first, "is given twice; keep one");
      } else if (path == "plan") {
        if (item.second.IsScalar() && item.second.Scalar() == "all") {
          VaryWholePlan(spec_.plan);
        } else {
          Report(field, item.second, "must be all; name its fields (plan.tensor_parallel_size)");
        }
      } else if (const PlanDimension* dimension = DimensionOf(path); dimension != nullptr) {
        spec_.plan.*dimension->choice = ReadChoice(field, dimension->name, item.second);
      } else {
        ReadAxis(field, path, item.second);
      }
    }
  }

  static const PlanDimension* DimensionOf(absl::string_view path) {
    for (const PlanDimension& dimension : sweep::kPlanDimensions) {
      if (path == absl::StrCat("plan.", dimension.name)) return &dimension;
    }
    return nullptr;
  }

  Choice ReadChoice(const std::string& field, absl::string_view name, const YAML::Node& node) {
    Choice choice;
    if (node.IsScalar() && node.Scalar() == "all") {
      choice.all = true;
      return choice;
    }
    if (node.IsMap()) {
      for (const std::string& text : RangeOf(field, node)) {
        AddChoice(field, name, node, text, choice);
      }
    } else if (node.IsSequence()) {
      for (const YAML::Node& value : node) {
        AddChoice(field, name, value, value.IsScalar() ? value.Scalar() : "", choice);
      }
    } else {
      AddChoice(field, name, node, node.IsScalar() ? node.Scalar() : "", choice);
    }
    if (choice.values.empty()) Report(field, node, "has no values; give all, or a list");
    return choice;
  }

  template <typename Parse>
  void AddWord(const std::string& field, const YAML::Node& place, const std::string& text,
               Parse parse, Choice& choice) {
    const auto word = parse(text);
    if (word.ok()) {
      choice.values.push_back(static_cast<int64_t>(*word));
    } else {
      Report(field, place, word.status().message());
    }
  }

  void AddChoice(const std::string& field, absl::string_view name, const YAML::Node& place,
                 const std::string& text, Choice& choice) {
    int64_t number = 0;
    if (name == "schedule") {
      AddWord(field, place, text, workload::ParsePipelineSchedule, choice);
    } else if (name == "recompute") {
      AddWord(field, place, text, workload::ParseRecompute, choice);
    } else if (name == "sequence_parallel" && (text == "true" || text == "false")) {
      choice.values.push_back(text == "true" ? 1 : 0);
    } else if (absl::SimpleAtoi(text, &number)) {
      choice.values.push_back(number);
    } else {
      Report(field, place,
             absl::StrCat("is \"", text.substr(0, 64), "\" but must be ",
                          name == "sequence_parallel" ? "true, false" : "a count",
                          ", a list of them, or all"));
    }
  }

  void ReadAxis(const std::string& field, const std::string& path, const YAML::Node& node) {
    Axis axis{.path = path};
    if (node.IsSequence()) {
      for (const YAML::Node& value : node) axis.values.push_back(FlowText(value));
    } else if (node.IsMap()) {
      axis.values = RangeOf(field, node);
    } else if (node.IsScalar() && node.Scalar() != "all") {
      axis.values.push_back(node.Scalar());
    }
    if (axis.values.empty() && !node.IsMap()) {
      Report(field, node, "must be a list of values, {from, to, times} or {from, to, step}");
    }
    combination_count_ *= static_cast<double>(std::max<size_t>(axis.values.size(), 1));
    axes_.push_back(std::move(axis));
  }

  // {from: 8, to: 64, times: 2} is 8, 16, 32, 64; {from: 8, to: 24, step: 8} is 8, 16, 24.
  std::vector<std::string> RangeOf(const std::string& field, const YAML::Node& node) {
    double from = 0;
    double to = 0;
    double times = 0;
    double step = 0;
    for (const auto& item : node) {
      const std::string key = item.first.IsScalar() ? item.first.Scalar() : "?";
      double* const number = key == "from"    ? &from
                             : key == "to"    ? &to
                             : key == "times" ? &times
                             : key == "step"  ? &step
                                              : nullptr;
      if (number == nullptr) {
        Report(
            field, item.first,
            absl::StrCat("has \"", key.substr(0, 64), "\" but takes from, to, and times or step"));
        return {};
      }
      if (!item.second.IsScalar() || !absl::SimpleAtod(item.second.Scalar(), number) ||
          !(*number > 0 && *number < 1e300)) {
        Report(field, item.second, absl::StrCat(key, " must be a number above 0"));
        return {};
      }
    }
    if (from <= 0 || to < from || (times > 0) == (step > 0) || (times > 0 && times <= 1)) {
      Report(field, node, "must have from, to of at least from, and either times above 1 or step");
      return {};
    }
    std::vector<std::string> values;
    // A hair of room, so that rounding does not lose the end.
    for (double x = from; x <= to * (1 + 1e-9) && values.size() < kMaxValues;
         x = times > 0 ? x * times : from + static_cast<double>(values.size()) * step) {
      char text[32];
      values.emplace_back(text, std::to_chars(text, text + sizeof text, x).ptr);
    }
    return values;
  }

  void ReadLimits(const YAML::Node& limits) {
    if (!limits.IsDefined() || limits.IsNull()) return;
    if (!limits.IsMap())
      return Report("limits", limits, "must be a mapping from metrics to bounds");
    for (const auto& item : limits) {
      const std::string name = item.first.IsScalar() ? item.first.Scalar() : "?";
      const std::string field = absl::StrCat("limits.", name.substr(0, 128));
      const absl::StatusOr<sweep::Metric> metric = sweep::ParseMetric(name);
      double bound = 0;
      if (!metric.ok()) {
        Report(field, item.first, metric.status().message());
      } else if (!item.second.IsScalar() || !absl::SimpleAtod(item.second.Scalar(), &bound) ||
                 !(std::abs(bound) < 1e300)) {
        Report(field, item.second, "must be a finite number, in the unit that the name ends with");
      } else {
        spec_.limits.push_back({*metric, bound});
      }
    }
  }

  std::optional<sweep::Metric> ReadMetric(absl::string_view field, const YAML::Node& node) {
    const absl::StatusOr<sweep::Metric> metric =
        sweep::ParseMetric(node.IsScalar() ? node.Scalar() : "");
    if (metric.ok()) return *metric;
    Report(field, node, metric.status().message());
    return std::nullopt;
  }

  void ReadCount(const YAML::Node& root, const char* key, size_t& count) {
    const YAML::Node node = root[key];
    if (!node.IsDefined() || node.IsNull()) return;
    int64_t value = 0;
    if (!node.IsScalar() || !absl::SimpleAtoi(node.Scalar(), &value) || value < 0 ||
        value > sweep::kMaxRows) {
      return Report(key, node, absl::StrCat("must be a count between 0 and ", sweep::kMaxRows));
    }
    count = static_cast<size_t>(value);
  }

  void ReadWords(const YAML::Node& root) {
    if (const YAML::Node node = root["rank_by"]; node.IsDefined()) {
      if (const auto metric = ReadMetric("rank_by", node)) spec_.summary.rank_by = *metric;
    }
    if (const YAML::Node node = root["pareto"]; node.IsDefined()) {
      spec_.summary.pareto.clear();
      if (!node.IsSequence()) Report("pareto", node, "must be a list of two or three metrics");
      for (size_t i = 0; node.IsSequence() && i < node.size(); ++i) {
        const auto metric = ReadMetric(absl::StrCat("pareto[", i, "]"), node[i]);
        if (metric.has_value()) spec_.summary.pareto.push_back(*metric);
      }
    }
    if (const YAML::Node node = root["require_fit"]; node.IsDefined()) {
      const std::string text = node.IsScalar() ? node.Scalar() : "";
      if (text != "true" && text != "false") Report("require_fit", node, "must be true or false");
      spec_.require_fit = text != "false";
    }
    ReadCount(root, "top", spec_.summary.top_count);
    ReadCount(root, "sample", spec_.summary.sample_count);
  }

  absl::StatusOr<workload::Job> ReadScenarioJob(const std::vector<std::string>& overrides,
                                                std::vector<std::string>* notes) const {
    const bool own_file = !job_text_.empty();
    SEXTANT_ASSIGN_OR_RETURN(
        YAML::Node root,
        wire::LoadYaml(own_file ? absl::string_view(job_text_) : text_, job_file_name_));
    return ReadJobNode(own_file || job_is_root_ ? root : root["job"], job_file_name_, overrides,
                       catalog_, PlanIs::kOpen, notes);
  }

  void ReadScenarios() {
    if (!violations_.empty() && not_found_count_ == violations_.items().size()) return;
    if (combination_count_ > static_cast<double>(sweep::kMaxScenarios)) {
      violations_.Add("vary", absl::StrCat("makes ", combination_count_,
                                           " combinations outside the plan but must make at most ",
                                           sweep::kMaxScenarios));
      return;
    }
    std::set<std::pair<std::string, std::string>> reported;
    size_t broken = 0;
    std::vector<size_t> at(axes_.size(), 0);
    for (bool more = true; more && broken < kMaxBrokenScenarios; more = Advance(at)) {
      sweep::Scenario scenario;
      std::vector<std::string> overrides = overrides_;
      bool usable = true;
      for (size_t i = 0; i < axes_.size(); ++i) {
        usable &= !axes_[i].values.empty();
        if (!usable) break;
        scenario.settings.emplace_back(axes_[i].path, axes_[i].values[at[i]]);
        overrides.push_back(absl::StrCat(axes_[i].path, "=", axes_[i].values[at[i]]));
      }
      if (!usable) return;
      absl::StatusOr<workload::Job> job =
          ReadScenarioJob(overrides, spec_.scenarios.empty() ? notes_ : nullptr);
      if (job.ok()) {
        scenario.job = *std::move(job);
        spec_.scenarios.push_back(std::move(scenario));
        continue;
      }
      ++broken;
      std::vector<base::Violation> found = base::ViolationsOf(job.status());
      if (found.empty()) found.push_back({"job", std::string(job.status().message())});
      for (const base::Violation& v : found) {
        if (!reported.insert({v.field, v.description}).second) continue;
        violations_.Add(v.field, v.description);
        if (absl::IsNotFound(job.status())) ++not_found_count_;
      }
    }
  }

  bool Advance(std::vector<size_t>& at) const {
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < axes_[i].values.size()) return true;
      at[i] = 0;
    }
    return false;
  }

  absl::string_view text_;
  absl::string_view file_name_;
  std::string job_file_name_;
  std::string job_text_;  // of a job file of its own
  bool job_is_root_ = false;
  const std::vector<std::string>& overrides_;
  const Catalog& catalog_;
  std::vector<std::string>* notes_;
  sweep::SweepSpec spec_;
  std::vector<Axis> axes_;
  double combination_count_ = 1;
  base::Violations violations_;
  size_t not_found_count_ = 0;
};

}  // namespace

absl::StatusOr<sweep::SweepSpec> ReadSweep(absl::string_view yaml_text, absl::string_view file_name,
                                           const std::vector<std::string>& overrides,
                                           const Catalog& catalog,
                                           std::vector<std::string>* notes) {
  SEXTANT_ASSIGN_OR_RETURN(const YAML::Node root, wire::LoadYaml(yaml_text, file_name));
  return SweepReader(yaml_text, file_name, overrides, catalog, notes).Read(root);
}

}  // namespace sextant::catalog
