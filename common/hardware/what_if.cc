// SPDX-License-Identifier: Apache-2.0
#include "common/hardware/what_if.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/violations.h"

namespace sextant::hardware {
namespace {

constexpr double kMaxFactor = 1e6;
constexpr char kSuffix[] = "-what-if";

int64_t Scaled(int64_t value, double factor) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(value) * factor));
}

struct Property {
  const char* name;
  void (*scale)(Cluster& cluster, double factor);
};
constexpr Property kProperties[] = {
    {"matrix_rate",
     [](Cluster& c, double f) {
       for (double& rate : c.accelerator.matrix_flop_per_second) rate *= f;
     }},
    {"vector_rate", [](Cluster& c, double f) { c.accelerator.vector_flop_per_second *= f; }},
    {"sm_count",
     [](Cluster& c, double f) {
       c.accelerator.sm_count = static_cast<int>(Scaled(c.accelerator.sm_count, f));
     }},
    {"l2_bandwidth", [](Cluster& c, double f) { c.accelerator.l2_bandwidth_bytes_per_second *= f; }},
    {"l2_capacity",
     [](Cluster& c, double f) { c.accelerator.l2_bytes = Scaled(c.accelerator.l2_bytes, f); }},
    {"hbm_bandwidth",
     [](Cluster& c, double f) { c.accelerator.hbm_bandwidth_bytes_per_second *= f; }},
    {"hbm_capacity",
     [](Cluster& c, double f) { c.accelerator.hbm_bytes = Scaled(c.accelerator.hbm_bytes, f); }},
    {"node_bandwidth",
     [](Cluster& c, double f) {
       c.node_bandwidth_bytes_per_second *= f;
       c.accelerator.nvlink_bandwidth_bytes_per_second *= f;
     }},
    {"node_latency", [](Cluster& c, double f) { c.node_latency_seconds *= f; }},
    {"network_bandwidth", [](Cluster& c, double f) { c.network_bandwidth_bytes_per_second *= f; }},
    {"network_latency", [](Cluster& c, double f) { c.network_latency_seconds *= f; }},
};

template <typename Value>
std::vector<std::string> NamesOf(const ByName<Value>& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.push_back(name);
  return names;
}

class Changer {
 public:
  Changer(const Technologies& technologies, Cluster& cluster)
      : technologies_(technologies), cluster_(cluster) {}

  absl::Status Run(const WhatIf& what_if) {
    if (!what_if.logic.empty()) ChangeLogic(what_if.logic);
    if (!what_if.memory.empty()) ChangeMemory(what_if.memory);
    if (const double* rate = Find("node_fabric", technologies_.node_fabric_bytes_per_second,
                                  what_if.node_fabric)) {
      cluster_.node_bandwidth_bytes_per_second = *rate;
      cluster_.accelerator.nvlink_bandwidth_bytes_per_second = *rate;
      cluster_.node_fabric = NodeFabric::kNvSwitch;
    }
    if (const double* rate =
            Find("network", technologies_.network_bytes_per_second, what_if.network)) {
      cluster_.network_bandwidth_bytes_per_second = *rate * cluster_.gpus_per_node;
    }
    for (const auto& [name, factor] : what_if.scale) Scale(name, factor);
    return violations_.ToStatus();
  }

 private:
  // Null where `name` is empty, or unknown, which is a violation.
  template <typename Value>
  const Value* Find(absl::string_view field, const ByName<Value>& table, const std::string& name) {
    if (name.empty()) return nullptr;
    const auto found = table.find(name);
    if (found != table.end()) return &found->second;
    violations_.Add(field, base::UnknownName("generation", name, NamesOf(table)).message());
    return nullptr;
  }

  void ChangeLogic(const std::string& name) {
    const double* rate = Find("logic", technologies_.logic_rate, name);
    const auto own = technologies_.logic_of_architecture.find(cluster_.accelerator.architecture);
    if (own == technologies_.logic_of_architecture.end()) {
      violations_.Add("logic", absl::StrCat("is \"", name, "\" but the node of architecture \"",
                                            cluster_.accelerator.architecture,
                                            "\" is not known; scale matrix_rate instead"));
    } else if (rate != nullptr) {
      const double factor = *rate / technologies_.logic_rate.at(own->second);
      for (const char* property : {"matrix_rate", "vector_rate", "sm_count", "l2_bandwidth"}) {
        Scale(property, factor);
      }
    }
  }

  void ChangeMemory(const std::string& name) {
    const MemoryStack* stack = Find("memory", technologies_.memory, name);
    const auto count = technologies_.stacks_of_accelerator.find(cluster_.accelerator.name);
    if (count == technologies_.stacks_of_accelerator.end()) {
      violations_.Add("memory", absl::StrCat("is \"", name, "\" but the stacks of accelerator ",
                                             cluster_.accelerator.name,
                                             " are not known; scale hbm_bandwidth instead"));
    } else if (stack != nullptr) {
      cluster_.accelerator.hbm_bandwidth_bytes_per_second =
          stack->bandwidth_bytes_per_second * static_cast<double>(count->second);
      cluster_.accelerator.hbm_bytes = stack->capacity_bytes * count->second;
    }
  }

  void Scale(absl::string_view name, double factor) {
    const auto property = std::find_if(std::begin(kProperties), std::end(kProperties),
                                       [&](const Property& p) { return name == p.name; });
    const std::string field = absl::StrCat("scale[", name.substr(0, 64), "]");
    if (property == std::end(kProperties)) {
      violations_.Add(field, base::UnknownName("property", name, ScalableProperties()).message());
    } else if (!(factor > 0 && factor <= kMaxFactor)) {
      violations_.Add(field, absl::StrCat("is ", factor, " but must be above 0 and at most ",
                                          kMaxFactor));
    } else {
      property->scale(cluster_, factor);
    }
  }

  const Technologies& technologies_;
  Cluster& cluster_;
  base::Violations violations_;
};

}  // namespace

std::vector<std::string> ScalableProperties() {
  std::vector<std::string> names;
  for (const Property& property : kProperties) names.emplace_back(property.name);
  return names;
}

absl::Status ValidateTechnologies(const Technologies& t) {
  base::Violations violations;
  const auto positive = [&](absl::string_view table, const ByName<double>& values) {
    for (const auto& [name, value] : values) {
      if (std::isfinite(value) && value > 0) continue;
      violations.Add(absl::StrCat(table, "[", name, "]"),
                     absl::StrCat("is ", value, " but must be finite and above 0"));
    }
  };
  positive("logic_rate", t.logic_rate);
  positive("node_fabric_bytes_per_second", t.node_fabric_bytes_per_second);
  positive("network_bytes_per_second", t.network_bytes_per_second);
  for (const auto& [architecture, node] : t.logic_of_architecture) {
    if (t.logic_rate.count(node) > 0) continue;
    violations.Add(absl::StrCat("logic_of_architecture[", architecture, "]"),
                   base::UnknownName("node", node, NamesOf(t.logic_rate)).message());
  }
  for (const auto& [name, stack] : t.memory) {
    if (stack.capacity_bytes > 0 && std::isfinite(stack.bandwidth_bytes_per_second) &&
        stack.bandwidth_bytes_per_second > 0) {
      continue;
    }
    violations.Add(absl::StrCat("memory[", name, "]"),
                   "must have a bandwidth and a capacity above 0");
  }
  for (const auto& [name, count] : t.stacks_of_accelerator) {
    if (count >= 1 && count <= 1000) continue;
    violations.Add(absl::StrCat("stacks_of_accelerator[", name, "]"),
                   absl::StrCat("is ", count, " but must be between 1 and 1000"));
  }
  return violations.ToStatus();
}

absl::Status Apply(const WhatIf& what_if, const Technologies& technologies, Cluster& cluster) {
  const Accelerator before = cluster.accelerator;
  const absl::Status status = Changer(technologies, cluster).Run(what_if);
  if (!status.ok() || cluster.accelerator == before) return status;
  Accelerator& changed = cluster.accelerator;
  if (changed.parameter_donor.empty()) changed.parameter_donor = before.name;
  if (!absl::EndsWith(changed.name, kSuffix)) absl::StrAppend(&changed.name, kSuffix);
  return absl::OkStatus();
}

}  // namespace sextant::hardware
