// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/catalog.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/wire/convert.h"
#include "common/wire/yaml.h"
#include "common/wire/yaml_node.h"

#ifndef SEXTANT_DEFAULT_DATASETS_DIR
#define SEXTANT_DEFAULT_DATASETS_DIR "datasets"
#endif
#ifndef SEXTANT_INSTALLED_DATASETS_DIR
#define SEXTANT_INSTALLED_DATASETS_DIR "/usr/local/share/sextant/datasets"
#endif

namespace sextant::catalog {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestFile = int64_t{8} << 20;

bool IsPath(absl::string_view name) {
  return absl::StrContains(name, '/') || absl::EndsWith(name, ".yaml") ||
         absl::EndsWith(name, ".yml") || absl::EndsWith(name, ".json");
}

// Ids of a folder: the stems of its YAML files, sorted. A folder that is not there has none.
std::vector<std::string> IdsOf(const std::string& folder) {
  std::vector<std::string> ids;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() == ".yaml") ids.push_back(path.stem().string());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

absl::Status UnderFile(const std::string& path, const absl::Status& status) {
  base::Violations violations;
  for (const base::Violation& v : base::ViolationsOf(status)) {
    violations.Add(absl::StrCat(fs::path(path).filename().string(), ": ", v.field), v.description);
  }
  if (violations.empty()) violations.Add(path, status.message());
  return violations.ToStatus(status.code());
}

}  // namespace

struct Catalog::State {
  std::string directory;

  std::mutex mutex;
  // Folder -> canonical id or alias -> id. Guarded by mutex, as are the maps below.
  std::map<std::string, std::map<std::string, std::string>> names;
  std::map<std::string, hardware::Accelerator, std::less<>> accelerators;
  std::map<std::string, std::string, std::less<>> default_clusters;
  std::map<std::string, hardware::Cluster, std::less<>> clusters;
  std::map<std::string, workload::ModelArchitecture, std::less<>> models;

  std::string PathOf(absl::string_view folder, absl::string_view id) const {
    return absl::StrCat(directory, "/", folder, "/", id, ".yaml");
  }

  const std::map<std::string, std::string>& NamesLocked(const std::string& folder) {
    std::map<std::string, std::string>& known = names[folder];
    if (!known.empty()) return known;
    for (const std::string& id : IdsOf(absl::StrCat(directory, "/", folder))) {
      known[CanonicalName(id)] = id;
      const absl::StatusOr<std::string> text = ReadTextFile(PathOf(folder, id));
      if (!text.ok()) continue;
      for (const std::string& alias : AliasesAtHead(*text)) known.emplace(CanonicalName(alias), id);
    }
    return known;
  }

  absl::StatusOr<std::string> ResolveLocked(const std::string& folder, absl::string_view kind,
                                            absl::string_view name) {
    const std::string canonical = CanonicalName(name);
    // The id itself is the common case and needs no look at the other files. A name is user input:
    // nothing that could leave the folder becomes part of a path.
    if (!canonical.empty() && !absl::StrContains(canonical, '/') &&
        canonical.find('\0') == std::string::npos) {
      std::error_code error;
      if (fs::is_regular_file(PathOf(folder, canonical), error)) return canonical;
    }
    const auto& known = NamesLocked(folder);
    if (const auto found = known.find(canonical); found != known.end()) return found->second;
    return base::UnknownName(kind, name, IdsOf(absl::StrCat(directory, "/", folder)));
  }

  // The document of an entry, without the keys that are the catalog's own.
  absl::StatusOr<YAML::Node> Load(const std::string& path) {
    SEXTANT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
    SEXTANT_ASSIGN_OR_RETURN(YAML::Node node,
                             wire::LoadYaml(text, fs::path(path).filename().string()));
    if (!node.IsMap()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": must be a mapping of fields"));
    }
    node.remove("aliases");
    return node;
  }

  absl::StatusOr<hardware::Accelerator> AcceleratorLocked(absl::string_view name) {
    SEXTANT_ASSIGN_OR_RETURN(const std::string id, ResolveLocked("hardware", "accelerator", name));
    if (const auto found = accelerators.find(id); found != accelerators.end()) {
      return found->second;
    }
    const std::string path = PathOf("hardware", id);
    SEXTANT_ASSIGN_OR_RETURN(YAML::Node node, Load(path));
    std::string cluster;
    if (node["default_cluster"].IsDefined() && node["default_cluster"].IsScalar()) {
      cluster = node["default_cluster"].Scalar();
    }
    node.remove("default_cluster");
    types::v1::Accelerator proto;
    base::Violations violations;
    wire::FillMessage(node, "", path, &proto, &violations);
    if (proto.name().empty()) proto.set_name(id);
    absl::StatusOr<hardware::Accelerator> accelerator = wire::FromProto(proto);
    if (accelerator.ok()) {
      violations.AddStatus("", hardware::ValidateAccelerator(*accelerator));
    } else {
      violations.AddStatus("", accelerator.status());
    }
    if (!violations.empty()) return UnderFile(path, violations.ToStatus());
    default_clusters[id] = cluster;
    accelerators[id] = *accelerator;
    return accelerator;
  }
};

absl::StatusOr<Catalog> Catalog::Open(std::string datasets_directory) {
  std::error_code error;
  if (!fs::is_directory(absl::StrCat(datasets_directory, "/hardware"), error)) {
    return absl::NotFoundError(absl::StrCat(
        "no datasets at \"", datasets_directory,
        "\" (no folder hardware in it); set SEXTANT_DATASETS_DIR to the datasets directory"));
  }
  auto state = std::make_shared<State>();
  state->directory = std::move(datasets_directory);
  return Catalog(std::move(state));
}

absl::StatusOr<hardware::Accelerator> Catalog::FindAccelerator(absl::string_view name) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->AcceleratorLocked(name);
}

absl::StatusOr<std::string> Catalog::DefaultClusterName(absl::string_view accelerator) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  SEXTANT_ASSIGN_OR_RETURN(const std::string id,
                           state_->ResolveLocked("hardware", "accelerator", accelerator));
  SEXTANT_RETURN_IF_ERROR(state_->AcceleratorLocked(id).status());
  const std::string& cluster = state_->default_clusters[id];
  if (!cluster.empty()) return cluster;
  return absl::NotFoundError(
      absl::StrCat("accelerator \"", id, "\" has no default cluster; name a cluster"));
}

absl::StatusOr<workload::ModelArchitecture> Catalog::FindModel(absl::string_view name) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  SEXTANT_ASSIGN_OR_RETURN(const std::string id, state_->ResolveLocked("models", "model", name));
  if (const auto found = state_->models.find(id); found != state_->models.end()) {
    return found->second;
  }
  const std::string path = state_->PathOf("models", id);
  SEXTANT_ASSIGN_OR_RETURN(const YAML::Node node, state_->Load(path));
  types::v1::ModelArchitecture proto;
  base::Violations violations;
  wire::FillMessage(node, "", path, &proto, &violations);
  if (proto.name().empty()) proto.set_name(id);
  absl::StatusOr<workload::ModelArchitecture> model = wire::FromProto(proto);
  if (model.ok()) {
    violations.AddStatus("", workload::ValidateModelArchitecture(*model));
  } else {
    violations.AddStatus("", model.status());
  }
  if (!violations.empty()) return UnderFile(path, violations.ToStatus());
  state_->models[id] = *model;
  return model;
}

absl::StatusOr<hardware::Cluster> Catalog::FindCluster(absl::string_view name) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  SEXTANT_ASSIGN_OR_RETURN(const std::string id,
                           state_->ResolveLocked("clusters", "cluster", name));
  if (const auto found = state_->clusters.find(id); found != state_->clusters.end()) {
    return found->second;
  }
  const std::string path = state_->PathOf("clusters", id);
  SEXTANT_ASSIGN_OR_RETURN(YAML::Node node, state_->Load(path));
  types::v1::Cluster proto;
  base::Violations violations;
  const YAML::Node accelerator = node["accelerator"];
  if (accelerator.IsDefined() && accelerator.IsScalar()) {
    absl::StatusOr<hardware::Accelerator> found = state_->AcceleratorLocked(accelerator.Scalar());
    if (found.ok()) {
      *proto.mutable_accelerator() = wire::ToProto(*found);
    } else {
      violations.Add("accelerator", found.status().message());
    }
    node.remove("accelerator");
  }
  wire::FillMessage(node, "", path, &proto, &violations);
  if (proto.name().empty()) proto.set_name(id);
  absl::StatusOr<hardware::Cluster> cluster = wire::FromProto(proto);
  if (violations.empty()) {
    violations.AddStatus("", cluster.ok() ? hardware::ValidateCluster(*cluster) : cluster.status());
  }
  if (!violations.empty()) return UnderFile(path, violations.ToStatus());
  state_->clusters[id] = *cluster;
  return cluster;
}

absl::StatusOr<parameters::ParameterSet> Catalog::FindParameterSet(
    absl::string_view name_or_path) const {
  if (name_or_path == "uncalibrated") return parameters::ParameterSet();
  if (IsPath(name_or_path)) return ReadParameterSet(std::string(name_or_path));
  std::string id;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    absl::StatusOr<std::string> resolved =
        state_->ResolveLocked("parameters", "parameter set", name_or_path);
    if (!resolved.ok()) {
      return base::UnknownName("parameter set", name_or_path, ParameterSetNames());
    }
    id = *std::move(resolved);
  }
  return ReadParameterSet(state_->PathOf("parameters", id));
}

std::vector<std::string> Catalog::AcceleratorNames() const {
  return IdsOf(state_->directory + "/hardware");
}
std::vector<std::string> Catalog::ModelNames() const {
  return IdsOf(state_->directory + "/models");
}
std::vector<std::string> Catalog::ClusterNames() const {
  return IdsOf(state_->directory + "/clusters");
}
std::vector<std::string> Catalog::ParameterSetNames() const {
  std::vector<std::string> names = IdsOf(state_->directory + "/parameters");
  names.insert(std::lower_bound(names.begin(), names.end(), "uncalibrated"), "uncalibrated");
  return names;
}

std::vector<std::pair<std::string, std::string>> Catalog::ModelAliases() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto& names = state_->NamesLocked("models");
  return {names.begin(), names.end()};
}

const std::string& Catalog::datasets_directory() const { return state_->directory; }

absl::Status SaveParameterSet(const parameters::ParameterSet& set, const std::string& path) {
  // Beside the target, so that the rename stays inside one file system.
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << wire::PrintYaml(wire::ToProto(set));
    file.close();
    if (!file) {
      std::remove(temporary.c_str());
      return absl::NotFoundError(
          absl::StrCat("cannot write \"", path, "\"; its folder must exist and be writable"));
    }
  }
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) {
    std::remove(temporary.c_str());
    return absl::InternalError(absl::StrCat("cannot write \"", path, "\": ", error.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<parameters::ParameterSet> ReadParameterSet(const std::string& path) {
  SEXTANT_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  types::v1::ParameterSet proto;
  const absl::Status parsed = wire::ParseYaml(text, path, &proto);
  if (!parsed.ok()) return parsed;
  absl::StatusOr<parameters::ParameterSet> set = wire::FromProto(proto);
  if (!set.ok()) return UnderFile(path, set.status());
  return set;
}

std::string DefaultDatasetsDirectory() {
  if (const char* directory = std::getenv("SEXTANT_DATASETS_DIR");
      directory != nullptr && *directory != '\0') {
    return directory;
  }
  std::error_code error;
  if (fs::is_directory(SEXTANT_DEFAULT_DATASETS_DIR, error)) return SEXTANT_DEFAULT_DATASETS_DIR;
  return SEXTANT_INSTALLED_DATASETS_DIR;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::error_code error;
  const fs::file_status file_status = fs::status(path, error);
  if (!fs::exists(file_status)) return absl::NotFoundError(absl::StrCat("no file \"", path, "\""));
  if (fs::is_directory(file_status)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" is a folder, not a file"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot read \"", path, "\"; check its permissions"));
  }
  // Bounded while reading: a pipe or a device has no size to ask for.
  std::string text;
  char buffer[1 << 14];
  while (file.read(buffer, sizeof(buffer)) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (static_cast<int64_t>(text.size()) > kLargestFile) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", path, "\" is above ", kLargestFile, " bytes"));
    }
  }
  return text;
}

std::string CanonicalName(absl::string_view name) {
  std::string canonical = absl::AsciiStrToLower(absl::StripAsciiWhitespace(name.substr(0, 256)));
  for (char& c : canonical) {
    if (c == '_' || c == ' ') c = '-';
  }
  return canonical;
}

std::vector<std::string> AliasesAtHead(absl::string_view text) {
  std::vector<std::string> aliases;
  size_t start = absl::StartsWith(text, "aliases:") ? 0 : text.find("\naliases:");
  if (start == absl::string_view::npos) return aliases;
  const size_t open = text.find('[', start);
  const size_t close = text.find(']', start);
  if (open == absl::string_view::npos || close == absl::string_view::npos || close < open) {
    return aliases;
  }
  for (absl::string_view item : absl::StrSplit(text.substr(open + 1, close - open - 1), ',')) {
    item = absl::StripAsciiWhitespace(item);
    if (item.size() >= 2 && (item.front() == '"' || item.front() == '\'')) {
      item = item.substr(1, item.size() - 2);
    }
    if (!item.empty()) aliases.emplace_back(item);
  }
  return aliases;
}

}  // namespace sextant::catalog
