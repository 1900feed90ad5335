// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit_collectives/fit_collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "calibration/fit/block_fit.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/collectives/collective_formula.h"

namespace sextant::calibration {
namespace {

using collectives::Carrier;
using collectives::CollectiveParameters;
using collectives::Family;
using parameters::ParameterDescriptor;

constexpr size_t kFabric = collectives::FabricParameters<double>::kCount;
constexpr size_t kInNetwork = collectives::InNetworkParameters<double>::kCount;
constexpr size_t kNetwork = collectives::NetworkParameters<double>::kCount;
// What one row can depend on: one fabric block, in-network reduction, the network.
constexpr size_t kAll = kFabric + kInNetwork + kNetwork;
using Values = std::array<double, kAll>;

// What a profile may set for itself: fixed costs, steps, the low-latency protocol, the host.
constexpr std::array<absl::string_view, 6> kProfileNames = {
    "base_seconds",      "step_seconds",    "fast_base_seconds",
    "fast_step_seconds", "fast_efficiency", "host_seconds"};

// A profile that improves the mean error by less than this is not worth its parameters.
constexpr double kLeastGain = 0.01;

struct Block {
  Carrier carrier;
  Family family;
  friend bool operator<(const Block& a, const Block& b) {
    return std::pair(a.carrier, a.family) < std::pair(b.carrier, b.family);
  }
};

Block BlockOf(const CollectiveFitRow& row) {
  const int64_t ranks = std::min(row.collective.ranks_per_node, row.collective.group_size);
  return {collectives::CarrierOf(row.cluster, ranks), collectives::FamilyOf(row.collective.kind)};
}

template <typename T>
T PredictedSeconds(const CollectiveFitRow& row, const Block& block, const std::array<T, kAll>& v) {
  CollectiveParameters<T> p;
  p.fabric[static_cast<size_t>(block.carrier)][static_cast<size_t>(block.family)] =
      collectives::FabricParameters<T>::FromArray(v.data());
  p.in_network = collectives::InNetworkParameters<T>::FromArray(v.data() + kFabric);
  p.network = collectives::NetworkParameters<T>::FromArray(v.data() + kFabric + kInNetwork);
  return collectives::CollectiveSeconds(row.collective, row.cluster, p).seconds;
}

// Seconds of one row as a function of the free values; the others stay fixed.
struct PredictRow {
  const CollectiveFitRow* row = nullptr;
  Block block{};
  Values fixed{};
  std::vector<size_t> free;

  template <typename T>
  bool operator()(const T* parameters, T* seconds) const {
    std::array<T, kAll> v;
    for (size_t i = 0; i < kAll; ++i) v[i] = T(fixed[i]);
    for (size_t i = 0; i < free.size(); ++i) v[free[i]] = parameters[i];
    *seconds = PredictedSeconds(*row, block, v);
    return true;
  }
};

struct WeightedRow {
  const CollectiveFitRow* row = nullptr;
  Block block{};
  Values fixed{};
  double weight = 1;
};

// Fits the values `free` of rows that share them.
class Fitter {
 public:
  Fitter(const CollectiveFitOptions& options, const std::array<ParameterDescriptor, kAll>& all)
      : options_(options), descriptors_(all) {}

  // A branch of a minimum or maximum that never binds has no derivative: the fit is tried from
  // the start given, and from one where the fastest rows are the low-latency protocol's or the
  // host's. The lowest error wins, the first of equals.
  absl::StatusOr<BlockFitResult> Fit(const std::vector<WeightedRow>& rows,
                                     const std::vector<size_t>& free) const {
    BlockFitProblem problem;
    double fastest = rows.front().row->measured_seconds;
    for (const WeightedRow& row : rows) {
      problem.rows.push_back({DifferentiatedRow<kFabric + kInNetwork>(
                                  PredictRow{row.row, row.block, row.fixed, free}, free.size()),
                              row.row->measured_seconds, row.weight});
      fastest = std::min(fastest, row.row->measured_seconds);
    }
    for (const size_t index : free) {
      problem.descriptors.push_back(descriptors_[index]);
      problem.start.push_back(std::clamp(rows.front().fixed[index], descriptors_[index].lower,
                                         descriptors_[index].upper));
    }
    const BlockFitOptions fit{.robust_scale = options_.robust_scale,
                              .prior_rows = options_.prior_rows,
                              .max_iterations = options_.max_iterations};
    SEXTANT_ASSIGN_OR_RETURN(BlockFitResult best, FitBlock(problem, fit));
    for (const absl::string_view branch : {"fast_base_seconds", "host_seconds"}) {
      for (size_t i = 0; i < free.size(); ++i) {
        if (free[i] >= kFabric || descriptors_[free[i]].name != branch) continue;
        BlockFitProblem other = problem;
        other.start[i] = std::min(0.9 * fastest, descriptors_[free[i]].upper);
        SEXTANT_ASSIGN_OR_RETURN(BlockFitResult result, FitBlock(other, fit));
        if (result.mape_percent < best.mape_percent) best = std::move(result);
      }
    }
    return best;
  }

 private:
  const CollectiveFitOptions& options_;
  const std::array<ParameterDescriptor, kAll>& descriptors_;
};

std::array<ParameterDescriptor, kAll> DescriptorsOf(const Block& block) {
  std::array<ParameterDescriptor, kAll> all;
  const auto& fabric = collectives::FabricDescriptors(block.carrier, block.family);
  std::copy(fabric.begin(), fabric.end(), all.begin());
  const auto& in_network = collectives::InNetworkDescriptors();
  std::copy(in_network.begin(), in_network.end(), all.begin() + kFabric);
  const auto& network = collectives::NetworkDescriptors();
  std::copy(network.begin(), network.end(), all.begin() + kFabric + kInNetwork);
  return all;
}

std::string KeyOf(const Block& block, size_t index) {
  const auto all = DescriptorsOf(block);
  const absl::string_view name = index < kFabric
                                     ? collectives::FabricBlock(block.carrier, block.family)
                                 : index < kFabric + kInNetwork ? collectives::kInNetworkBlock
                                                                : collectives::kNetworkBlock;
  return absl::StrCat(name, ".", all[index].name);
}

// "nccl-2.27.3": the library, as shared by all software that calls it.
bool IsLibrary(absl::string_view profile) {
  return absl::StartsWith(profile, "nccl-") && profile.size() > 5 &&
         absl::ascii_isdigit(static_cast<unsigned char>(profile[5]));
}

using RowList = std::vector<const CollectiveFitRow*>;

// Fits one accelerator, block after block.
class AcceleratorFitter {
 public:
  AcceleratorFitter(std::string name, RowList rows, const parameters::ParameterSet& initial,
                    const CollectiveFitOptions& options, CollectiveFit& fit)
      : name_(std::move(name)),
        rows_(std::move(rows)),
        initial_(initial),
        options_(options),
        fit_(fit),
        result_(fit.accelerators[name_]) {}

  absl::Status Run() {
    std::map<Block, RowList> inside;
    RowList across;
    for (const CollectiveFitRow* row : rows_) {
      if (row->collective.group_size <= 1) continue;
      if (!row->collective.SpansNodes()) {
        inside[BlockOf(*row)].push_back(row);
      } else if (row->cluster.network_stated) {
        across.push_back(row);
      } else {
        ++unstated_;
      }
    }
    for (const auto& [block, rows] : inside) SEXTANT_RETURN_IF_ERROR(FitShared(block, rows));
    for (const auto& [block, rows] : inside) SEXTANT_RETURN_IF_ERROR(FitProfiles(block, rows));
    if (!across.empty()) SEXTANT_RETURN_IF_ERROR(FitNetwork(across));
    if (unstated_ > 0) {
      fit_.notes.push_back(absl::StrCat(name_, ": ", unstated_,
                                        " rows between nodes of an unstated fabric left out"));
    }
    return absl::OkStatus();
  }

 private:
  Values Current(const CollectiveFitRow& row, const Block& block, absl::string_view profile) const {
    const auto descriptors = DescriptorsOf(block);
    const parameters::ParameterSource source = parameters::ResolveSource(
        initial_, row.cluster.accelerator.name, row.cluster.accelerator.parameter_donor);
    Values values;
    const auto own = result_.profiles.find(profile);
    for (size_t i = 0; i < kAll; ++i) {
      const std::string key = KeyOf(block, i);
      const auto shared = result_.shared.find(key);
      values[i] =
          shared != result_.shared.end()
              ? shared->second.value
              : initial_.Find(source.accelerator, profile, key).value_or(descriptors[i].initial);
      if (own == result_.profiles.end()) continue;
      const auto fitted = own->second.find(key);
      if (fitted != own->second.end()) values[i] = fitted->second.value;
    }
    return values;
  }

  // Rows with their weights: suites balanced, mean one.
  std::vector<WeightedRow> Weighted(const RowList& rows, bool profiles = false) const {
    std::map<absl::string_view, double> suites;
    for (const CollectiveFitRow* row : rows) suites[row->suite] += 1;
    std::vector<WeightedRow> weighted;
    double sum = 0;
    for (const CollectiveFitRow* row : rows) {
      WeightedRow& w = weighted.emplace_back();
      w.row = row;
      w.block = BlockOf(*row);
      w.fixed = Current(*row, w.block, profiles ? row->profile : "");
      w.weight = row->weight / std::sqrt(suites[row->suite]);
      sum += w.weight;
    }
    for (WeightedRow& w : weighted) w.weight *= static_cast<double>(weighted.size()) / sum;
    return weighted;
  }

  void Store(const Block& block, const std::vector<size_t>& free, const BlockFitResult& fitted,
             parameters::ParameterValues& values) const {
    for (size_t i = 0; i < free.size(); ++i) {
      const FittedParameter& p = fitted.shared[i];
      values[KeyOf(block, free[i])] = {p.value, p.standard_error};
    }
  }

  void AddDomain(absl::string_view block, const RowList& rows) {
    const auto range = [&](absl::string_view dimension, const auto& value) {
      parameters::DomainRange r{std::string(block), std::string(dimension), value(*rows.front()),
                                value(*rows.front())};
      for (const CollectiveFitRow* row : rows) {
        r.minimum = std::min(r.minimum, value(*row));
        r.maximum = std::max(r.maximum, value(*row));
      }
      result_.domain.push_back(r);
    };
    range("bytes", [](const CollectiveFitRow& row) { return row.collective.bytes; });
    range("group_size", [](const CollectiveFitRow& row) {
      return static_cast<double>(row.collective.group_size);
    });
  }

  absl::Status FitShared(const Block& block, const RowList& all) {
    RowList rows;
    for (const CollectiveFitRow* row : all) {
      if (IsLibrary(row->profile)) rows.push_back(row);
    }
    if (rows.empty()) rows = all;
    std::vector<size_t> free;
    bool has_steps = false;
    bool in_network = false;
    for (const CollectiveFitRow* row : rows) {
      has_steps |= row->collective.group_size > 2;
      in_network |= block.family == Family::kAllReduce &&
                    collectives::ReducesInNetwork(row->cluster, row->collective.group_size);
    }
    const auto descriptors = DescriptorsOf(block);
    for (size_t i = 0; i < kFabric + (in_network ? kInNetwork : 0); ++i) {
      const absl::string_view name = descriptors[i].name;
      // Without a host's floor in the library's own rows it stays where it was; steps show only
      // in groups of three and more.
      if (name == "host_seconds") continue;
      if (!has_steps && i < kFabric && (name == "step_seconds" || name == "fast_step_seconds")) {
        continue;
      }
      free.push_back(i);
    }
    std::vector<WeightedRow> weighted = Weighted(rows);
    SEXTANT_ASSIGN_OR_RETURN(const BlockFitResult fitted,
                             Fitter(options_, descriptors).Fit(weighted, free));
    Store(block, free, fitted, result_.shared);
    AddDomain(collectives::FabricBlock(block.carrier, block.family), rows);
    fit_.used_rows += static_cast<int>(rows.size());
    return absl::OkStatus();
  }

  absl::Status FitNetwork(const RowList& rows) {
    std::vector<size_t> free;
    for (size_t i = kFabric + kInNetwork; i < kAll; ++i) free.push_back(i);
    std::vector<WeightedRow> weighted = Weighted(rows, /*profiles=*/true);
    const Block block = weighted.front().block;
    const auto descriptors = DescriptorsOf(block);
    SEXTANT_ASSIGN_OR_RETURN(const BlockFitResult fitted,
                             Fitter(options_, descriptors).Fit(weighted, free));
    Store(block, free, fitted, result_.shared);
    AddDomain(collectives::kNetworkBlock, rows);
    fit_.used_rows += static_cast<int>(rows.size());
    return absl::OkStatus();
  }

  absl::Status FitProfiles(const Block& block, const RowList& all) {
    std::map<std::string, RowList> profiles;
    bool library = false;
    for (const CollectiveFitRow* row : all) {
      library |= IsLibrary(row->profile);
      if (!IsLibrary(row->profile) && !row->profile.empty()) profiles[row->profile].push_back(row);
    }
    if (!library) return absl::OkStatus();  // the shared values are these rows' own
    for (const auto& [profile, rows] : profiles)
      SEXTANT_RETURN_IF_ERROR(FitProfile(block, profile, rows));
    return absl::OkStatus();
  }

  absl::Status FitProfile(const Block& block, const std::string& profile, const RowList& rows) {
    if (static_cast<int>(rows.size()) < options_.min_profile_rows) {
      fit_.notes.push_back(absl::StrCat(name_, ": profile ", profile, " has ", rows.size(),
                                        " rows of ", KeyOf(block, 0), ": shared values apply"));
      return absl::OkStatus();
    }
    const auto descriptors = DescriptorsOf(block);
    std::vector<size_t> free;
    for (size_t i = 0; i < kFabric + kInNetwork; ++i) {
      const bool own = std::find(kProfileNames.begin(), kProfileNames.end(), descriptors[i].name) !=
                       kProfileNames.end();
      const bool applies =
          i < kFabric || (block.family == Family::kAllReduce &&
                          collectives::ReducesInNetwork(rows.front()->cluster,
                                                        rows.front()->cluster.gpus_per_node));
      if (own && applies) free.push_back(i);
    }
    std::vector<WeightedRow> weighted = Weighted(rows);
    const double before = MeanError(weighted, block, {}, {});
    SEXTANT_ASSIGN_OR_RETURN(const BlockFitResult fitted,
                             Fitter(options_, descriptors).Fit(weighted, free));
    const double after = MeanError(weighted, block, free, fitted.shared);
    fit_.used_rows += static_cast<int>(rows.size());
    if (before - after < std::max(before * options_.min_profile_gain, kLeastGain)) {
      fit_.notes.push_back(absl::StrCat(name_, ": profile ", profile,
                                        " gains nothing over shared values of ",
                                        collectives::FabricBlock(block.carrier, block.family)));
      return absl::OkStatus();
    }
    Store(block, free, fitted, result_.profiles[profile]);
    return absl::OkStatus();
  }

  static double MeanError(const std::vector<WeightedRow>& rows, const Block& block,
                          const std::vector<size_t>& free,
                          const std::vector<FittedParameter>& values) {
    double sum = 0;
    for (const WeightedRow& row : rows) {
      Values v = row.fixed;
      for (size_t i = 0; i < free.size(); ++i) v[free[i]] = values[i].value;
      sum += std::abs(PredictedSeconds(*row.row, block, v) / row.row->measured_seconds - 1);
    }
    return sum / static_cast<double>(rows.size());
  }

  const std::string name_;
  const RowList rows_;
  const parameters::ParameterSet& initial_;
  const CollectiveFitOptions& options_;
  CollectiveFit& fit_;
  parameters::AcceleratorParameters& result_;
  int unstated_ = 0;
};

absl::Status ValidateRows(absl::Span<const CollectiveFitRow> rows) {
  base::Violations violations;
  for (size_t i = 0; i < rows.size() && violations.items().size() < 32; ++i) {
    const CollectiveFitRow& row = rows[i];
    const std::string path = absl::StrCat("rows[", i, "].");
    const absl::Status status = collectives::ValidateCollective(row.collective, row.cluster);
    for (const base::Violation& v : base::ViolationsOf(status)) {
      violations.Add(absl::StrCat(path, v.field), v.description);
    }
    const auto positive = [&](absl::string_view field, double value) {
      if (value > 0 && std::isfinite(value)) return;
      violations.Add(absl::StrCat(path, field),
                     absl::StrCat("is ", value, " but must be positive and finite"));
    };
    positive("measured_seconds", row.measured_seconds);
    positive("weight", row.weight);
  }
  return violations.ToStatus();
}

// FNV-1a: folds are the same on every machine.
uint64_t HashOf(absl::string_view text) {
  uint64_t state = 14695981039346656037u;
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return state ^ (state >> 32);
}

std::string GroupOf(const CollectiveFitRow& row) {
  return absl::StrCat(row.suite, " ", row.cluster.accelerator.name, " ", row.profile, " ",
                      row.collective.group_size, " ",
                      collectives::CollectiveKindName(row.collective.kind));
}

double PercentError(const CollectiveFitRow& row, const parameters::ParameterSet& set) {
  const double seconds = collectives::EstimateCollective(row.collective, row.cluster,
                                                         collectives::ResolveCollectiveParameters(
                                                             set, row.cluster, row.profile))
                             .seconds;
  return 100 * std::abs(seconds / row.measured_seconds - 1);
}

}  // namespace

absl::StatusOr<CollectiveFit> FitCollectives(absl::Span<const CollectiveFitRow> rows,
                                             const parameters::ParameterSet& initial,
                                             const CollectiveFitOptions& options) {
  SEXTANT_RETURN_IF_ERROR(ValidateRows(rows));
  std::map<std::string, RowList> by_accelerator;
  for (const CollectiveFitRow& row : rows) {
    by_accelerator[row.cluster.accelerator.name].push_back(&row);
  }
  CollectiveFit fit;
  for (auto& [name, list] : by_accelerator) {
    SEXTANT_RETURN_IF_ERROR(AcceleratorFitter(name, std::move(list), initial, options, fit).Run());
  }
  return fit;
}

parameters::ParameterSet WithCollectives(const parameters::ParameterSet& base,
                                         const CollectiveFit& fit,
                                         parameters::Provenance provenance) {
  auto accelerators = base.accelerators();
  for (const auto& [name, fitted] : fit.accelerators) {
    parameters::AcceleratorParameters& target = accelerators[name];
    for (const auto& [key, value] : fitted.shared) target.shared[key] = value;
    // A profile that the fit dropped must not keep an older fit's values.
    for (auto& [profile, values] : target.profiles) {
      for (auto it = values.begin(); it != values.end();) {
        it = absl::StartsWith(it->first, "collective.") ? values.erase(it) : std::next(it);
      }
    }
    for (const auto& [profile, values] : fitted.profiles) {
      for (const auto& [key, value] : values) target.profiles[profile][key] = value;
    }
    std::set<std::string> blocks;
    for (const parameters::DomainRange& range : fitted.domain) blocks.insert(range.block);
    target.domain.erase(std::remove_if(target.domain.begin(), target.domain.end(),
                                       [&](const parameters::DomainRange& range) {
                                         return blocks.count(range.block) > 0;
                                       }),
                        target.domain.end());
    target.domain.insert(target.domain.end(), fitted.domain.begin(), fitted.domain.end());
  }
  return parameters::ParameterSet(std::move(provenance), std::move(accelerators));
}

double CollectiveMapePercent(absl::Span<const CollectiveFitRow> rows,
                             const parameters::ParameterSet& set) {
  double sum = 0;
  for (const CollectiveFitRow& row : rows) sum += PercentError(row, set);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

absl::StatusOr<HeldOutErrors> HoldOutGroups(absl::Span<const CollectiveFitRow> rows,
                                            const parameters::ParameterSet& initial, int fold_count,
                                            const CollectiveFitOptions& options) {
  HeldOutErrors result;
  std::map<std::string, std::pair<double, int>> groups;
  std::vector<double> errors;
  for (int fold = 0; fold < fold_count; ++fold) {
    std::vector<CollectiveFitRow> kept;
    std::vector<CollectiveFitRow> held;
    for (const CollectiveFitRow& row : rows) {
      const bool out =
          HashOf(GroupOf(row)) % static_cast<uint64_t>(fold_count) == static_cast<uint64_t>(fold);
      (out ? held : kept).push_back(row);
    }
    SEXTANT_ASSIGN_OR_RETURN(const CollectiveFit fit, FitCollectives(kept, initial, options));
    const parameters::ParameterSet set = WithCollectives(initial, fit, {.name = "held-out"});
    for (const CollectiveFitRow& row : held) {
      errors.push_back(PercentError(row, set));
      auto& [sum, count] = groups[GroupOf(row)];
      sum += errors.back();
      ++count;
    }
  }
  if (errors.empty()) return result;
  for (const double error : errors) result.mape_percent += error;
  result.mape_percent /= static_cast<double>(errors.size());
  std::nth_element(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2),
                   errors.end());
  result.median_percent = errors[errors.size() / 2];
  for (const auto& [group, sum] : groups) {
    result.mape_percent_by_group[group] = sum.first / sum.second;
  }
  return result;
}

}  // namespace sextant::calibration
