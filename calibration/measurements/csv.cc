// SPDX-License-Identifier: Apache-2.0
#include "calibration/measurements/csv.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::calibration {
namespace {

constexpr size_t kShownLines = 10;

// Reads one record at a time; `position` and `line` move along.
class RecordReader {
 public:
  explicit RecordReader(absl::string_view text) : text_(text) {}

  bool AtEnd() const { return position_ >= text_.size(); }
  int64_t line() const { return line_; }

  // False for a quote that is never closed.
  bool Next(std::vector<std::string>* fields) {
    fields->clear();
    std::string field;
    for (;;) {
      if (position_ < text_.size() && text_[position_] == '"') {
        if (!Quoted(&field)) return false;
      }
      while (position_ < text_.size() && text_[position_] != ',' && text_[position_] != '\n') {
        field.push_back(text_[position_++]);
      }
      const bool more = position_ < text_.size() && text_[position_] == ',';
      if (!more && !field.empty() && field.back() == '\r') field.pop_back();
      fields->push_back(std::move(field));
      field.clear();
      if (position_ >= text_.size()) return true;
      ++position_;
      if (!more) {
        ++line_;
        return true;
      }
    }
  }

 private:
  bool Quoted(std::string* field) {
    ++position_;
    while (position_ < text_.size()) {
      const char c = text_[position_++];
      if (c == '"') {
        if (position_ >= text_.size() || text_[position_] != '"') return true;
        ++position_;
      } else if (c == '\n') {
        ++line_;
      }
      field->push_back(c);
    }
    return false;
  }

  absl::string_view text_;
  size_t position_ = 0;
  int64_t line_ = 1;
};

}  // namespace

int CsvTable::Column(absl::string_view name) const {
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) return static_cast<int>(i);
  }
  return -1;
}

absl::StatusOr<CsvTable> ParseCsv(absl::string_view text, absl::string_view file_name) {
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  base::Violations violations;
  CsvTable table;
  RecordReader reader(text);
  std::vector<std::string> fields;
  size_t wrong_lines = 0;
  while (!reader.AtEnd()) {
    const int64_t line = reader.line();
    if (!reader.Next(&fields)) {
      violations.Add(absl::StrCat(file_name, ":", line),
                     "has a quote that is never closed; close it or double it");
      break;
    }
    if (fields.size() == 1 && absl::StripAsciiWhitespace(fields[0]).empty()) continue;
    if (table.header.empty()) {
      for (std::string& name : fields) {
        table.header.emplace_back(absl::StripAsciiWhitespace(name));
      }
      std::set<std::string> seen;
      for (const std::string& name : table.header) {
        if (!seen.insert(name).second) {
          violations.Add(absl::StrCat(file_name, ":", line),
                         absl::StrCat("names column \"", name, "\" twice"));
        }
      }
      continue;
    }
    if (fields.size() != table.header.size()) {
      if (++wrong_lines <= kShownLines) {
        violations.Add(absl::StrCat(file_name, ":", line),
                       absl::StrCat("has ", fields.size(), " fields but the header has ",
                                    table.header.size()));
      }
      continue;
    }
    table.lines.push_back(line);
    table.rows.push_back(std::move(fields));
    fields.clear();
  }
  if (wrong_lines > kShownLines) {
    violations.Add(file_name, absl::StrCat("has ", wrong_lines - kShownLines,
                                           " more lines with a wrong number of fields"));
  }
  if (table.header.empty()) violations.Add(file_name, "is empty; a header line is needed");
  if (!violations.empty()) return violations.ToStatus();
  return table;
}

}  // namespace sextant::calibration
