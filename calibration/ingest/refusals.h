// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_REFUSALS_H_
#define SEXTANT_CALIBRATION_INGEST_REFUSALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sextant::ingest {

// Items of a file that cannot be measurements, for one reason.
struct Refusal {
  std::string reason;      // "moves no bytes", "one rank: nothing was communicated"
  int64_t count = 0;       // items refused for it
  int64_t first_line = 0;  // where the first one stands, from 1; 0: not a matter of one line
  std::string example;     // the first item, cut to kExampleLength
};

// Collects what a reader leaves out. Equal reasons are merged and their number is bounded, so that
// a hostile file cannot make it grow. Thread-compatible.
class Refusals {
 public:
  static constexpr size_t kExampleLength = 120;
  static constexpr size_t kReasonLimit = 64;

  void Add(absl::string_view reason, int64_t line = 0, absl::string_view example = "");
  void Append(const Refusals& other);

  const std::vector<Refusal>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  // How many items were refused for exactly this reason.
  int64_t Count(absl::string_view reason) const;

 private:
  void Add(const Refusal& refusal);

  std::vector<Refusal> items_;
};

// "line 14: moves no bytes (2 items, first: 0 0 float sum)".
std::string ToString(const Refusal& refusal);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_REFUSALS_H_
