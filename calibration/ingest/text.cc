// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace sextant::ingest {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// Where the escape sequence that starts at `at` ends.
size_t EscapeEnd(absl::string_view line, size_t at) {
  size_t end = at + 1;
  if (end >= line.size()) return end;
  if (line[end] == ']') {  // OSC, up to BEL or ESC
    while (end < line.size() && line[end] != '\a' && line[end] != '\x1b') ++end;
    return std::min(end + 1, line.size());
  }
  if (line[end] != '[') return end + 1;
  ++end;
  while (end < line.size() && (IsDigit(line[end]) || line[end] == ';' || line[end] == '?')) ++end;
  return std::min(end + 1, line.size());
}

// "[1,0]<stdout>:" and "3: ", once each.
absl::string_view WithoutRankLabel(absl::string_view line) {
  for (absl::string_view stream : {"<stdout>:", "<stderr>:"}) {
    const size_t at = line.substr(0, 40).find(stream);
    if (at != absl::string_view::npos && absl::StartsWith(line, "[")) {
      line.remove_prefix(at + stream.size());
      return line;
    }
  }
  size_t digits = 0;
  while (digits < line.size() && digits < 6 && IsDigit(line[digits])) ++digits;
  if (digits > 0 && line.substr(digits, 2) == ": ") line.remove_prefix(digits + 2);
  return line;
}

// Digits and separators without the separators; empty where the groups are not of three.
std::string WithoutSeparators(absl::string_view text) {
  const size_t point = std::min(text.find_first_of(".eE"), text.size());
  std::string digits;
  size_t group = 0;
  bool separated = false;
  for (size_t i = 0; i < point; ++i) {
    if (text[i] == ',') {
      if (group == 0 || group > 3 || (separated && group != 3)) return "";
      separated = true;
      group = 0;
      continue;
    }
    if (IsDigit(text[i])) ++group;
    digits.push_back(text[i]);
  }
  if (separated && group != 3) return "";
  digits.append(text.data() + point, text.size() - point);
  return digits;
}

bool ReadDigits(absl::string_view line, size_t at, size_t count, int* value) {
  if (at + count > line.size()) return false;
  *value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (!IsDigit(line[i])) return false;
    *value = *value * 10 + (line[i] - '0');
  }
  return true;
}

// " hh:mm:ss" at `at`.
bool ReadClock(absl::string_view line, size_t at, int* h, int* m, int* s) {
  return at < line.size() && (line[at] == ' ' || line[at] == 'T') &&
         ReadDigits(line, at + 1, 2, h) && ReadDigits(line, at + 4, 2, m) &&
         ReadDigits(line, at + 7, 2, s) && line[at + 3] == ':' && line[at + 6] == ':' && *h < 24 &&
         *m < 60 && *s < 61;
}

}  // namespace

LineReader::LineReader(absl::string_view text) : rest_(text) {
  if (absl::StartsWith(rest_, "\xEF\xBB\xBF")) rest_.remove_prefix(3);
}

bool LineReader::Next() {
  if (rest_.empty()) return false;
  if (!in_line_) ++number_;
  const size_t end = std::min(rest_.find_first_of("\r\n"), rest_.size());
  const absl::string_view piece = rest_.substr(0, std::min(end, kLineLimit));
  in_line_ = end < rest_.size() && rest_[end] == '\r';
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (in_line_ && absl::StartsWith(rest_, "\n")) {
    rest_.remove_prefix(1);
    in_line_ = false;
  }
  line_ = WithoutEscapes(piece);
  const absl::string_view bare = WithoutRankLabel(line_);
  if (bare.size() != line_.size()) line_ = std::string(bare);
  return true;
}

std::string WithoutEscapes(absl::string_view line) {
  std::string clean;
  clean.reserve(line.size());
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '\x1b') {
      i = EscapeEnd(line, i);
      continue;
    }
    const auto c = static_cast<unsigned char>(line[i++]);
    if (c >= 0x20 || c == '\t') clean.push_back(static_cast<char>(c));
  }
  return clean;
}

std::vector<absl::string_view> Words(absl::string_view line, size_t limit) {
  std::vector<absl::string_view> words;
  size_t at = 0;
  while (words.size() < limit) {
    at = line.find_first_not_of(" \t", at);
    if (at == absl::string_view::npos) break;
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> ParseNumber(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  // Longer than any number that a program prints.
  if (text.empty() || text.size() > 64) return std::nullopt;
  // Keeps "inf", "nan" and hexadecimal numbers out.
  if (text.find_first_not_of("0123456789.,eE+-") != absl::string_view::npos) return std::nullopt;
  const std::string digits = WithoutSeparators(text);
  double value = 0;
  if (digits.empty() || !absl::SimpleAtod(digits, &value) || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParseSuffixedNumber(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return std::nullopt;
  double scale = 1;
  switch (text.back()) {
    case 'K':
    case 'k':
      scale = 1e3;
      break;
    case 'M':
      scale = 1e6;
      break;
    case 'G':
    case 'B':
      scale = 1e9;
      break;
    case 'T':
      scale = 1e12;
      break;
    default:
      return ParseNumber(text);
  }
  const auto value = ParseNumber(text.substr(0, text.size() - 1));
  if (!value || !std::isfinite(*value * scale)) return std::nullopt;
  return *value * scale;
}

std::optional<int64_t> ParseCount(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text.size() > 32) return std::nullopt;
  for (const char c : text) {
    if (!IsDigit(c) && c != ',') return std::nullopt;
  }
  const std::string digits = WithoutSeparators(text);
  int64_t value = 0;
  if (digits.empty() || !absl::SimpleAtoi(digits, &value)) return std::nullopt;
  return value;
}

std::optional<double> LeadingNumber(absl::string_view text, absl::string_view* rest) {
  text = absl::StripLeadingAsciiWhitespace(text);
  size_t end = 0;
  while (end < text.size() && end < 64) {
    const char c = text[end];
    const bool sign =
        (c == '-' || c == '+') && (end == 0 || text[end - 1] == 'e' || text[end - 1] == 'E');
    // An 'e' is an exponent only where digits follow: "12 each" is 12.
    const bool exponent =
        (c == 'e' || c == 'E') && end > 0 && end + 1 < text.size() &&
        (IsDigit(text[end + 1]) ||
         (end + 2 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+') &&
          IsDigit(text[end + 2])));
    const bool separator = c == ',' && end + 1 < text.size() && IsDigit(text[end + 1]);
    if (!IsDigit(c) && c != '.' && !sign && !exponent && !separator) break;
    ++end;
  }
  if (rest != nullptr) *rest = text.substr(end);
  return ParseNumber(text.substr(0, end));
}

std::optional<double> SecondsPerUnit(absl::string_view unit) {
  const std::string word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(unit));
  if (word == "s" || word == "sec" || word == "secs" || word == "second" || word == "seconds") {
    return 1.0;
  }
  if (word == "ms" || word == "msec" || word == "millisecond" || word == "milliseconds") {
    return 1e-3;
  }
  if (word == "us" || word == "usec" || word == "microsecond" || word == "microseconds") {
    return 1e-6;
  }
  if (word == "ns" || word == "nsec" || word == "nanosecond" || word == "nanoseconds") return 1e-9;
  return std::nullopt;
}

std::string FindTimeStamp(absl::string_view line) {
  // Stamps stand near the start of a line; the bound keeps a hostile line cheap.
  line = line.substr(0, 256);
  for (size_t at = 0; at + 19 <= line.size(); ++at) {
    int year = 0;
    int month = 0;
    int day = 0;
    int h = 0;
    int m = 0;
    int s = 0;
    const bool iso = ReadDigits(line, at, 4, &year) && line[at + 4] == '-' &&
                     ReadDigits(line, at + 5, 2, &month) && line[at + 7] == '-' &&
                     ReadDigits(line, at + 8, 2, &day);
    const bool slashes = !iso && ReadDigits(line, at, 2, &month) && line[at + 2] == '/' &&
                         ReadDigits(line, at + 3, 2, &day) && line[at + 5] == '/' &&
                         ReadDigits(line, at + 6, 4, &year);
    if (!iso && !slashes) continue;
    if (year < 2000 || year > 2100 || month < 1 || month > 12 || day < 1 || day > 31) continue;
    if (!ReadClock(line, at + 10, &h, &m, &s)) continue;
    return absl::StrFormat("%04d-%02d-%02d %02d:%02d:%02d", year, month, day, h, m, s);
  }
  return "";
}

std::string TimeStampOf(double unix_seconds) {
  // 2000-01-01 to 2100-01-01.
  if (!(unix_seconds >= 946684800.0 && unix_seconds < 4102444800.0)) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S",
                          absl::FromUnixSeconds(static_cast<int64_t>(unix_seconds)),
                          absl::UTCTimeZone());
}

std::string KeyOf(absl::string_view label) {
  std::string key;
  for (const char c : label) {
    if (IsAlnum(c)) {
      key.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
    } else if (!key.empty() && key.back() != '_') {
      key.push_back('_');
    }
  }
  while (!key.empty() && key.back() == '_') key.pop_back();
  return key;
}

std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace sextant::ingest
