// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_PARAMETERS_PARAMETER_SET_H_
#define SEXTANT_COMMON_PARAMETERS_PARAMETER_SET_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/parameters/parameter_descriptor.h"

namespace sextant::parameters {

// A fitted number and how well the data pin it down.
struct ParameterValue {
  double value = 0;
  std::optional<double> standard_error;  // absent where no covariance was computed

  friend bool operator==(const ParameterValue&, const ParameterValue&) = default;
};

// Key -> value; keys as in KeyedDescriptor.
using ParameterValues = std::map<std::string, ParameterValue, std::less<>>;

// Range of one dimension over the rows a block was fitted on, for example
// {"gemm.16bit", "m", 1, 65536}. An answer outside is given and marked as extrapolated.
struct DomainRange {
  std::string block;
  std::string dimension;
  double minimum = 0;
  double maximum = 0;

  friend bool operator==(const DomainRange&, const DomainRange&) = default;
};

// Rows that a block was fitted on, by the accelerator they were measured on: a sibling without
// parameters of its own that took part was measured, one that did not is extrapolated to.
struct MeasuredBlock {
  std::string block;
  std::string accelerator;
  int64_t row_count = 0;

  friend bool operator==(const MeasuredBlock&, const MeasuredBlock&) = default;
};

// Fitted parameters of one accelerator: `shared` holds for every software stack; a profile (kernel
// library, training framework, serving engine) overrides few.
struct AcceleratorParameters {
  ParameterValues shared;
  std::map<std::string, ParameterValues, std::less<>> profiles;
  std::vector<DomainRange> domain;
  std::vector<MeasuredBlock> measured;

  friend bool operator==(const AcceleratorParameters&, const AcceleratorParameters&) = default;
};

// What the parameters of a set came from.
struct Provenance {
  std::string name;                       // "default", or what the fit was called
  std::vector<std::string> parents;       // versions of the sets it was fitted from
  std::vector<std::string> measurements;  // sources or files, with row counts

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

// An immutable, versioned set of fitted parameters for one or more accelerators. The version is a
// hash of the content, so that equal numbers have equal versions. Thread-safe once constructed.
class ParameterSet {
 public:
  // The set without fitted values: every lookup falls to the descriptor's initial value.
  ParameterSet() : ParameterSet(Provenance{.name = "uncalibrated"}, {}) {}
  ParameterSet(Provenance provenance,
               std::map<std::string, AcceleratorParameters, std::less<>> accelerators);

  const std::string& version() const { return version_; }  // 16 hex digits
  const Provenance& provenance() const { return provenance_; }
  const std::map<std::string, AcceleratorParameters, std::less<>>& accelerators() const {
    return accelerators_;
  }

  // Value of `key` for (accelerator, profile): the profile's override, else that of its family,
  // else the shared value, else nothing. An empty or unknown profile means shared. O(log n).
  std::optional<double> Find(absl::string_view accelerator, absl::string_view profile,
                             absl::string_view key) const;

  bool HasAccelerator(absl::string_view accelerator) const;
  bool HasProfile(absl::string_view accelerator, absl::string_view profile) const;
  // Names of all profiles of the accelerator, sorted.
  std::vector<std::string> Profiles(absl::string_view accelerator) const;

 private:
  Provenance provenance_;
  std::map<std::string, AcceleratorParameters, std::less<>> accelerators_;
  std::string version_;
};

// What holds for every version of a software: "sglang-0.5.1" -> "sglang-*"; without a version, of
// the name itself.
std::string ProfileFamily(absl::string_view profile);

// Where a lookup for an accelerator lands: itself where it was fitted, else its donor, else
// nowhere (then initial values apply). `transferred` is true unless it is itself.
struct ParameterSource {
  std::string accelerator;
  bool transferred = false;
};
ParameterSource ResolveSource(const ParameterSet& set, absl::string_view accelerator,
                              absl::string_view donor);

// Whether rows of `accelerator` took part in the fit of `block` that `source` has.
bool IsMeasured(const ParameterSet& set, const ParameterSource& source, absl::string_view block,
                absl::string_view accelerator);

// Values of one block ("gemm.16bit") in descriptor order, initial where the set has none.
std::vector<double> BlockValues(const ParameterSet& set, const ParameterSource& source,
                                absl::string_view profile, absl::string_view block,
                                const ParameterDescriptor* descriptors, int descriptor_count);

// Every value that is unknown, not finite, or outside its descriptor's bounds, by the path
// "accelerators.<name>.shared.<key>" or "accelerators.<name>.profiles.<profile>.<key>".
absl::Status ValidateParameterSet(const ParameterSet& set,
                                  const std::vector<KeyedDescriptor>& descriptors);

}  // namespace sextant::parameters

#endif  // SEXTANT_COMMON_PARAMETERS_PARAMETER_SET_H_
