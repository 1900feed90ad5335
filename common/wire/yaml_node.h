// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_WIRE_YAML_NODE_H_
#define SEXTANT_COMMON_WIRE_YAML_NODE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/violations.h"
#include "google/protobuf/message.h"
#include "yaml-cpp/yaml.h"

namespace sextant::wire {

// The two halves of ParseYaml, for readers that look at the document before it becomes a message
// (names resolved through the catalog, overrides).

// The one document of `text`; a null node when it is empty. Errors as ParseYaml.
absl::StatusOr<YAML::Node> LoadYaml(absl::string_view text, absl::string_view file_name);

// Fills `message` from `node`; violations are added under `path` ("" for the root).
void FillMessage(const YAML::Node& node, absl::string_view path, absl::string_view file_name,
                 google::protobuf::Message* message, base::Violations* violations);

// " (job.yaml line 12)"; " (set on the command line)" for a node that no file holds.
std::string PlaceOf(const YAML::Node& node, absl::string_view file_name);

}  // namespace sextant::wire

#endif  // SEXTANT_COMMON_WIRE_YAML_NODE_H_
