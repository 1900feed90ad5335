// SPDX-License-Identifier: Apache-2.0
#include "common/parameters/parameter_set.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/violations.h"

namespace sextant::parameters {
namespace {

// FNV-1a, 64 bits: a fingerprint that is the same on every machine (absl::Hash is salted).
class Fingerprint {
 public:
  void Add(absl::string_view text) {
    for (const char c : text) {
      state_ = (state_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    state_ = (state_ ^ 0xffu) * 1099511628211u;  // ends each text: ("ab","c") is not ("a","bc")
  }
  void Add(double value) { Add(absl::StrFormat("%.17g", value)); }
  void Add(const ParameterValues& values) {
    for (const auto& [key, value] : values) {
      Add(key);
      Add(value.value);
      if (value.standard_error.has_value()) Add(*value.standard_error);
    }
  }
  std::string Hex() const { return absl::StrFormat("%016x", state_); }

 private:
  uint64_t state_ = 14695981039346656037u;
};

std::string VersionOf(const Provenance& provenance,
                      const std::map<std::string, AcceleratorParameters, std::less<>>& all) {
  Fingerprint fingerprint;
  for (const std::string& parent : provenance.parents) fingerprint.Add(parent);
  for (const auto& [accelerator, parameters] : all) {
    fingerprint.Add(accelerator);
    fingerprint.Add(parameters.shared);
    for (const auto& [profile, values] : parameters.profiles) {
      fingerprint.Add(profile);
      fingerprint.Add(values);
    }
    for (const DomainRange& range : parameters.domain) {
      fingerprint.Add(range.block);
      fingerprint.Add(range.dimension);
      fingerprint.Add(range.minimum);
      fingerprint.Add(range.maximum);
    }
    for (const MeasuredBlock& measured : parameters.measured) {
      fingerprint.Add(measured.block);
      fingerprint.Add(measured.accelerator);
      fingerprint.Add(static_cast<double>(measured.row_count));
    }
  }
  return fingerprint.Hex();
}

}  // namespace

ParameterSet::ParameterSet(Provenance provenance,
                           std::map<std::string, AcceleratorParameters, std::less<>> accelerators)
    : provenance_(std::move(provenance)),
      accelerators_(std::move(accelerators)),
      version_(VersionOf(provenance_, accelerators_)) {}

std::optional<double> ParameterSet::Find(absl::string_view accelerator, absl::string_view profile,
                                         absl::string_view key) const {
  const auto found = accelerators_.find(accelerator);
  if (found == accelerators_.end()) return std::nullopt;
  const AcceleratorParameters& parameters = found->second;
  const auto in_profile = [&](absl::string_view name) -> std::optional<double> {
    const auto p = parameters.profiles.find(name);
    if (p == parameters.profiles.end()) return std::nullopt;
    const auto value = p->second.find(key);
    return value == p->second.end() ? std::nullopt : std::optional<double>(value->second.value);
  };
  if (!profile.empty()) {
    if (const auto value = in_profile(profile)) return value;
    if (const auto value = in_profile(ProfileFamily(profile))) return value;
  }
  if (const auto value = parameters.shared.find(key); value != parameters.shared.end()) {
    return value->second.value;
  }
  return std::nullopt;
}

bool ParameterSet::HasAccelerator(absl::string_view accelerator) const {
  return accelerators_.find(accelerator) != accelerators_.end();
}

std::string ProfileFamily(absl::string_view profile) {
  size_t end = profile.size();
  for (size_t i = 0; i + 1 < profile.size(); ++i) {
    if (profile[i] == '-' && absl::ascii_isdigit(static_cast<unsigned char>(profile[i + 1]))) {
      end = i;
      break;
    }
  }
  return absl::StrCat(profile.substr(0, end), "-*");
}

bool ParameterSet::HasProfile(absl::string_view accelerator, absl::string_view profile) const {
  const auto found = accelerators_.find(accelerator);
  return found != accelerators_.end() &&
         found->second.profiles.find(profile) != found->second.profiles.end();
}

std::vector<std::string> ParameterSet::Profiles(absl::string_view accelerator) const {
  std::vector<std::string> names;
  const auto found = accelerators_.find(accelerator);
  if (found == accelerators_.end()) return names;
  for (const auto& [name, values] : found->second.profiles) names.push_back(name);
  return names;
}

ParameterSource ResolveSource(const ParameterSet& set, absl::string_view accelerator,
                              absl::string_view donor) {
  if (set.HasAccelerator(accelerator)) return {std::string(accelerator), false};
  if (set.HasAccelerator(donor)) return {std::string(donor), true};
  return {std::string(accelerator), true};
}

bool IsMeasured(const ParameterSet& set, const ParameterSource& source, absl::string_view block,
                absl::string_view accelerator) {
  const auto found = set.accelerators().find(source.accelerator);
  return found != set.accelerators().end() &&
         std::any_of(found->second.measured.begin(), found->second.measured.end(),
                     [&](const MeasuredBlock& measured) {
                       return measured.block == block && measured.accelerator == accelerator;
                     });
}

std::vector<double> BlockValues(const ParameterSet& set, const ParameterSource& source,
                                absl::string_view profile, absl::string_view block,
                                const ParameterDescriptor* descriptors, int descriptor_count) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(descriptor_count));
  for (int i = 0; i < descriptor_count; ++i) {
    const std::optional<double> found =
        set.Find(source.accelerator, profile, absl::StrCat(block, ".", descriptors[i].name));
    values.push_back(found.value_or(descriptors[i].initial));
  }
  return values;
}

absl::Status ValidateParameterSet(const ParameterSet& set,
                                  const std::vector<KeyedDescriptor>& descriptors) {
  std::map<absl::string_view, const ParameterDescriptor*> known;
  for (const KeyedDescriptor& keyed : descriptors) known[keyed.key] = &keyed.descriptor;
  base::Violations violations;
  const auto check = [&](absl::string_view path, const ParameterValues& values) {
    for (const auto& [key, value] : values) {
      const std::string field = absl::StrCat(path, ".", key);
      const auto found = known.find(key);
      if (found == known.end()) {
        violations.Add(field, "is not a parameter of this version of the model");
        continue;
      }
      const ParameterDescriptor& d = *found->second;
      if (!(value.value >= d.lower && value.value <= d.upper)) {
        violations.Add(field, absl::StrCat("is ", value.value, " but must be between ", d.lower,
                                           " and ", d.upper, " (", d.meaning, ")"));
      }
    }
  };
  for (const auto& [name, parameters] : set.accelerators()) {
    check(absl::StrCat("accelerators.", name, ".shared"), parameters.shared);
    for (const auto& [profile, values] : parameters.profiles) {
      check(absl::StrCat("accelerators.", name, ".profiles.", profile), values);
    }
  }
  return violations.ToStatus();
}

}  // namespace sextant::parameters
