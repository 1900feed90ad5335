// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_ROW_BUILDER_H_
#define SEXTANT_CALIBRATION_INGEST_ROW_BUILDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibration/ingest/measured_rows.h"
#include "calibration/ingest/origin.h"

namespace sextant::ingest {

// FNV-1a, 64 bits: the same on every machine and in every run.
class RowFingerprint {
 public:
  void Add(absl::string_view text);
  void Add(double value);
  std::string Hex() const;  // 16 digits

 private:
  uint64_t state_ = 14695981039346656037u;
};

// One row in the making: what the file says against what the context says. Thread-compatible.
class RowBuilder {
 public:
  RowBuilder(RowKind kind, const IngestContext& context);

  // Sets suite, role, source, accelerator and cluster; a lacking accelerator is a gap.
  void SetOrigin(const Origin& origin);
  void Set(absl::string_view column, absl::string_view value);  // empty: unknown
  void Set(absl::string_view column, double value);
  void Set(absl::string_view column, std::optional<double> value);
  // What both say must agree; 1 and absent do where `one_is_default`.
  void Merge(absl::string_view column, std::optional<int64_t> of_file,
             std::optional<int64_t> of_context);
  void Merge(absl::string_view column, absl::string_view of_file, absl::string_view of_context);
  // A gap where the column is not set; `remedy` names the way out.
  void Require(absl::string_view column, absl::string_view remedy);
  void AddGap(absl::string_view gap) { gaps_.emplace_back(gap); }
  void Note(absl::string_view note);
  bool Has(absl::string_view column) const;

  // The row, or nothing with the reason in `refusals`.
  std::optional<MeasuredRow> Finish(const std::string& id, Refusals* refusals);

 private:
  const IngestContext& context_;
  MeasuredRow row_;
  std::string notes_;
  std::vector<std::string> gaps_;
};

// Shortest decimal that reads back as the same number.
std::string NumberText(double value);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_ROW_BUILDER_H_
