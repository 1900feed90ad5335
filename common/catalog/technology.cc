// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/technology.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/convert_technology.h"
#include "common/wire/yaml.h"

namespace sextant::catalog {

absl::StatusOr<hardware::Technologies> DefaultTechnologies(const Catalog& catalog) {
  const std::string path = absl::StrCat(catalog.datasets_directory(), "/technology/default.yaml");
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (absl::IsNotFound(text.status())) return hardware::Technologies();
  if (!text.ok()) return text.status();
  types::v1::Technologies proto;
  SEXTANT_RETURN_IF_ERROR(wire::ParseYaml(*text, path, &proto));
  hardware::Technologies technologies = wire::FromProto(proto);
  SEXTANT_RETURN_IF_ERROR(hardware::ValidateTechnologies(technologies));
  return technologies;
}

}  // namespace sextant::catalog
