// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/economics.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/convert_economics.h"
#include "common/wire/yaml.h"

namespace sextant::catalog {

absl::StatusOr<energy::Economics> DefaultEconomics(const Catalog& catalog) {
  const std::string path = absl::StrCat(catalog.datasets_directory(), "/economics/default.yaml");
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (absl::IsNotFound(text.status())) return energy::Economics();
  if (!text.ok()) return text.status();
  types::v1::Economics proto;
  SEXTANT_RETURN_IF_ERROR(wire::ParseYaml(*text, path, &proto));
  SEXTANT_ASSIGN_OR_RETURN(energy::Economics economics, wire::FromProto(proto));
  SEXTANT_RETURN_IF_ERROR(energy::ValidateEconomics(economics));
  return economics;
}

}  // namespace sextant::catalog
