// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_BASE_VIOLATIONS_H_
#define SEXTANT_COMMON_BASE_VIOLATIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sextant::base {

// One rule that an input breaks: where (dotted field path), and what in one sentence that names
// the value, the rule and a way out ("is 3 but must divide attention_head_count 32; use 1, 2, 4").
struct Violation {
  std::string field;
  std::string description;

  friend bool operator==(const Violation&, const Violation&) = default;
};

// Collects every violation of an input, so that a user sees all of them at once.
//
//   Violations violations;
//   if (count < 1) violations.Add("gpu_count", absl::StrCat("is ", count, " but must be >= 1"));
//   return violations.ToStatus();
//
// Thread-compatible.
class Violations {
 public:
  void Add(absl::string_view field, absl::string_view description);
  // Adds all violations carried by `status`; a status that carries none is added as one violation
  // of `field` with its message.
  void AddStatus(absl::string_view field, const absl::Status& status);

  // True, and silent, where value >= minimum (NaN fails); else adds a violation.
  template <typename T>
  bool RequireAtLeast(absl::string_view field, T value, T minimum) {
    if (value >= minimum) return true;
    Add(field, absl::StrCat("is ", value, " but must be at least ", minimum));
    return false;
  }

  bool empty() const { return items_.empty(); }
  const std::vector<Violation>& items() const { return items_; }

  // OK when empty; otherwise `code` with all violations in the message, one per line
  // ("field: description"), and as a payload that ViolationsOf reads back.
  absl::Status ToStatus(absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;

 private:
  std::vector<Violation> items_;
};

// The violations carried by a status made by Violations::ToStatus; empty for any other status.
std::vector<Violation> ViolationsOf(const absl::Status& status);

}  // namespace sextant::base

#endif  // SEXTANT_COMMON_BASE_VIOLATIONS_H_
