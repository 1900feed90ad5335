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
    ForEach(root, "", "link_faults", false, [&](const Json& item, const std::string& path) {
      LinkFault fault;
      fault.a = Integer(item, path, "a");
      fault.b = Integer(item, path, "b");
      fault.bandwidth_fraction = Number(item, path, "bandwidth_fraction");
      result.link_faults.push_back(fault);
    });
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
    ForEach(root, "", "jobs", true, [&](const Json& item, const std::string& path) {
      result.jobs.push_back(ReadJob(item, path, result.jobs.size()));
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

  NetworkJob ReadJob(const Json& j, const std::string& path, size_t index) {
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
    ForEach(j, path, "groups", true, [&](const Json& item, const std::string& group_path) {
      std::vector<int64_t>& group = job.groups.emplace_back();
      if (!item.is_array()) {
        violations_.Add(group_path, "must be a list of ranks");
        return;
      }
      for (const Json& rank : item) group.push_back(AsInteger(rank, group_path));
    });
    job.message_bytes = Integer(j, path, "message_bytes");
    if (const Json* both = Find(j, "bidirectional")) {
      if (both->is_boolean()) {
        job.bidirectional = both->get<bool>();
      } else {
        violations_.Add(Path(path, "bidirectional"), "must be true or false");
      }
    }
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
