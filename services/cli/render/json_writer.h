// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_JSON_WRITER_H_
#define SEXTANT_SERVICES_CLI_RENDER_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"

namespace sextant::cli {

// Writes one JSON document, keys in the order given, indented by two spaces. Integers are JSON
// numbers whatever their size; doubles are the shortest text that reads back to the same bits; what
// JSON cannot say (NaN, infinity, an absent optional) is null; bytes that are not UTF-8 become
// U+FFFD. So equal values give equal bytes.
//
//   JsonWriter json;
//   json.BeginObject();
//   json.Field("total_seconds", 1.5);
//   json.Key("parts"); json.BeginArray(); json.Value("a"); json.EndArray();
//   json.EndObject();
//   return json.Finish();
//
// The caller opens and closes in pairs. Thread-compatible.
class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  // All on one line, to its end: for rows of long lists.
  void BeginLineObject();
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(absl::string_view key);

  void Value(absl::string_view text);
  void Value(const char* text) { Value(absl::string_view(text)); }
  void Value(const std::string& text) { Value(absl::string_view(text)); }
  void Value(double number);
  void Value(std::same_as<bool> auto flag) { Raw(flag ? "true" : "false"); }
  template <typename T>
  requires(std::integral<T> && !std::same_as<T, bool>) void Value(T number) {
    Raw(std::to_string(number));
  }
  void Null() { Raw("null"); }
  template <typename T>
  void Value(const std::optional<T>& value) {
    value.has_value() ? Value(*value) : Null();
  }
  template <typename T>
  void Value(const std::vector<T>& values) {
    BeginArray();
    for (const T& value : values) Value(value);
    EndArray();
  }

  template <typename T>
  void Field(absl::string_view key, const T& value) {
    Key(key);
    Value(value);
  }
  // An empty text is absent.
  void FieldOrNull(absl::string_view key, absl::string_view text) {
    Key(key);
    text.empty() ? Null() : Value(text);
  }

  // The document with a final newline; the writer is then empty.
  std::string Finish();

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Raw(absl::string_view text);
  void StartValue();
  void NewLine();

  std::string text_;
  std::vector<bool> has_items_;  // per open bracket
  size_t line_depth_ = 0;        // brackets open where a one-line object began; 0: in none
  bool after_key_ = false;
};

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_JSON_WRITER_H_
