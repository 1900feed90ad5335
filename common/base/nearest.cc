// SPDX-License-Identifier: Apache-2.0
#include "common/base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sextant::base {
namespace {

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearestNames(absl::string_view name, const std::vector<std::string>& known,
                                      int limit) {
  // A name is user input: bound the quadratic work.
  const std::string wanted = absl::AsciiStrToLower(name.substr(0, 128));
  std::vector<std::pair<int, size_t>> order;
  for (size_t i = 0; i < known.size(); ++i) {
    const std::string candidate = absl::AsciiStrToLower(known[i]);
    int distance = EditDistance(wanted, candidate);
    // "h100" is meant as "h100-sxm5-80gb", far as that is in edits.
    if (!wanted.empty() && candidate.find(wanted) != std::string::npos) distance = 0;
    order.emplace_back(distance, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> nearest;
  for (const auto& [distance, index] : order) {
    if (static_cast<int>(nearest.size()) == limit) break;
    nearest.push_back(known[index]);
  }
  return nearest;
}

absl::Status UnknownName(absl::string_view kind, absl::string_view name,
                         const std::vector<std::string>& known) {
  const std::vector<std::string> nearest = NearestNames(name, known);
  const std::string hint =
      nearest.empty() ? std::string("; none is known")
                      : absl::StrCat("; did you mean \"", absl::StrJoin(nearest, "\", \""), "\"?");
  return absl::NotFoundError(
      absl::StrCat("unknown ", kind, " \"", name.substr(0, 128), "\"", hint));
}

}  // namespace sextant::base
