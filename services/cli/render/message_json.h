// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_MESSAGE_JSON_H_
#define SEXTANT_SERVICES_CLI_RENDER_MESSAGE_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace sextant::cli {

// A message as the document that JsonWriter's rules ask for: keys as in the .proto file, every key
// there, integers as numbers, absent optional fields and messages as null, maps sorted by key.
// Elements of lists of messages take one line each. Equal messages give equal bytes.
std::string MessageJson(const google::protobuf::Message& message);

// The inverse; INVALID_ARGUMENT for what is not such a document. Unknown keys are ignored.
absl::Status ParseMessageJson(const std::string& text, google::protobuf::Message* message);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_MESSAGE_JSON_H_
