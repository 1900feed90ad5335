// SPDX-License-Identifier: Apache-2.0
#include "calibration/measurements/row_reader.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "calibration/measurements/profile_id.h"

namespace sextant::calibration {
namespace {

constexpr double kLargestInteger = 9007199254740992.0;  // 2^53

template <typename Map, typename Find>
const typename Map::mapped_type& Remember(Map& map, absl::string_view name, Find find) {
  auto it = map.find(name);
  if (it == map.end()) it = map.emplace(std::string(name), find(name)).first;
  return it->second;
}

}  // namespace

const absl::StatusOr<hardware::Accelerator>& Lookups::Accelerator(absl::string_view name) {
  return Remember(accelerator_, name,
                  [this](absl::string_view n) { return catalog_.FindAccelerator(n); });
}
const absl::StatusOr<hardware::Cluster>& Lookups::Cluster(absl::string_view name) {
  return Remember(cluster_, name, [this](absl::string_view n) { return catalog_.FindCluster(n); });
}
const absl::StatusOr<std::string>& Lookups::DefaultCluster(absl::string_view accelerator) {
  return Remember(default_cluster_, accelerator,
                  [this](absl::string_view n) { return catalog_.DefaultClusterName(n); });
}
const absl::StatusOr<workload::ModelArchitecture>& Lookups::Model(absl::string_view name) {
  return Remember(model_, name, [this](absl::string_view n) { return catalog_.FindModel(n); });
}

absl::string_view RowReader::Text(absl::string_view column) const {
  const auto it = index_.find(column);
  return it == index_.end() ? absl::string_view()
                            : absl::StripAsciiWhitespace(fields_[static_cast<size_t>(it->second)]);
}

std::optional<int64_t> RowReader::Integer(absl::string_view column, int64_t minimum) {
  const absl::string_view text = Text(column);
  if (text.empty()) return std::nullopt;
  double value = 0;
  // Tables that passed through a spreadsheet write 8.0 for 8.
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || value != std::floor(value) ||
      std::fabs(value) > kLargestInteger) {
    violations_.Add(column, absl::StrCat("is \"", text, "\" but must be a whole number"));
    return std::nullopt;
  }
  if (value < static_cast<double>(minimum)) {
    violations_.Add(column, absl::StrCat("is ", text, " but must be at least ", minimum));
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

void RowReader::Missing(absl::string_view column) {
  violations_.Add(column, "is not stated and has no default");
}

int64_t RowReader::RequiredInteger(absl::string_view column, int64_t minimum) {
  if (!Has(column)) Missing(column);
  return Integer(column, minimum).value_or(0);
}

int64_t RowReader::IntegerOr(absl::string_view column, int64_t value,
                             std::vector<std::string>* warnings, int64_t minimum) {
  if (!Has(column)) {
    warnings->push_back(absl::StrCat(column, " not stated: ", value, " assumed"));
    return value;
  }
  return Integer(column, minimum).value_or(value);
}

std::optional<double> RowReader::Positive(absl::string_view column) {
  const absl::string_view text = Text(column);
  if (text.empty()) return std::nullopt;
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || !(value > 0)) {
    violations_.Add(column, absl::StrCat("is \"", text, "\" but must be a number above 0"));
    return std::nullopt;
  }
  return value;
}

double RowReader::RequiredPositive(absl::string_view column) {
  if (!Has(column)) Missing(column);
  return Positive(column).value_or(0);
}

std::string RowReader::Refusal() const {
  std::string line;
  for (const base::Violation& violation : violations_.items()) {
    absl::StrAppend(&line, line.empty() ? "" : "; ", violation.field, " ", violation.description);
  }
  return line;
}

RowFacts ReadFacts(RowReader& row, absl::string_view software_column) {
  RowFacts facts;
  facts.id = std::string(row.Text("id"));
  facts.suite = std::string(row.Text("suite"));
  facts.source = std::string(row.Text("source"));
  facts.accelerator = std::string(row.Text("accelerator"));
  facts.profile = ProfileId(row.Text(software_column));
  facts.quality = std::string(row.Text("quality"));
  facts.counted = facts.quality.empty();
  const absl::string_view role = row.Text("role");
  facts.may_fit = role == "fit";
  if (!role.empty() && role != "fit" && role != "validate") {
    row.violations().Add("role", absl::StrCat("is \"", role, "\" but must be fit or validate"));
  }
  return facts;
}

std::shared_ptr<const hardware::Cluster> ReadCluster(RowReader& row, Lookups& lookups,
                                                     int64_t gpus_per_node, RowFacts* facts,
                                                     absl::string_view described) {
  if (facts->accelerator.empty()) {
    row.Missing("accelerator");
    return nullptr;
  }
  const auto& accelerator = lookups.Accelerator(facts->accelerator);
  if (!accelerator.ok()) {
    row.violations().Add("accelerator", OneLine(accelerator.status()));
    return nullptr;
  }
  std::string name(row.Text("cluster"));
  if (name.empty()) name = std::string(described);
  if (name.empty()) {
    const auto& fallback = lookups.DefaultCluster(facts->accelerator);
    if (!fallback.ok() || fallback->empty()) {
      row.Missing("cluster");
      return nullptr;
    }
    name = *fallback;
    facts->warnings.push_back(absl::StrCat("cluster not stated: ", name, " assumed"));
  }
  const auto& cluster = lookups.Cluster(name);
  if (!cluster.ok()) {
    row.violations().Add("cluster", OneLine(cluster.status()));
    return nullptr;
  }
  if (gpus_per_node <= 0) gpus_per_node = cluster->gpus_per_node;
  std::shared_ptr<const hardware::Cluster>& shared =
      lookups.clusters[absl::StrCat(name, "\n", facts->accelerator, "\n", gpus_per_node)];
  if (shared == nullptr) {
    auto copy = std::make_shared<hardware::Cluster>(*cluster);
    if (copy->accelerator.name != accelerator->name) copy->accelerator = *accelerator;
    copy->gpus_per_node = static_cast<int>(gpus_per_node);
    shared = std::move(copy);
  }
  return shared;
}

std::optional<hardware::Precision> ReadPrecision(RowReader& row, absl::string_view column) {
  const std::string text = absl::AsciiStrToLower(row.Text(column));
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" -_("), absl::SkipEmpty());
  if (words.empty()) return std::nullopt;
  const auto precision = hardware::ParsePrecision(words[0]);
  if (!precision.ok()) {
    row.violations().Add(column, OneLine(precision.status()));
    return std::nullopt;
  }
  return *precision;
}

std::string OneLine(const absl::Status& status) {
  return absl::StrReplaceAll(status.message(), {{"\n", "; "}});
}

}  // namespace sextant::calibration
