// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace sextant::cli {
namespace {

size_t CodePointCount(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void AppendLine(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                const std::vector<size_t>& widths, int indent, std::string* text) {
  std::string line(static_cast<size_t>(indent), ' ');
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string padding(widths[i] - CodePointCount(cells[i]), ' ');
    if (i > 0) line += "  ";
    line += columns[i].align == Align::kRight ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(text, line, "\n");
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::ToText(int indent) const {
  std::vector<size_t> widths;
  std::vector<std::string> headers;
  bool any_header = false;
  for (const Column& column : columns_) {
    headers.push_back(column.header);
    widths.push_back(CodePointCount(column.header));
    any_header |= !column.header.empty();
  }
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], CodePointCount(row[i]));
  }
  std::string text;
  if (any_header) {
    AppendLine(headers, columns_, widths, indent, &text);
    std::vector<std::string> rule;
    for (const size_t width : widths) rule.emplace_back(width, '-');
    AppendLine(rule, columns_, widths, indent, &text);
  }
  for (const auto& row : rows_) AppendLine(row, columns_, widths, indent, &text);
  return text;
}

std::string Printable(absl::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return printable;
}

std::string CsvField(absl::string_view field) {
  if (field.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(field);
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

}  // namespace sextant::cli
