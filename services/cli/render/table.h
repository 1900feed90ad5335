// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_TABLE_H_
#define SEXTANT_SERVICES_CLI_RENDER_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sextant::cli {

enum class Align { kLeft, kRight };
struct Column {
  std::string header;
  Align align = Align::kLeft;
};

// Text in aligned columns, two spaces apart, no trailing blanks. Widths count code points, not
// bytes; control characters in cells are shown as '?', so that a file cannot drive the terminal.
// Thread-compatible.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column; missing ones are empty.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Headers (unless all are empty), a rule under them, and the rows, each line after `indent`
  // blanks. The columns from the left are padded; nothing is wrapped.
  std::string ToText(int indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` with control characters replaced by '?'.
std::string Printable(absl::string_view text);

// `field` as RFC 4180 writes it: quoted where it holds a comma, a quote or a line break.
std::string CsvField(absl::string_view field);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_TABLE_H_
