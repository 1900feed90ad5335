// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/refusals.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace sextant::ingest {
namespace {

constexpr absl::string_view kFurtherReasons = "other reasons";

// What a terminal and a JSON string can show: one line of printable ASCII.
std::string Shown(absl::string_view text) {
  std::string shown;
  for (const char c : absl::StripAsciiWhitespace(text).substr(0, Refusals::kExampleLength)) {
    shown.push_back(absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?');
  }
  return shown;
}

}  // namespace

void Refusals::Add(absl::string_view reason, int64_t line, absl::string_view example) {
  for (Refusal& known : items_) {
    if (known.reason == reason) {
      ++known.count;
      return;
    }
  }
  Add(Refusal{std::string(reason), 1, line, Shown(example)});
}

void Refusals::Append(const Refusals& other) {
  for (const Refusal& refusal : other.items_) Add(refusal);
}

void Refusals::Add(const Refusal& refusal) {
  Refusal* room = nullptr;
  for (Refusal& known : items_) {
    if (known.reason == refusal.reason) room = &known;
  }
  if (room == nullptr && items_.size() >= kReasonLimit) {
    room = &items_.back();
    room->reason = std::string(kFurtherReasons);
  }
  if (room != nullptr) {
    room->count += refusal.count;
  } else {
    items_.push_back(refusal);
  }
}

int64_t Refusals::Count(absl::string_view reason) const {
  for (const Refusal& refusal : items_) {
    if (refusal.reason == reason) return refusal.count;
  }
  return 0;
}

std::string ToString(const Refusal& refusal) {
  std::string text;
  if (refusal.first_line > 0) absl::StrAppend(&text, "line ", refusal.first_line, ": ");
  absl::StrAppend(&text, refusal.reason);
  if (refusal.count > 1) {
    absl::StrAppend(&text, " (", refusal.count, " items",
                    refusal.example.empty() ? "" : ", first: ", refusal.example, ")");
  } else if (!refusal.example.empty()) {
    absl::StrAppend(&text, " (", refusal.example, ")");
  }
  return text;
}

}  // namespace sextant::ingest
