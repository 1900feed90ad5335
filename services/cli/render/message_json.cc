// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/message_json.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "services/cli/render/json_writer.h"

namespace sextant::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

enum class Layout { kBlock, kLine };
void WriteMessage(const Message& message, Layout layout, JsonWriter& json);

void WriteSingle(const Message& m, const FieldDescriptor* field, JsonWriter& json) {
  const Reflection* r = m.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return json.Value(r->GetBool(m, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return json.Value(r->GetDouble(m, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return json.Value(r->GetInt64(m, field));
    case FieldDescriptor::CPPTYPE_INT32:
      return json.Value(r->GetInt32(m, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return json.Value(r->GetString(m, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return WriteMessage(r->GetMessage(m, field), Layout::kBlock, json);
    default:  // types that no message of ours uses
      return json.Null();
  }
}

void WriteMap(const Message& m, const FieldDescriptor* field, JsonWriter& json) {
  const Reflection* r = m.GetReflection();
  const FieldDescriptor* key = field->message_type()->map_key();
  std::vector<const Message*> entries;
  for (int i = 0; i < r->FieldSize(m, field); ++i) {
    entries.push_back(&r->GetRepeatedMessage(m, field, i));
  }
  const auto key_of = [&](const Message* e) { return e->GetReflection()->GetString(*e, key); };
  std::sort(entries.begin(), entries.end(),
            [&](const Message* a, const Message* b) { return key_of(a) < key_of(b); });
  json.BeginObject();
  for (const Message* entry : entries) {
    json.Key(key_of(entry));
    WriteSingle(*entry, field->message_type()->map_value(), json);
  }
  json.EndObject();
}

void WriteList(const Message& m, const FieldDescriptor* field, JsonWriter& json) {
  const Reflection* r = m.GetReflection();
  json.BeginArray();
  for (int i = 0; i < r->FieldSize(m, field); ++i) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        WriteMessage(r->GetRepeatedMessage(m, field, i), Layout::kLine, json);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        json.Value(r->GetRepeatedInt64(m, field, i));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        json.Value(r->GetRepeatedDouble(m, field, i));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        json.Value(r->GetRepeatedString(m, field, i));
        break;
      default:
        json.Null();
    }
  }
  json.EndArray();
}

void WriteMessage(const Message& message, Layout layout, JsonWriter& json) {
  layout == Layout::kLine ? json.BeginLineObject() : json.BeginObject();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    json.Key(field->name());
    if (field->is_map()) {
      WriteMap(message, field, json);
    } else if (field->is_repeated()) {
      WriteList(message, field, json);
    } else if (field->has_presence() && !message.GetReflection()->HasField(message, field)) {
      json.Null();
    } else {
      WriteSingle(message, field, json);
    }
  }
  json.EndObject();
}

}  // namespace

std::string MessageJson(const Message& message) {
  JsonWriter json;
  WriteMessage(message, Layout::kBlock, json);
  return json.Finish();
}

absl::Status ParseMessageJson(const std::string& text, Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(text, message, options);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("is not a document of this kind: ", std::string(status.message())));
}

}  // namespace sextant::cli
