// SPDX-License-Identifier: Apache-2.0
#include "common/base/violations.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace sextant::base {
namespace {

constexpr char kPayloadUrl[] = "type.sextant/violations";
// Separators that no field path and no sentence contains.
constexpr char kFieldEnd = '\x1f';
constexpr char kItemEnd = '\x1e';

}  // namespace

void Violations::Add(absl::string_view field, absl::string_view description) {
  items_.push_back({std::string(field), std::string(description)});
}

void Violations::AddStatus(absl::string_view field, const absl::Status& status) {
  if (status.ok()) return;
  const std::vector<Violation> carried = ViolationsOf(status);
  if (carried.empty()) Add(field, status.message());
  items_.insert(items_.end(), carried.begin(), carried.end());
}

absl::Status Violations::ToStatus(absl::StatusCode code) const {
  if (items_.empty()) return absl::OkStatus();
  std::string payload;
  for (const Violation& item : items_) {
    absl::StrAppend(&payload, item.field, std::string(1, kFieldEnd), item.description,
                    std::string(1, kItemEnd));
  }
  absl::Status status(
      code, absl::StrJoin(items_, "\n", [](std::string* out, const Violation& item) {
        absl::StrAppend(out, item.field, item.field.empty() ? "" : ": ", item.description);
      }));
  status.SetPayload(kPayloadUrl, absl::Cord(payload));
  return status;
}

std::vector<Violation> ViolationsOf(const absl::Status& status) {
  std::vector<Violation> items;
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return items;
  const std::string text(*payload);
  for (absl::string_view item : absl::StrSplit(text, kItemEnd, absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(item, absl::MaxSplits(kFieldEnd, 1));
    items.push_back({parts[0], parts.size() > 1 ? parts[1] : ""});
  }
  return items;
}

}  // namespace sextant::base
