// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/parameters.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "services/cli/library.h"
#include "services/cli/remote.h"
#include "services/cli/render/catalog.h"
#include "services/cli/render/json_writer.h"
#include "services/cli/render/table.h"

namespace sextant::cli {
namespace {

using parameters::ParameterSet;

struct NamedSet {
  std::string name;
  std::shared_ptr<const ParameterSet> set;
};

absl::StatusOr<std::shared_ptr<const ParameterSet>> SetInService(const CommonOptions& common,
                                                                 Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(ParameterSet set, ConnectedClient(common, terminal).GetParameterSet());
  return std::make_shared<const ParameterSet>(std::move(set));
}

absl::StatusOr<std::vector<NamedSet>> KnownSets(const CommonOptions& common, Terminal& terminal) {
  if (!common.server.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(const auto set, SetInService(common, terminal));
    return std::vector<NamedSet>{{set->provenance().name, set}};
  }
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  std::vector<NamedSet> sets;
  for (const std::string& name : catalog.ParameterSetNames()) {
    SEXTANT_ASSIGN_OR_RETURN(auto set, FindParameters(catalog, name));
    sets.push_back({name, std::move(set)});
  }
  return sets;
}

// A member that is away gets the set when it comes back: said, but no failure.
absl::StatusOr<std::vector<client::ServiceVersion>> VersionsOf(
    const absl::StatusOr<std::vector<client::FleetMember>>& members, Terminal& terminal) {
  if (!members.ok()) return members.status();
  std::vector<client::ServiceVersion> versions;
  for (const client::FleetMember& member : *members) {
    versions.push_back({.service = member.target, .version = member.version});
    if (!member.error.empty()) {
      terminal.Warn(absl::StrCat(member.target, " gets the set when it is back: ", member.error));
    }
  }
  return versions;
}

// Asks every target in order and prints what its services say.
absl::StatusOr<ExitCode> ForEachTarget(
    const CommonOptions& common, const std::vector<std::string>& targets,
    const std::function<absl::StatusOr<std::vector<client::ServiceVersion>>(const client::Client&)>&
        ask,
    Terminal& terminal) {
  JsonWriter json;
  Table table({{"target"}, {"service"}, {"version in service"}, {"before"}});
  json.BeginObject();
  json.Key("targets");
  json.BeginArray();
  for (const std::string& target : targets) {
    const auto versions = ask(ClientOf(common, target));
    if (!versions.ok()) {
      base::Violations violations;
      AddFailure(target, versions.status(), &violations);
      return violations.ToStatus(versions.status().code());
    }
    json.BeginObject();
    json.Field("target", target);
    json.Key("services");
    json.BeginArray();
    for (const client::ServiceVersion& version : *versions) {
      json.BeginObject();
      json.Field("service", version.service);
      json.Field("version", version.version);
      json.FieldOrNull("previous_version", version.previous_version);
      json.EndObject();
      table.AddRow({target, version.service, version.version, version.previous_version});
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  terminal.Print(common.output == "json" ? json.Finish() : table.ToText());
  return ExitCode::kOk;
}

}  // namespace

absl::StatusOr<ExitCode> ListParameters(const CommonOptions& common, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const std::vector<NamedSet> sets, KnownSets(common, terminal));
  JsonWriter json;
  Table table({{"name"}, {"version"}, {"accelerators"}});
  json.BeginObject();
  json.Key("parameter_sets");
  json.BeginArray();
  for (const auto& [name, set] : sets) {
    std::vector<std::string> accelerators;
    for (const auto& [accelerator, parameters] : set->accelerators()) {
      accelerators.push_back(accelerator);
    }
    json.BeginObject();
    json.Field("name", name);
    json.Field("version", set->version());
    json.Field("accelerators", accelerators);
    json.EndObject();
    table.AddRow({name, set->version(), absl::StrJoin(accelerators, ", ")});
  }
  json.EndArray();
  json.EndObject();
  terminal.Print(common.output == "json" ? json.Finish() : table.ToText());
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ShowParameters(const CommonOptions& common,
                                        const std::string& name_or_file, Terminal& terminal) {
  std::shared_ptr<const ParameterSet> set;
  if (name_or_file.empty() && !common.server.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(set, SetInService(common, terminal));
  } else {
    SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
    SEXTANT_ASSIGN_OR_RETURN(set, name_or_file.empty() ? ParametersInUse(common, catalog, terminal)
                                                       : FindParameters(catalog, name_or_file));
  }
  terminal.Print(common.output == "json" ? ParameterSetJson(*set)
                                         : ParameterSetText(*set, AllDescriptors()));
  return ExitCode::kOk;
}

absl::StatusOr<std::vector<client::ServiceVersion>> PushSet(const client::Client& client,
                                                            const ParameterSet& set,
                                                            Terminal& terminal) {
  auto versions = client.PushParameterSet(set);
  if (!absl::IsUnimplemented(versions.status())) return versions;
  return VersionsOf(client.PushToFleet(set), terminal);
}

absl::StatusOr<ExitCode> PushParameters(const CommonOptions& common,
                                        const std::string& name_or_file,
                                        const std::vector<std::string>& targets,
                                        Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  SEXTANT_ASSIGN_OR_RETURN(const auto set, FindParameters(catalog, name_or_file));
  return ForEachTarget(
      common, targets,
      [&](const client::Client& client) { return PushSet(client, *set, terminal); }, terminal);
}

absl::StatusOr<ExitCode> RollBackParameters(const CommonOptions& common,
                                            const std::vector<std::string>& targets,
                                            Terminal& terminal) {
  return ForEachTarget(
      common, targets,
      [&](const client::Client& client) -> absl::StatusOr<std::vector<client::ServiceVersion>> {
        auto versions = client.RollbackParameterSet();
        if (!absl::IsUnimplemented(versions.status())) return versions;
        return VersionsOf(client.RollBackFleet(), terminal);
      },
      terminal);
}

}  // namespace sextant::cli
