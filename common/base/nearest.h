// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_BASE_NEAREST_H_
#define SEXTANT_COMMON_BASE_NEAREST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sextant::base {

// The up to `limit` known names closest to `name` by edit distance (case-insensitive), nearest
// first, ties in the order given. O(names x length^2).
std::vector<std::string> NearestNames(absl::string_view name, const std::vector<std::string>& known,
                                      int limit = 3);

// NOT_FOUND: `unknown accelerator "h10-sxm"; did you mean "h100-sxm5-80gb"?`
absl::Status UnknownName(absl::string_view kind, absl::string_view name,
                         const std::vector<std::string>& known);

}  // namespace sextant::base

#endif  // SEXTANT_COMMON_BASE_NEAREST_H_
