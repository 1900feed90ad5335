// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_JOB_NODE_READER_H_
#define SEXTANT_COMMON_CATALOG_JOB_NODE_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/catalog/catalog.h"
#include "common/wire/yaml_node.h"
#include "common/workload/job.h"

namespace sextant::catalog {

// kOpen: plan and GPU count are chosen later (by a sweep); rules that they take part in are not
// checked.
enum class PlanIs { kChosen, kOpen };

// ReadJob of a document that is already parsed, or of a part of one. Changes `root`. Internal to
// this room.
absl::StatusOr<workload::Job> ReadJobNode(YAML::Node root, absl::string_view file_name,
                                          const std::vector<std::string>& set_overrides,
                                          const Catalog& catalog, PlanIs plan,
                                          std::vector<std::string>* notes);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_JOB_NODE_READER_H_
