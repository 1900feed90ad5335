// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_RUNTIME_NESTED_H_
#define SEXTANT_SERVICES_RUNTIME_NESTED_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/violations.h"

namespace sextant::runtime {

// Adds what `status` says of the part of a request at `path`: its violations under "path.", or its
// message as a violation of `path` itself.
inline void AddNested(base::Violations& violations, absl::string_view path,
                      const absl::Status& status) {
  const auto items = base::ViolationsOf(status);
  if (items.empty()) violations.AddStatus(path, status);
  for (const base::Violation& item : items) {
    violations.Add(item.field.empty() ? std::string(path) : absl::StrCat(path, ".", item.field),
                   item.description);
  }
}

}  // namespace sextant::runtime

#endif  // SEXTANT_SERVICES_RUNTIME_NESTED_H_
