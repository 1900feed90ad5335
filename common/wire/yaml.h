// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_YAML_H_
#define SEXTANT_COMMON_WIRE_YAML_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace sextant::wire {

// Reads one YAML (or JSON) document into `message`: keys are field names in snake_case or
// protobuf's lowerCamelCase; a field that is not mentioned keeps what `message` held. null means
// not mentioned.
//
// INVALID_ARGUMENT with every violation at once, each with its field path, `file_name`, line and,
// for an unknown field, the nearest known one: unknown, mistyped and duplicate fields, fractions in
// integer fields, numbers that are not finite, two members of a oneof. A text that is not YAML, is
// above 8 MiB or nests deeper than 64 is refused with the place. Never throws. O(text).
absl::Status ParseYaml(absl::string_view text, absl::string_view file_name,
                       google::protobuf::Message* message);

// The YAML document that ParseYaml reads back to an equal message. Only fields that are set are
// written, in the order of the .proto file, map entries sorted by key, numbers in the shortest form
// that reads back to the same value. Equal messages give equal bytes.
std::string PrintYaml(const google::protobuf::Message& message);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_YAML_H_
