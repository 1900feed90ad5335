// SPDX-License-Identifier: Apache-2.0
#include "common/wire/yaml.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/nearest.h"
#include "common/wire/yaml_node.h"
#include "google/protobuf/descriptor.h"

namespace sextant::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kLargestText = size_t{8} << 20;
constexpr int kDeepestNesting = 64;
// A document names an anchor many times at no cost in text: bound the work, not only the text.
constexpr int64_t kMostValues = 4'000'000;

std::string Shown(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return absl::StrCat("\"", node.Scalar().substr(0, 64), "\"");
}

std::string ChildPath(absl::string_view path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

class Filler {
 public:
  Filler(absl::string_view file_name, base::Violations* violations)
      : file_name_(file_name), violations_(*violations) {}

  // `place` is the key that introduced the node: it is in the file even when an override replaced
  // the value.
  void FillMap(const YAML::Node& node, const YAML::Node& place, const std::string& path,
               Message* message, int depth) {
    if (!node.IsMap()) {
      Report(path, place,
             absl::StrCat("is ", Shown(node), " but must be a mapping of ",
                          message->GetDescriptor()->name(), " fields"));
      return;
    }
    if (depth > kDeepestNesting) {
      Report(path, place, absl::StrCat("nests deeper than ", kDeepestNesting));
      return;
    }
    std::set<const FieldDescriptor*> seen;
    for (const auto& item : node) {
      if (!Count(path, item.first)) return;
      FillItem(item.first, item.second, path, message, depth, seen);
    }
  }

 private:
  void Report(absl::string_view path, const YAML::Node& place, absl::string_view description) {
    violations_.Add(path, absl::StrCat(description, PlaceOf(place, file_name_)));
  }

  bool Count(const std::string& path, const YAML::Node& place) {
    if (++value_count_ < kMostValues) return true;
    if (value_count_ == kMostValues) {
      Report(path, place, absl::StrCat("has more than ", kMostValues, " values"));
    }
    return false;
  }

  void FillItem(const YAML::Node& key, const YAML::Node& value, const std::string& path,
                Message* message, int depth, std::set<const FieldDescriptor*>& seen) {
    const std::string name = key.IsScalar() ? key.Scalar() : Shown(key);
    const std::string field_path = ChildPath(path, name.substr(0, 128));
    const FieldDescriptor* field = FindField(*message->GetDescriptor(), name);
    if (field == nullptr) {
      ReportUnknown(field_path, name, key, *message->GetDescriptor());
      return;
    }
    if (!seen.insert(field).second) {
      Report(field_path, key, "is given twice; keep one");
      return;
    }
    if (value.IsNull()) return;
    if (const auto* oneof = field->real_containing_oneof(); oneof != nullptr) {
      for (const FieldDescriptor* other : seen) {
        if (other != field && other->real_containing_oneof() == oneof) {
          Report(field_path, key,
                 absl::StrCat("excludes ", other->name(), ", which is given too; keep one"));
          return;
        }
      }
    }
    FillField(value, key, field_path, field, message, depth);
  }

  static const FieldDescriptor* FindField(const Descriptor& descriptor, const std::string& name) {
    const FieldDescriptor* field = descriptor.FindFieldByName(name);
    for (int i = 0; field == nullptr && i < descriptor.field_count(); ++i) {
      if (descriptor.field(i)->json_name() == name) field = descriptor.field(i);
    }
    return field;
  }

  void ReportUnknown(const std::string& path, const std::string& name, const YAML::Node& place,
                     const Descriptor& descriptor) {
    std::vector<std::string> known;
    for (int i = 0; i < descriptor.field_count(); ++i) known.push_back(descriptor.field(i)->name());
    const std::vector<std::string> nearest = base::NearestNames(name, known);
    Report(path, place,
           nearest.empty() ? std::string("is not a known field")
                           : absl::StrCat("is not a known field; did you mean ",
                                          absl::StrJoin(nearest, ", "), "?"));
  }

  void FillField(const YAML::Node& value, const YAML::Node& key, const std::string& path,
                 const FieldDescriptor* field, Message* message, int depth) {
    const Reflection* reflection = message->GetReflection();
    if (field->is_map()) {
      FillMapField(value, key, path, field, message, depth);
    } else if (field->is_repeated()) {
      if (!value.IsSequence()) {
        Report(path, key, absl::StrCat("is ", Shown(value), " but must be a list"));
        return;
      }
      reflection->ClearField(message, field);
      for (size_t i = 0; i < value.size(); ++i) {
        if (!Count(path, key)) return;
        const std::string element = absl::StrCat(path, "[", i, "]");
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          FillMap(value[i], key, element, reflection->AddMessage(message, field), depth + 1);
        } else {
          FillScalar(value[i], key, element, field, message);
        }
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      FillMap(value, key, path, reflection->MutableMessage(message, field), depth + 1);
    } else {
      FillScalar(value, key, path, field, message);
    }
  }

  void FillMapField(const YAML::Node& value, const YAML::Node& key, const std::string& path,
                    const FieldDescriptor* field, Message* message, int depth) {
    if (!value.IsMap()) {
      Report(path, key, absl::StrCat("is ", Shown(value), " but must be a mapping"));
      return;
    }
    const FieldDescriptor* key_field = field->message_type()->map_key();
    const FieldDescriptor* value_field = field->message_type()->map_value();
    std::set<std::string> seen;
    for (const auto& item : value) {
      if (!Count(path, item.first)) return;
      const std::string name = item.first.IsScalar() ? item.first.Scalar() : Shown(item.first);
      const std::string entry_path = ChildPath(path, name.substr(0, 128));
      if (!seen.insert(name).second) {
        Report(entry_path, item.first, "is given twice; keep one");
        continue;
      }
      if (item.second.IsNull()) {
        Report(entry_path, item.first, "has no value; give one or drop the key");
        continue;
      }
      Message* entry = message->GetReflection()->AddMessage(message, field);
      entry->GetReflection()->SetString(entry, key_field, name);
      FillField(item.second, item.first, entry_path, value_field, entry, depth + 1);
    }
  }

  void FillScalar(const YAML::Node& value, const YAML::Node& key, const std::string& path,
                  const FieldDescriptor* field, Message* message) {
    const Reflection* reflection = message->GetReflection();
    const bool repeated = field->is_repeated();
    const auto refuse = [&](absl::string_view wanted) {
      Report(path, key, absl::StrCat("is ", Shown(value), " but must be ", wanted));
    };
    if (!value.IsScalar()) return refuse("one value");
    const std::string& text = value.Scalar();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        if (repeated) return reflection->AddString(message, field, text);
        return reflection->SetString(message, field, text);
      case FieldDescriptor::CPPTYPE_BOOL:
        if (text != "true" && text != "false") return refuse("true or false");
        if (repeated) return reflection->AddBool(message, field, text == "true");
        return reflection->SetBool(message, field, text == "true");
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        double number = 0;
        if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) {
          return refuse("a finite number");
        }
        if (repeated) return reflection->AddDouble(message, field, number);
        return reflection->SetDouble(message, field, number);
      }
      case FieldDescriptor::CPPTYPE_INT64: {
        const std::optional<int64_t> number = WholeNumber(text);
        if (!number.has_value()) return refuse("a whole number of at most 64 bits");
        if (repeated) return reflection->AddInt64(message, field, *number);
        return reflection->SetInt64(message, field, *number);
      }
      case FieldDescriptor::CPPTYPE_INT32: {
        const std::optional<int64_t> number = WholeNumber(text);
        if (!number.has_value() || *number < std::numeric_limits<int32_t>::min() ||
            *number > std::numeric_limits<int32_t>::max()) {
          return refuse("a whole number of at most 32 bits");
        }
        if (repeated) return reflection->AddInt32(message, field, static_cast<int32_t>(*number));
        return reflection->SetInt32(message, field, static_cast<int32_t>(*number));
      }
      default:
        return refuse("of a kind that files cannot hold");
    }
  }

  static std::optional<int64_t> WholeNumber(const std::string& text) {
    int64_t whole = 0;
    if (absl::SimpleAtoi(text, &whole)) return whole;
    // 8e10 is a whole number too; above 2^53 a double no longer tells neighbours apart.
    double number = 0;
    if (absl::SimpleAtod(text, &number) && std::abs(number) <= 9007199254740992.0 &&
        number == std::floor(number)) {
      return static_cast<int64_t>(number);
    }
    return std::nullopt;
  }

  absl::string_view file_name_;
  base::Violations& violations_;
  int64_t value_count_ = 0;
};

// A plain scalar only where no reader can take it for anything but this string.
std::string QuotedIfNeeded(const std::string& text) {
  const auto is_safe = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
           c == '/';
  };
  bool plain = !text.empty() && absl::ascii_isalpha(static_cast<unsigned char>(text[0]));
  for (const char c : text) plain = plain && is_safe(c);
  for (absl::string_view word : {"true", "false", "null", "yes", "no", "on", "off", "nan", "inf"}) {
    if (absl::AsciiStrToLower(text) == word) plain = false;
  }
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&quoted, "\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string ShortestNumber(double value) {
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

class Printer {
 public:
  void PrintFields(const Message& message, int indent) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) PrintField(message, field, indent);
  }
  std::string Take() { return std::move(text_); }

 private:
  void Line(int indent, absl::string_view line) {
    text_.append(static_cast<size_t>(indent), ' ');
    absl::StrAppend(&text_, line, "\n");
  }

  void PrintField(const Message& message, const FieldDescriptor* field, int indent) {
    const Reflection* reflection = message.GetReflection();
    if (field->is_map()) {
      Line(indent, absl::StrCat(field->name(), ":"));
      std::map<std::string, const Message*> sorted;
      const FieldDescriptor* key_field = field->message_type()->map_key();
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        const Message& entry = reflection->GetRepeatedMessage(message, field, i);
        sorted[entry.GetReflection()->GetString(entry, key_field)] = &entry;
      }
      const FieldDescriptor* value_field = field->message_type()->map_value();
      for (const auto& [key, entry] : sorted) {
        PrintValue(QuotedIfNeeded(key), *entry, value_field, -1, indent + 2);
      }
    } else if (field->is_repeated()) {
      const int count = reflection->FieldSize(message, field);
      Line(indent, absl::StrCat(field->name(), ":"));
      for (int i = 0; i < count; ++i) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          Line(indent + 2,
               absl::StrCat("- ", Flow(reflection->GetRepeatedMessage(message, field, i))));
        } else {
          Line(indent + 2, absl::StrCat("- ", Scalar(message, field, i)));
        }
      }
    } else {
      PrintValue(field->name(), message, field, -1, indent);
    }
  }

  void PrintValue(const std::string& key, const Message& message, const FieldDescriptor* field,
                  int index, int indent) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      Line(indent, absl::StrCat(key, ": ", Scalar(message, field, index)));
      return;
    }
    const Message& child = message.GetReflection()->GetMessage(message, field);
    if (IsLeaf(child)) {
      Line(indent, absl::StrCat(key, ": ", Flow(child)));
      return;
    }
    Line(indent, absl::StrCat(key, ":"));
    PrintFields(child, indent + 2);
  }

  // Few scalars and nothing below: reads best on one line.
  static bool IsLeaf(const Message& message) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    if (fields.size() > 4) return false;
    for (const FieldDescriptor* field : fields) {
      if (field->is_repeated() || field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        return false;
      }
    }
    return true;
  }

  // {a: 1, b: {c: 2}}
  static std::string Flow(const Message& message) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    std::vector<std::string> items;
    for (const FieldDescriptor* field : fields) {
      std::vector<std::string> values;
      const int count =
          field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        const int index = field->is_repeated() ? i : -1;
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
          values.push_back(Scalar(message, field, index));
        } else if (index < 0) {
          values.push_back(Flow(message.GetReflection()->GetMessage(message, field)));
        } else {
          values.push_back(Flow(message.GetReflection()->GetRepeatedMessage(message, field, i)));
        }
      }
      items.push_back(absl::StrCat(
          field->name(), ": ",
          field->is_repeated() ? absl::StrCat("[", absl::StrJoin(values, ", "), "]") : values[0]));
    }
    return absl::StrCat("{", absl::StrJoin(items, ", "), "}");
  }

  // `index` < 0: the field is not repeated.
  static std::string Scalar(const Message& message, const FieldDescriptor* field, int index) {
    const Reflection* r = message.GetReflection();
    const bool one = index < 0;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return QuotedIfNeeded(one ? r->GetString(message, field)
                                  : r->GetRepeatedString(message, field, index));
      case FieldDescriptor::CPPTYPE_BOOL:
        return (one ? r->GetBool(message, field) : r->GetRepeatedBool(message, field, index))
                   ? "true"
                   : "false";
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return ShortestNumber(one ? r->GetDouble(message, field)
                                  : r->GetRepeatedDouble(message, field, index));
      case FieldDescriptor::CPPTYPE_INT64:
        return absl::StrCat(one ? r->GetInt64(message, field)
                                : r->GetRepeatedInt64(message, field, index));
      case FieldDescriptor::CPPTYPE_INT32:
        return absl::StrCat(one ? r->GetInt32(message, field)
                                : r->GetRepeatedInt32(message, field, index));
      default:
        return "null";
    }
  }

  std::string text_;
};

// A line "---" at the margin starts a document, also inside what looks like a block scalar.
bool HoldsSecondDocument(absl::string_view text) {
  bool content_seen = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "---") &&
        (line.size() == 3 || absl::ascii_isspace(static_cast<unsigned char>(line[3])))) {
      if (content_seen) return true;
      content_seen = stripped.size() > 3;
    } else if (!stripped.empty() && stripped[0] != '#' && line[0] != '%') {
      content_seen = true;
    }
  }
  return false;
}

absl::Status NotYaml(absl::string_view file_name, absl::string_view what) {
  base::Violations violations;
  violations.Add(file_name, what);
  return violations.ToStatus();
}

}  // namespace

std::string PlaceOf(const YAML::Node& node, absl::string_view file_name) {
  if (!node.IsDefined() || node.Mark().is_null()) return " (set on the command line)";
  return absl::StrCat(" (", file_name, " line ", node.Mark().line + 1, ")");
}

absl::StatusOr<YAML::Node> LoadYaml(absl::string_view text, absl::string_view file_name) {
  if (text.size() > kLargestText) {
    return NotYaml(file_name, absl::StrCat("is ", text.size(), " bytes but must be at most ",
                                           kLargestText, " bytes"));
  }
  if (text.find('\0') != absl::string_view::npos) {
    return NotYaml(file_name, "holds a zero byte; it is not a text file");
  }
  if (HoldsSecondDocument(text)) {
    return NotYaml(file_name, "holds several documents but must hold one; drop the '---' lines");
  }
  try {
    // Not YAML::LoadAll, which does not come back from some malformed texts.
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null()) return NotYaml(file_name, absl::StrCat("is not YAML: ", error.msg));
    return NotYaml(file_name, absl::StrCat("is not YAML at line ", error.mark.line + 1, ", column ",
                                           error.mark.column + 1, ": ", error.msg));
  }
}

void FillMessage(const YAML::Node& node, absl::string_view path, absl::string_view file_name,
                 Message* message, base::Violations* violations) {
  if (!node.IsDefined() || node.IsNull()) return;
  Filler filler(file_name, violations);
  filler.FillMap(node, node, std::string(path), message, 0);
}

absl::Status ParseYaml(absl::string_view text, absl::string_view file_name, Message* message) {
  absl::StatusOr<YAML::Node> node = LoadYaml(text, file_name);
  if (!node.ok()) return node.status();
  base::Violations violations;
  FillMessage(*node, "", file_name, message, &violations);
  return violations.ToStatus();
}

std::string PrintYaml(const Message& message) {
  Printer printer;
  printer.PrintFields(message, 0);
  return printer.Take();
}

}  // namespace sextant::wire
