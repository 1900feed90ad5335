// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_READER_H_
#define SEXTANT_COMMON_WIRE_READER_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/violations.h"

namespace sextant::wire {

// Reads fields of one message into domain values and collects what cannot be read. Internal to
// this room.
class Reader {
 public:
  // The word at `field`; `fallback` where it is empty or unknown.
  template <typename Enum, typename Parse>
  Enum Word(absl::string_view field, const std::string& word, Parse parse, Enum fallback) {
    if (word.empty()) return fallback;
    absl::StatusOr<Enum> value = parse(word);
    if (value.ok()) return *value;
    violations_.Add(field, value.status().message());
    return fallback;
  }

  int Int(absl::string_view field, int64_t value) {
    if (value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max()) {
      return static_cast<int>(value);
    }
    violations_.Add(field, absl::StrCat("is ", value, " but must fit in 32 bits"));
    return 0;
  }

  double Finite(absl::string_view field, double value) {
    if (std::isfinite(value)) return value;
    violations_.Add(field, absl::StrCat("is ", value, " but must be a finite number"));
    return 0;
  }

  // The message read by `read`, its violations under "<field>."; a default value where it fails.
  template <typename T>
  T Nested(absl::string_view field, absl::StatusOr<T> value) {
    if (value.ok()) return *std::move(value);
    for (const base::Violation& v : base::ViolationsOf(value.status())) {
      violations_.Add(absl::StrCat(field, ".", v.field), v.description);
    }
    return T();
  }

  void Missing(absl::string_view field, absl::string_view way_out) {
    violations_.Add(field, absl::StrCat("is missing; ", way_out));
  }

  void Add(absl::string_view field, absl::string_view description) {
    violations_.Add(field, description);
  }

  // `value` if nothing went wrong, otherwise all violations.
  template <typename T>
  absl::StatusOr<T> Finish(T value) {
    if (violations_.empty()) return value;
    return violations_.ToStatus();
  }

 private:
  base::Violations violations_;
};

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_READER_H_
