// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/json.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool EndsScalar(char c) {
  return IsBlank(c) || c == ',' || c == ']' || c == '}' || c == ':' || c == '"' || c == '[' ||
         c == '{';
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xE0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

}  // namespace

const JsonValue* JsonValue::Find(absl::string_view name) const {
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    if (member->name == name) return &member->value;
  }
  return nullptr;
}

const JsonValue* JsonValue::FindObject(absl::string_view name) const {
  const JsonValue* value = Find(name);
  return value != nullptr && (value->kind == Kind::kObject || value->kind == Kind::kArray)
             ? value
             : nullptr;
}

std::optional<double> JsonValue::AsNumber() const {
  if (kind == Kind::kNumber) return number;
  if (kind == Kind::kString) return ParseNumber(text);
  return std::nullopt;
}

std::optional<double> JsonValue::Number(absl::string_view name) const {
  const JsonValue* value = Find(name);
  return value == nullptr ? std::nullopt : value->AsNumber();
}

absl::string_view JsonValue::Text(absl::string_view name) const {
  const JsonValue* value = Find(name);
  return value == nullptr || value->kind != Kind::kString ? absl::string_view()
                                                          : absl::string_view(value->text);
}

void JsonReader::Fail(absl::string_view what) {
  if (!error_.empty()) return;
  truncated_ = at_ >= text_.size();
  const auto lines =
      std::count(text_.begin(),
                 text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())), '\n');
  error_ = absl::StrCat("line ", lines + 1, ": ", truncated_ ? "cut off" : what);
}

void JsonReader::SkipBlanks() {
  while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
}

char JsonReader::PeekChar() {
  SkipBlanks();
  return at_ < text_.size() && ok() ? text_[at_] : '\0';
}

bool JsonReader::HasMore() {
  if (!ok()) return false;
  if (PeekChar() == ',') ++at_;
  SkipBlanks();
  return at_ < text_.size();
}

bool JsonReader::EnterObject() {
  if (PeekChar() != '{') {
    Fail("an object is expected");
    return false;
  }
  ++at_;
  first_ = true;
  return true;
}

bool JsonReader::EnterArray() {
  if (PeekChar() != '[') {
    Fail("an array is expected");
    return false;
  }
  ++at_;
  first_ = true;
  return true;
}

bool JsonReader::NextMember(std::string* key) {
  const bool first = first_;
  first_ = false;
  if (!ok()) return false;
  char c = PeekChar();
  if (c == ',' && !first) {
    ++at_;
    c = PeekChar();
  } else if (!first && c != '}') {
    Fail("',' or '}' is expected");
    return false;
  }
  if (c == '}') {
    ++at_;
    return false;
  }
  if (c != '"') {
    Fail("a quoted key is expected");
    return false;
  }
  if (!ReadString(key)) return false;
  if (PeekChar() != ':') {
    Fail("':' is expected");
    return false;
  }
  ++at_;
  return true;
}

bool JsonReader::NextElement() {
  const bool first = first_;
  first_ = false;
  if (!ok()) return false;
  char c = PeekChar();
  if (c == ',' && !first) {
    ++at_;
    c = PeekChar();
  } else if (!first && c != ']') {
    Fail("',' or ']' is expected");
    return false;
  }
  if (c == ']') {
    ++at_;
    return false;
  }
  if (at_ >= text_.size()) {
    Fail("");
    return false;
  }
  return true;
}

bool JsonReader::AppendEscape(std::string* out) {
  // at_ is behind the backslash.
  const char c = text_[at_++];
  switch (c) {
    case 'n':
      out->push_back('\n');
      return true;
    case 't':
      out->push_back('\t');
      return true;
    case 'r':
      out->push_back('\r');
      return true;
    case 'b':
    case 'f':
      out->push_back(' ');
      return true;
    case 'u': {
      uint32_t code = 0;
      if (at_ + 4 > text_.size()) {
        at_ = text_.size();
        Fail("");
        return false;
      }
      for (size_t i = 0; i < 4; ++i) {
        const auto digit = static_cast<unsigned char>(text_[at_ + i]);
        if (!absl::ascii_isxdigit(digit)) {
          Fail("\\u is followed by four hexadecimal digits");
          return false;
        }
        const int lower = absl::ascii_tolower(digit);
        code = code * 16 + static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
      }
      at_ += 4;
      AppendUtf8(code, out);  // halves of a pair stay apart: names are compared, not shown
      return true;
    }
    default:
      out->push_back(c);
      return true;
  }
}

bool JsonReader::ReadString(std::string* out) {
  if (out != nullptr) out->clear();
  ++at_;
  while (at_ < text_.size()) {
    const size_t end = text_.find_first_of("\"\\", at_);
    if (end == absl::string_view::npos) break;
    if (out != nullptr) out->append(text_.data() + at_, end - at_);
    at_ = end + 1;
    if (text_[end] == '"') return true;
    if (at_ >= text_.size()) break;
    if (out == nullptr) {
      ++at_;
    } else if (!AppendEscape(out)) {
      return false;
    }
  }
  at_ = text_.size();
  Fail("");
  return false;
}

void JsonReader::ReadScalar(JsonValue* value) {
  const size_t start = at_;
  while (at_ < text_.size() && !EndsScalar(text_[at_])) ++at_;
  const absl::string_view word = text_.substr(start, at_ - start);
  if (word == "true" || word == "false") {
    value->kind = JsonValue::Kind::kBool;
    value->boolean = word == "true";
    return;
  }
  for (absl::string_view absent :
       {"null", "NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "None"}) {
    if (word == absent) return;
  }
  double number = 0;
  if (word.empty() || word.size() > 400 ||
      (!absl::ascii_isdigit(static_cast<unsigned char>(word[0])) && word[0] != '-') ||
      !absl::SimpleAtod(word, &number)) {
    if (!word.empty()) at_ = at_ >= text_.size() ? at_ : start;
    Fail("is not a JSON value");
    return;
  }
  if (!std::isfinite(number)) return;
  value->kind = JsonValue::Kind::kNumber;
  value->number = number;
}

void JsonReader::ReadInto(JsonValue* value, int depth, size_t* elements_left,
                          size_t* members_left) {
  const char c = PeekChar();
  if (c == '"') {
    value->kind = JsonValue::Kind::kString;
    ReadString(&value->text);
  } else if (c == '{' || c == '[') {
    if (depth >= kDepthLimit) {
      Fail(absl::StrCat("is nested deeper than ", kDepthLimit));
      return;
    }
    if (c == '{') {
      value->kind = JsonValue::Kind::kObject;
      EnterObject();
      std::string key;
      while (NextMember(&key)) {
        if (*members_left == 0) {
          Fail(absl::StrCat("has more than ", kMemberLimit, " members"));
          return;
        }
        --*members_left;
        value->members.push_back({key, JsonValue()});
        ReadInto(&value->members.back().value, depth + 1, elements_left, members_left);
      }
    } else {
      value->kind = JsonValue::Kind::kArray;
      EnterArray();
      while (NextElement()) {
        ++value->item_count;
        if (*elements_left == 0) {
          Skip();
          continue;
        }
        --*elements_left;
        value->items.emplace_back();
        ReadInto(&value->items.back(), depth + 1, elements_left, members_left);
      }
    }
  } else {
    ReadScalar(value);
  }
}

JsonValue JsonReader::Read() {
  JsonValue value;
  size_t elements_left = kArrayLimit;
  size_t members_left = kMemberLimit;
  if (ok()) ReadInto(&value, 0, &elements_left, &members_left);
  return value;
}

absl::string_view JsonReader::Skip() {
  const char c = PeekChar();
  const size_t start = at_;
  if (!ok()) return {};
  if (c == '"') {
    ReadString(nullptr);
  } else if (c == '{' || c == '[') {
    size_t depth = 0;
    while (at_ < text_.size()) {
      const size_t next = text_.find_first_of("\"{}[]", at_);
      if (next == absl::string_view::npos) break;
      at_ = next;
      if (text_[next] == '"') {
        if (!ReadString(nullptr)) return {};
        continue;
      }
      ++at_;
      if (text_[next] == '{' || text_[next] == '[') {
        ++depth;
      } else if (--depth == 0) {
        return text_.substr(start, at_ - start);
      }
    }
    at_ = text_.size();
    Fail("");
    return {};
  } else {
    JsonValue ignored;
    ReadScalar(&ignored);
  }
  return ok() ? text_.substr(start, at_ - start) : absl::string_view();
}

}  // namespace sextant::ingest
