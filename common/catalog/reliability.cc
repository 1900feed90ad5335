// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/reliability.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/wire/convert_resilience.h"
#include "common/wire/yaml.h"

namespace sextant::catalog {
namespace {

namespace fs = std::filesystem;

fs::path FolderOf(const Catalog& catalog) {
  return fs::path(catalog.datasets_directory()) / "reliability";
}

}  // namespace

std::vector<std::string> ReliabilityNames(const Catalog& catalog) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(FolderOf(catalog), error)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<resilience::ReliabilityProfile> FindReliability(const Catalog& catalog,
                                                               absl::string_view name_or_path) {
  std::string path(name_or_path);
  if (!absl::StrContains(name_or_path, '/') && !absl::EndsWith(name_or_path, ".yaml")) {
    const std::vector<std::string> names = ReliabilityNames(catalog);
    const std::string name = CanonicalName(name_or_path);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return base::UnknownName("reliability profile", name_or_path, names);
    }
    path = (FolderOf(catalog) / absl::StrCat(name, ".yaml")).string();
  }
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  types::v1::ReliabilityProfile proto;
  SEXTANT_RETURN_IF_ERROR(wire::ParseYaml(text, path, &proto));
  SEXTANT_ASSIGN_OR_RETURN(const resilience::ReliabilityProfile profile, wire::FromProto(proto));
  SEXTANT_RETURN_IF_ERROR(
      resilience::ValidateGoodputQuestion({.profile = profile, .gpu_count = 1}));
  return profile;
}

}  // namespace sextant::catalog
