// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/catalog.h"

#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "services/cli/library.h"
#include "services/cli/render/catalog.h"
#include "services/cli/render/json_writer.h"

namespace sextant::cli {
namespace {

std::vector<std::string> NamesOf(const std::string& kind, const catalog::Catalog& catalog) {
  if (kind == "accelerators") return catalog.AcceleratorNames();
  if (kind == "models") return catalog.ModelNames();
  if (kind == "clusters") return catalog.ClusterNames();
  return catalog.ParameterSetNames();
}

absl::StatusOr<std::string> EntryJson(const std::string& kind, const std::string& name,
                                      const catalog::Catalog& catalog) {
  if (kind == "accelerators") {
    SEXTANT_ASSIGN_OR_RETURN(const hardware::Accelerator accelerator,
                             catalog.FindAccelerator(name));
    return AcceleratorJson(accelerator);
  }
  if (kind == "models") {
    SEXTANT_ASSIGN_OR_RETURN(const workload::ModelArchitecture model, catalog.FindModel(name));
    return ModelJson(model);
  }
  SEXTANT_ASSIGN_OR_RETURN(const hardware::Cluster cluster, catalog.FindCluster(name));
  return ClusterJson(cluster);
}

}  // namespace

std::vector<std::string> CatalogKinds() {
  return {"accelerators", "models", "clusters", "parameters"};
}

absl::StatusOr<ExitCode> ListCatalog(const CommonOptions& common, const std::string& kind,
                                     Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  const std::vector<std::string> kinds =
      kind.empty() ? CatalogKinds() : std::vector<std::string>{kind};
  JsonWriter json;
  std::string text;
  json.BeginObject();
  for (const std::string& each : kinds) {
    const std::vector<std::string> names = NamesOf(each, catalog);
    json.Field(each, names);
    if (kind.empty()) absl::StrAppend(&text, each, "\n");
    for (const std::string& name : names) {
      absl::StrAppend(&text, kind.empty() ? "  " : "", name, "\n");
    }
  }
  json.EndObject();
  terminal.Print(common.output == "json" ? json.Finish() : text);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ShowCatalogEntry(const CommonOptions& common, const std::string& kind,
                                          const std::string& name, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  if (kind == "parameters") {
    SEXTANT_ASSIGN_OR_RETURN(const auto set, FindParameters(catalog, name));
    terminal.Print(common.output == "json" ? ParameterSetJson(*set)
                                           : ParameterSetText(*set, AllDescriptors()));
    return ExitCode::kOk;
  }
  SEXTANT_ASSIGN_OR_RETURN(const std::string json, EntryJson(kind, name, catalog));
  terminal.Print(common.output == "json" ? json : FieldsText(json));
  return ExitCode::kOk;
}

}  // namespace sextant::cli
