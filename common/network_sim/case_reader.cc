// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/case_reader.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::network_sim {
namespace {

using Json = nlohmann::json;

// Reads fields of JSON objects; whatever is missing or of the wrong type becomes a violation.
class CaseReader {
 public:
  NetworkCase Read(const Json& root) {
    NetworkCase result;
    result.id = String(root, "", "case_id", "case");
    ReadTopology(Object(root, "", "topology"), result.topology);
    ReadFaults(root, result.faults);
    result.reembed_rings = Boolean(root, "", "reembed_rings");
    result.optimise_mapping = Boolean(root, "", "optimise_mapping");
    const absl::StatusOr<Routing> routing =
        ParseRouting(String(root, "", "routing", RoutingName(result.routing)));
    if (routing.ok()) {
      result.routing = *routing;
    } else {
      violations_.Add("routing", routing.status().message());
    }
    if (const Json* seed = Find(root, "ecmp_seed")) {
      if (seed->is_number_unsigned()) {
        result.ecmp_seed = seed->get<uint64_t>();
      } else {
        violations_.Add("ecmp_seed", "must be an integer that is not negative");
      }
    }
    if (Find(root, "transport") != nullptr) {
      const Json& transport = Object(root, "", "transport");
      Transport& t = result.transport;
      t.payload_bytes = Integer(transport, "transport", "payload_bytes", t.payload_bytes);
      t.header_bytes = Integer(transport, "transport", "header_bytes", t.header_bytes);
      t.window_bytes = Integer(transport, "transport", "window_bytes", t.window_bytes);
    }
    const bool has_layout = Find(root, "parallel") != nullptr;
    ForEach(root, "", "jobs", !has_layout, [&](const Json& item, const std::string& path) {
      result.jobs.push_back(ReadJob(item, path, result.jobs.size(), /*has_groups=*/true));
    });
    ForEach(root, "", "parallel", false, [&](const Json& item, const std::string& path) {
      ParallelDimension& dimension = result.parallel.emplace_back();
      dimension.job = ReadJob(item, path, result.parallel.size() - 1, /*has_groups=*/false);
      dimension.size = Integer(item, path, "size");
    });
    return result;
  }

  base::Violations& violations() { return violations_; }

 private:
  static std::string Path(absl::string_view parent, absl::string_view name) {
    return parent.empty() ? std::string(name) : absl::StrCat(parent, ".", name);
  }
  // The member, or nothing where it is absent or null.
  static const Json* Find(const Json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  const Json& Object(const Json& parent, absl::string_view path, const char* name) {
    static const Json& empty = *new Json(Json::object());
    const Json* found = Find(parent, name);
    if (found == nullptr) {
      violations_.Add(Path(path, name), "is missing");
    } else if (!found->is_object()) {
      violations_.Add(Path(path, name),
                      absl::StrCat("is a ", found->type_name(), " but must be an object"));
    } else {
      return *found;
    }
    return empty;
  }

  bool Boolean(const Json& parent, absl::string_view path, const char* name) {
    const Json* found = Find(parent, name);
    if (found == nullptr) return false;
    if (found->is_boolean()) return found->get<bool>();
    violations_.Add(Path(path, name), "must be true or false");
    return false;
  }

  void ReadFaults(const Json& root, Faults& faults) {
    ForEach(root, "", "link_faults", false, [&](const Json& item, const std::string& path) {
      const double bandwidth_fraction = Find(item, "loss_fraction") == nullptr
                                            ? Number(item, path, "bandwidth_fraction")
                                            : Number(item, path, "bandwidth_fraction", 1.0);
      const double loss_fraction = Number(item, path, "loss_fraction", 0.0);
      if (Find(item, "links") != nullptr) {
        faults.patterns.push_back(
            {String(item, path, "links", "*"), bandwidth_fraction, loss_fraction});
        return;
      }
      faults.links.push_back(
          {Integer(item, path, "a"), Integer(item, path, "b"), bandwidth_fraction, loss_fraction});
    });
    ForEach(root, "", "dead_switches", false, [&](const Json& item, const std::string& path) {
      if (item.is_string()) return faults.dead_switches.push_back(item.get<std::string>());
      violations_.Add(path, "must be the name of a switch, such as \"spine0\"");
    });
    ForEach(root, "", "slow_ranks", false, [&](const Json& item, const std::string& path) {
      faults.slow_ranks.push_back({Integer(item, path, "rank"), Number(item, path, "slowdown")});
    });
    ForEach(root, "", "random_faults", false, [&](const Json& item, const std::string& path) {
      RandomFaults& random = faults.random.emplace_back();
      random.seed = static_cast<uint64_t>(Integer(item, path, "seed", 1));
      random.links = String(item, path, "links", random.links);
      random.dead_probability = Number(item, path, "dead_probability", 0.0);
      random.derated_probability = Number(item, path, "derated_probability", 0.0);
      random.bandwidth_fraction =
          Number(item, path, "bandwidth_fraction", random.bandwidth_fraction);
    });
  }

  template <typename Visit>
  void ForEach(const Json& parent, absl::string_view path, const char* name, bool required,
               const Visit& visit) {
    const Json* found = Find(parent, name);
    if (found == nullptr) {
      if (required) violations_.Add(Path(path, name), "is missing");
      return;
    }
    if (!found->is_array()) {
      violations_.Add(Path(path, name),
                      absl::StrCat("is a ", found->type_name(), " but must be a list"));
      return;
    }
    size_t index = 0;
    for (const Json& item : *found) {
      visit(item, absl::StrCat(Path(path, name), "[", index++, "]"));
      if (violations_.items().size() > 64) return;  // enough to say what is wrong
    }
  }

  std::string String(const Json& parent, absl::string_view path, const char* name,
                     absl::string_view fallback) {
    const Json* found = Find(parent, name);
    if (found == nullptr) return std::string(fallback);
    if (found->is_string()) return found->get<std::string>();
    violations_.Add(Path(path, name), "must be a string");
    return std::string(fallback);
  }

  double AsNumber(const Json& value, const std::string& path) {
    if (value.is_number()) return value.get<double>();
    violations_.Add(path, absl::StrCat("is a ", value.type_name(), " but must be a number"));
    return 0;
  }
  double Number(const Json& parent, absl::string_view path, const char* name) {
    const Json* found = Find(parent, name);
    if (found != nullptr) return AsNumber(*found, Path(path, name));
    violations_.Add(Path(path, name), "is missing");
    return 0;
  }
  double Number(const Json& parent, absl::string_view path, const char* name, double fallback) {
    const Json* found = Find(parent, name);
    return found == nullptr ? fallback : AsNumber(*found, Path(path, name));
  }

  int64_t AsInteger(const Json& value, const std::string& path) {
    constexpr double kLimit = 9e18;
    if (value.is_number()) {
      const double number = value.get<double>();
      if (number == std::floor(number) && std::abs(number) < kLimit) return value.get<int64_t>();
    }
    violations_.Add(path, absl::StrCat("must be an integer below 9e18, not ",
                                       value.is_number() ? value.dump() : value.type_name()));
    return 0;
  }
  int64_t Integer(const Json& parent, absl::string_view path, const char* name) {
    const Json* found = Find(parent, name);
    if (found != nullptr) return AsInteger(*found, Path(path, name));
    violations_.Add(Path(path, name), "is missing");
    return 0;
  }
  int64_t Integer(const Json& parent, absl::string_view path, const char* name, int64_t fallback) {
    const Json* found = Find(parent, name);
    return found == nullptr ? fallback : AsInteger(*found, Path(path, name));
  }

  // One value for all dimensions, or a list.
  std::vector<double> PerDimension(const Json& parent, const char* name, size_t count) {
    const Json* found = Find(parent, name);
    const std::string path = Path("topology", name);
    if (found == nullptr) {
      violations_.Add(path, "is missing");
      return std::vector<double>(count, 0.0);
    }
    if (!found->is_array()) return std::vector<double>(count, AsNumber(*found, path));
    std::vector<double> values;
    for (const Json& item : *found) values.push_back(AsNumber(item, path));
    if (values.size() != count) {
      violations_.Add(path, absl::StrCat("has ", values.size(), " values but must have one, or ",
                                         "one per dimension (", count, ")"));
      values.resize(count, values.empty() ? 0.0 : values.back());
    }
    return values;
  }

  LinkClass Link(const Json& t, const std::string& prefix) {
    return {Number(t, "topology", absl::StrCat(prefix, "_bandwidth_GBps").c_str()) * 1e9,
            Number(t, "topology", absl::StrCat(prefix, "_latency_ns").c_str()) * 1e-9};
  }

  void ReadGrid(const Json& t, TopologySpec& spec) {
    if (Find(t, "dims") != nullptr) {
      ForEach(t, "topology", "dims", true, [&](const Json& item, const std::string& path) {
        spec.dimensions.push_back(AsInteger(item, path));
      });
    } else {
      spec.dimensions.push_back(Integer(t, "topology", "endpoints"));
    }
    const auto bandwidths = PerDimension(t, "link_bandwidth_GBps", spec.dimensions.size());
    const auto latencies = PerDimension(t, "link_latency_ns", spec.dimensions.size());
    for (size_t i = 0; i < spec.dimensions.size(); ++i) {
      spec.links.push_back({bandwidths[i] * 1e9, latencies[i] * 1e-9});
    }
  }

  // A link's two directions are alike unless the reverse one is given.
  void ReadGraph(const Json& t, TopologySpec& spec) {
    spec.endpoint_count = Integer(t, "topology", "endpoints");
    spec.switch_count = Integer(t, "topology", "switches", 0);
    ForEach(t, "topology", "links", true, [&](const Json& item, const std::string& path) {
      GraphLink& link = spec.graph_links.emplace_back();
      link.a = Integer(item, path, "a");
      link.b = Integer(item, path, "b");
      const double bandwidth = Number(item, path, "bandwidth_GBps");
      const double latency = Number(item, path, "latency_ns");
      link.forward = {bandwidth * 1e9, latency * 1e-9};
      link.backward = {Number(item, path, "reverse_bandwidth_GBps", bandwidth) * 1e9,
                       Number(item, path, "reverse_latency_ns", latency) * 1e-9};
      link.cost = Integer(item, path, "cost", 1);
    });
  }

  void ReadTopology(const Json& t, TopologySpec& spec) {
    if (t.empty()) return;  // already reported
    const absl::StatusOr<TopologyKind> kind = ParseTopologyKind(String(t, "topology", "kind", ""));
    if (!kind.ok()) {
      violations_.Add("topology.kind", kind.status().message());
      return;
    }
    spec.kind = *kind;
    switch (spec.kind) {
      case TopologyKind::kRing:
      case TopologyKind::kLine:
      case TopologyKind::kTorus:
      case TopologyKind::kMesh:
        ReadGrid(t, spec);
        return;
      case TopologyKind::kFullyConnected:
      case TopologyKind::kSwitch:
        spec.endpoint_count = Integer(t, "topology", "endpoints");
        spec.links.push_back(Link(t, "link"));
        return;
      case TopologyKind::kLeafSpine:
        spec.leaf_count = Integer(t, "topology", "leaves");
        spec.endpoints_per_leaf = Integer(t, "topology", "endpoints_per_leaf");
        break;
      case TopologyKind::kFatTree:
        spec.pod_count = Integer(t, "topology", "pods");
        spec.leaves_per_pod = Integer(t, "topology", "leaves_per_pod");
        spec.endpoints_per_leaf = Integer(t, "topology", "endpoints_per_leaf");
        spec.spines_per_pod = Integer(t, "topology", "spines_per_pod");
        spec.spine_count = Integer(t, "topology", "cores");
        spec.nic = Link(t, "nic");
        spec.uplink = Link(t, "uplink");
        spec.core_uplink = Link(t, "core_uplink");
        return;
      case TopologyKind::kDragonfly:
        spec.group_count = Integer(t, "topology", "groups");
        spec.routers_per_group = Integer(t, "topology", "routers_per_group");
        spec.endpoints_per_router = Integer(t, "topology", "endpoints_per_router");
        spec.global_links_per_router = Integer(t, "topology", "global_links_per_router");
        spec.nic = Link(t, "nic");
        spec.local = Link(t, "local");
        spec.global = Link(t, "global");
        return;
      case TopologyKind::kGraph:
        return ReadGraph(t, spec);
      case TopologyKind::kNvSwitchLeafSpine:
        spec.servers_per_leaf = Integer(t, "topology", "servers_per_leaf");
        [[fallthrough]];
      case TopologyKind::kNvSwitchRails:
        spec.server_count = Integer(t, "topology", "servers");
        spec.gpus_per_server = Integer(t, "topology", "gpus_per_server");
        spec.nvlink = Link(t, "nvlink");
        break;
    }
    spec.nic = Link(t, "nic");
    if (spec.kind == TopologyKind::kNvSwitchRails) return;
    spec.spine_count = Integer(t, "topology", "spines");
    spec.uplink = Link(t, "uplink");
  }

  NetworkJob ReadJob(const Json& j, const std::string& path, size_t index, bool has_groups) {
    NetworkJob job;
    job.name = String(j, path, "name", absl::StrCat("job", index));
    job.start_seconds = Number(j, path, "start_ns", 0.0) * 1e-9;
    const absl::StatusOr<Pattern> pattern = ParsePattern(String(j, path, "pattern", ""));
    if (!pattern.ok()) {
      violations_.Add(Path(path, "pattern"), pattern.status().message());
      return job;
    }
    job.pattern = *pattern;
    if (job.pattern == Pattern::kFlows) {
      ForEach(j, path, "flows", true, [&](const Json& item, const std::string& flow_path) {
        job.flows.push_back({Integer(item, flow_path, "src"), Integer(item, flow_path, "dst"),
                             Integer(item, flow_path, "bytes")});
      });
      return job;
    }
    ForEach(j, path, "groups", has_groups, [&](const Json& item, const std::string& group_path) {
      std::vector<int64_t>& group = job.groups.emplace_back();
      if (!item.is_array()) {
        violations_.Add(group_path, "must be a list of ranks");
        return;
      }
      for (const Json& rank : item) group.push_back(AsInteger(rank, group_path));
    });
    job.message_bytes = Integer(j, path, "message_bytes");
    job.bidirectional = Boolean(j, path, "bidirectional");
    job.in_network = Boolean(j, path, "in_network");
    job.chunk_count = Integer(j, path, "chunks", 1);
    if (job.pattern == Pattern::kPipelineChain) {
      job.micro_batch_count = Integer(j, path, "microbatches");
    }
    ForEach(j, path, "levels", job.pattern == Pattern::kHierarchicalAllReduce,
            [&](const Json& item, const std::string& level_path) {
              job.levels.push_back(AsInteger(item, level_path));
            });
    return job;
  }

  base::Violations violations_;
};

}  // namespace

absl::StatusOr<NetworkCase> ParseNetworkCase(absl::string_view json_text,
                                             absl::string_view file_name) {
  Json root;
  try {
    root = Json::parse(json_text.begin(), json_text.end());
  } catch (const Json::exception& error) {  // the library's way of reporting line and column
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ": is not JSON: ", absl::string_view(error.what()).substr(0, 300)));
  }
  if (!root.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(file_name, ": is a JSON ", root.type_name(),
                                                   " but must be an object with topology, jobs"));
  }
  CaseReader reader;
  NetworkCase network_case = reader.Read(root);
  if (reader.violations().empty()) {
    reader.violations().AddStatus("case", ValidateNetworkCase(network_case));
  }
  if (!reader.violations().empty()) return reader.violations().ToStatus();
  return network_case;
}

}  // namespace sextant::network_sim
