// SPDX-License-Identifier: Apache-2.0
// JSON as profilers and benchmarks write it: with Python's NaN and Infinity, with kernel names that
// are cut inside a character, cut off at the end, several documents in one file.
#ifndef SEXTANT_CALIBRATION_INGEST_JSON_H_
#define SEXTANT_CALIBRATION_INGEST_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sextant::ingest {

struct JsonMember;

// A JSON value. Numbers that are not finite (NaN, Infinity, 1e999) are kNull: absent.
struct JsonValue {
  enum class Kind : int { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  double number = 0;
  std::string text;
  std::vector<JsonValue> items;     // of an array; the first kArrayLimit
  size_t item_count = 0;            // of an array, all of them
  std::vector<JsonMember> members;  // of an object

  bool IsObject() const { return kind == Kind::kObject; }
  // The last member of that name, null where there is none. O(members).
  const JsonValue* Find(absl::string_view name) const;
  // A member that is an object or array.
  const JsonValue* FindObject(absl::string_view name) const;
  // A number, also one written as text ("1000"); nothing for any other value.
  std::optional<double> AsNumber() const;
  std::optional<double> Number(absl::string_view name) const;
  // A text member; empty where absent or not text.
  absl::string_view Text(absl::string_view name) const;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// Walks over JSON text without recursion, so that depth costs no stack; Read builds values down to
// kDepthLimit. Every method leaves the position after what it read. Once something is wrong, ok()
// is false and stays so, and nothing more is read. Linear in the text. Thread-compatible.
//
//   JsonReader reader(text);
//   if (reader.EnterObject()) {
//     std::string key;
//     while (reader.NextMember(&key)) key == "ts" ? Use(reader.Read()) : reader.Skip();
//   }
class JsonReader {
 public:
  static constexpr int kDepthLimit = 64;
  // What Read keeps: elements of all arrays of one value, members of all its objects.
  static constexpr size_t kArrayLimit = 100'000;
  static constexpr size_t kMemberLimit = 200'000;

  explicit JsonReader(absl::string_view text) : text_(text) {}

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }  // "line 3: ..."; "cut off" where truncated
  bool truncated() const { return truncated_; }        // the text ended inside a value
  size_t position() const { return at_; }

  // Whether another value starts here (blanks and one separating comma are passed over). For
  // several documents in a row.
  bool HasMore();
  bool AtObject() { return PeekChar() == '{'; }
  bool AtArray() { return PeekChar() == '['; }

  bool EnterObject();
  bool NextMember(std::string* key);  // false at the end of the object or on an error
  bool EnterArray();
  bool NextElement();

  JsonValue Read();
  // Passes over the value; its text.
  absl::string_view Skip();

 private:
  char PeekChar();
  void Fail(absl::string_view what);
  void SkipBlanks();
  bool ReadString(std::string* out);  // `out` null: only passes over
  bool AppendEscape(std::string* out);
  void ReadScalar(JsonValue* value);
  void ReadInto(JsonValue* value, int depth, size_t* elements_left, size_t* members_left);

  absl::string_view text_;
  size_t at_ = 0;
  bool first_ = false;  // no comma is due before the next member or element
  bool truncated_ = false;
  std::string error_;
};

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_JSON_H_
