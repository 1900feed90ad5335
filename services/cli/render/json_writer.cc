// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/json_writer.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "services/cli/render/number.h"

namespace sextant::cli {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`; 0 where there is none.
// Overlong forms, surrogates and code points above U+10FFFF are not well-formed (RFC 3629).
size_t Utf8SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) >= 0xA0) ||
      (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90)) {
    return 0;
  }
  return length;
}

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const char c = text[0];
    if (length == 0) {
      quoted += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += absl::StrFormat("\\u%04x", static_cast<unsigned>(c));
    } else {
      quoted.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + "\"";
}

}  // namespace

void JsonWriter::NewLine() {
  if (line_depth_ > 0) return;
  text_ += '\n';
  text_.append(2 * has_items_.size(), ' ');
}

void JsonWriter::StartValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) text_ += line_depth_ > 0 ? ", " : ",";
  has_items_.back() = true;
  NewLine();
}

void JsonWriter::Open(char bracket) {
  StartValue();
  text_ += bracket;
  has_items_.push_back(false);
}

void JsonWriter::BeginLineObject() {
  Open('{');
  if (line_depth_ == 0) line_depth_ = has_items_.size();
}

void JsonWriter::Close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) NewLine();
  text_ += bracket;
  if (line_depth_ > has_items_.size()) line_depth_ = 0;
}

void JsonWriter::Raw(absl::string_view text) {
  StartValue();
  text_.append(text.data(), text.size());
}

void JsonWriter::Key(absl::string_view key) {
  StartValue();
  text_ += Quoted(key);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::Value(absl::string_view text) { Raw(Quoted(text)); }

void JsonWriter::Value(double number) {
  std::isfinite(number) ? Raw(ShortestNumber(number)) : Null();
}

std::string JsonWriter::Finish() {
  text_ += '\n';
  return std::exchange(text_, std::string());
}

}  // namespace sextant::cli
