// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/concurrent_reader.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/wire/convert.h"
#include "common/wire/convert_concurrent.h"
#include "common/wire/yaml_node.h"

namespace sextant::catalog {

absl::StatusOr<collectives::ConcurrentCollectives> ReadConcurrentCollectives(
    absl::string_view text, absl::string_view file_name, const Catalog& catalog) {
  SEXTANT_ASSIGN_OR_RETURN(YAML::Node root, wire::LoadYaml(text, file_name));
  types::v1::ConcurrentCollectives proto;
  base::Violations violations;
  if (root.IsMap() && root["cluster"].IsDefined() && root["cluster"].IsScalar()) {
    SEXTANT_ASSIGN_OR_RETURN(const hardware::Cluster cluster,
                             catalog.FindCluster(root["cluster"].Scalar()));
    *proto.mutable_cluster() = wire::ToProto(cluster);
    root.remove("cluster");
  }
  wire::FillMessage(root, "", file_name, &proto, &violations);
  if (!violations.empty()) return violations.ToStatus();
  SEXTANT_ASSIGN_OR_RETURN(collectives::ConcurrentCollectives question, wire::FromProto(proto));
  for (const base::Violation& v : base::ViolationsOf(hardware::ValidateCluster(question.cluster))) {
    violations.Add(absl::StrCat("cluster.", v.field), v.description);
  }
  if (!violations.empty()) return violations.ToStatus();
  return question;
}

}  // namespace sextant::catalog
