// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/network_case.h"

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/violations.h"

namespace sextant::network_sim {
namespace {

constexpr std::array<absl::string_view, 9> kTopologyNames = {"ring",
                                                             "line",
                                                             "torus",
                                                             "mesh",
                                                             "fully_connected",
                                                             "switch",
                                                             "leaf_spine",
                                                             "nvswitch_rails",
                                                             "nvswitch_leaf_spine"};

constexpr std::array<absl::string_view, 14> kPatternNames = {"ring_all_reduce",
                                                             "ring_reduce_scatter",
                                                             "ring_all_gather",
                                                             "direct_reduce_scatter",
                                                             "direct_all_gather",
                                                             "direct_all_to_all",
                                                             "direct_all_reduce",
                                                             "pairwise_all_to_all",
                                                             "recursive_doubling_all_reduce",
                                                             "halving_doubling_all_reduce",
                                                             "tree_all_reduce",
                                                             "hierarchical_all_reduce",
                                                             "pipeline_chain",
                                                             "flows"};

// Node indices enter the path hash as 20 bit fields.
constexpr int64_t kMaxEndpoints = int64_t{1} << 19;
constexpr int64_t kMaxFullyConnected = 2048;  // links grow with the square
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxPayload = 1 << 30;
constexpr double kMaxSeconds = 1e6;
constexpr size_t kMaxReported = 64;  // violations of one list, the rest is only counted

template <typename E, size_t N>
absl::StatusOr<E> ParseName(absl::string_view name, const std::array<absl::string_view, N>& names) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(names, ", ")));
}

class CaseValidator {
 public:
  explicit CaseValidator(const NetworkCase& network_case) : case_(network_case) {}

  absl::Status Run() {
    CheckTopology();
    CheckTransport();
    for (size_t i = 0; i < case_.link_faults.size() && i < kMaxReported; ++i) {
      const LinkFault& fault = case_.link_faults[i];
      // Whether a link joins a and b is known to the topology: simulate.cc reports it.
      Range(absl::StrCat("link_faults[", i, "].bandwidth_fraction"), fault.bandwidth_fraction, 0.0,
            1.0);
    }
    if (case_.jobs.empty()) violations_.Add("jobs", "is empty; give at least one job");
    for (size_t i = 0; i < case_.jobs.size() && violations_.items().size() < kMaxReported; ++i) {
      CheckJob(absl::StrCat("jobs[", i, "]"), case_.jobs[i]);
    }
    return violations_.ToStatus();
  }

 private:
  template <typename T>
  void Range(absl::string_view field, T value, T low, T high) {
    if (value >= low && value <= high) return;
    violations_.Add(field, absl::StrCat("is ", value, " but must be between ", low, " and ", high));
  }

  void CheckLink(absl::string_view prefix, const LinkClass& link) {
    if (!(link.bandwidth_bytes_per_second >= 1e3 && link.bandwidth_bytes_per_second <= 1e18)) {
      violations_.Add(absl::StrCat(prefix, "_bandwidth_GBps"),
                      absl::StrCat("is ", link.bandwidth_bytes_per_second / 1e9,
                                   " but must be between 1e-06 and 1e+09"));
    }
    if (!(link.latency_seconds >= 0 && link.latency_seconds <= 1)) {
      violations_.Add(
          absl::StrCat(prefix, "_latency_ns"),
          absl::StrCat("is ", link.latency_seconds * 1e9, " but must be between 0 and 1e+09"));
    }
  }

  void CheckGrid(const TopologySpec& t) {
    const bool one = t.kind == TopologyKind::kRing || t.kind == TopologyKind::kLine;
    const absl::string_view field = one ? "topology.endpoints" : "topology.dims";
    if (t.dimensions.empty() || t.dimensions.size() > 8 || (one && t.dimensions.size() != 1)) {
      violations_.Add(field, absl::StrCat("has ", t.dimensions.size(), " sizes but must have ",
                                          one ? "one" : "1 to 8"));
    }
    for (const int64_t d : t.dimensions) Range(field, d, int64_t{1}, kMaxEndpoints);
    if (t.links.size() != t.dimensions.size()) {
      violations_.Add("topology.link_bandwidth_GBps",
                      absl::StrCat("has ", t.links.size(),
                                   " values but must have one or one per "
                                   "dimension (",
                                   t.dimensions.size(), ")"));
    }
    for (const LinkClass& link : t.links) CheckLink("topology.link", link);
  }

  void CheckTopology() {
    const TopologySpec& t = case_.topology;
    const auto size = [&](absl::string_view name, int64_t value) {
      Range(absl::StrCat("topology.", name), value, int64_t{1}, kMaxEndpoints);
    };
    switch (t.kind) {
      case TopologyKind::kRing:
      case TopologyKind::kLine:
      case TopologyKind::kTorus:
      case TopologyKind::kMesh:
        CheckGrid(t);
        break;
      case TopologyKind::kFullyConnected:
      case TopologyKind::kSwitch:
        Range("topology.endpoints", t.endpoint_count, int64_t{1},
              t.kind == TopologyKind::kSwitch ? kMaxEndpoints : kMaxFullyConnected);
        if (t.links.size() != 1) {
          violations_.Add("topology.link_bandwidth_GBps",
                          absl::StrCat("has ", t.links.size(), " values but must have one"));
        }
        for (const LinkClass& link : t.links) CheckLink("topology.link", link);
        break;
      case TopologyKind::kLeafSpine:
        size("leaves", t.leaf_count);
        size("endpoints_per_leaf", t.endpoints_per_leaf);
        size("spines", t.spine_count);
        CheckLink("topology.nic", t.nic);
        CheckLink("topology.uplink", t.uplink);
        break;
      case TopologyKind::kNvSwitchRails:
      case TopologyKind::kNvSwitchLeafSpine:
        size("servers", t.server_count);
        size("gpus_per_server", t.gpus_per_server);
        CheckLink("topology.nvlink", t.nvlink);
        CheckLink("topology.nic", t.nic);
        if (t.kind == TopologyKind::kNvSwitchRails) break;
        size("servers_per_leaf", t.servers_per_leaf);
        size("spines", t.spine_count);
        CheckLink("topology.uplink", t.uplink);
        if (t.servers_per_leaf > 0 && t.server_count % t.servers_per_leaf != 0) {
          violations_.Add(
              "topology.servers_per_leaf",
              absl::StrCat("is ", t.servers_per_leaf, " but must divide servers ", t.server_count));
        }
        break;
    }
    if (!violations_.empty()) return;
    const int64_t endpoints = t.EndpointCount();
    if (endpoints < 1 || endpoints > kMaxEndpoints) {
      violations_.Add(
          "topology",
          absl::StrCat("has ", endpoints < 1 ? "more than 2^62" : absl::StrCat(endpoints),
                       " endpoints but must have between 1 and ", kMaxEndpoints));
    }
  }

  void CheckTransport() {
    const Transport& t = case_.transport;
    Range("transport.payload_bytes", t.payload_bytes, int64_t{1}, kMaxPayload);
    Range("transport.header_bytes", t.header_bytes, int64_t{0}, kMaxPayload);
    Range("transport.window_bytes", t.window_bytes, int64_t{0}, kMaxBytes);
  }

  void CheckRank(absl::string_view field, int64_t rank) {
    const int64_t endpoints = case_.topology.EndpointCount();
    if (rank >= 0 && rank < endpoints) return;
    violations_.Add(field, absl::StrCat("is ", rank, " but endpoints are 0 to ", endpoints - 1));
  }

  void CheckFlows(const std::string& path, const NetworkJob& job) {
    if (job.flows.empty()) violations_.Add(absl::StrCat(path, ".flows"), "is empty");
    for (size_t i = 0; i < job.flows.size() && violations_.items().size() < kMaxReported; ++i) {
      const FlowSpec& flow = job.flows[i];
      const std::string field = absl::StrCat(path, ".flows[", i, "]");
      CheckRank(absl::StrCat(field, ".src"), flow.source);
      CheckRank(absl::StrCat(field, ".dst"), flow.destination);
      Range(absl::StrCat(field, ".bytes"), flow.bytes, int64_t{1}, kMaxBytes);
      if (flow.source == flow.destination) {
        violations_.Add(absl::StrCat(field, ".dst"),
                        absl::StrCat("is ", flow.destination, " but must differ from src"));
      }
    }
  }

  void CheckGroup(const std::string& field, const NetworkJob& job,
                  const std::vector<int64_t>& group) {
    const int64_t n = static_cast<int64_t>(group.size());
    std::set<int64_t> seen;
    for (size_t i = 0; i < group.size() && violations_.items().size() < kMaxReported; ++i) {
      CheckRank(absl::StrCat(field, "[", i, "]"), group[i]);
      if (!seen.insert(group[i]).second) {
        violations_.Add(absl::StrCat(field, "[", i, "]"),
                        absl::StrCat("repeats rank ", group[i], "; name each rank once"));
      }
    }
    const bool power_of_two = job.pattern == Pattern::kRecursiveDoublingAllReduce ||
                              job.pattern == Pattern::kHalvingDoublingAllReduce;
    if (power_of_two && n > 0 && (n & (n - 1)) != 0) {
      violations_.Add(field, absl::StrCat("has ", n, " ranks but ", PatternName(job.pattern),
                                          " needs a power of two"));
    }
    if (job.pattern == Pattern::kHierarchicalAllReduce) {
      double product = 1;
      for (const int64_t level : job.levels) product *= static_cast<double>(level);
      if (product != static_cast<double>(n)) {
        violations_.Add(
            field, absl::StrCat("has ", n, " ranks but levels [", absl::StrJoin(job.levels, ", "),
                                "] multiply to ", product));
      }
    }
  }

  // The smallest block that the pattern makes of a message must hold at least one byte.
  void CheckBytes(const std::string& path, const NetworkJob& job) {
    const std::string field = absl::StrCat(path, ".message_bytes");
    Range(field, job.message_bytes, int64_t{1}, kMaxBytes);
    int64_t parts = 1;
    for (const std::vector<int64_t>& group : job.groups) {
      const int64_t n = static_cast<int64_t>(group.size());
      if (n < 2) continue;
      const bool whole = job.pattern == Pattern::kRecursiveDoublingAllReduce ||
                         job.pattern == Pattern::kPipelineChain;
      const int64_t here = whole ? 1
                           : job.pattern == Pattern::kTreeAllReduce
                               ? job.chunk_count
                               : n * (job.bidirectional ? 2 : 1);
      parts = std::max(parts, here);
    }
    if (job.message_bytes >= 1 && job.message_bytes < parts) {
      violations_.Add(field, absl::StrCat("is ", job.message_bytes, " but is divided into ", parts,
                                          " parts of at least one byte"));
    }
  }

  void CheckJob(const std::string& path, const NetworkJob& job) {
    if (!(job.start_seconds >= 0 && job.start_seconds <= kMaxSeconds)) {
      violations_.Add(absl::StrCat(path, ".start_ns"),
                      absl::StrCat("is ", job.start_seconds * 1e9, " but must be between 0 and ",
                                   kMaxSeconds * 1e9));
    }
    if (job.pattern == Pattern::kFlows) return CheckFlows(path, job);
    if (job.groups.empty()) violations_.Add(absl::StrCat(path, ".groups"), "is empty");
    Range(absl::StrCat(path, ".chunks"), job.chunk_count, int64_t{1}, int64_t{1} << 20);
    Range(absl::StrCat(path, ".microbatches"), job.micro_batch_count, int64_t{1}, int64_t{1} << 20);
    if (job.pattern == Pattern::kHierarchicalAllReduce) {
      if (job.levels.empty()) violations_.Add(absl::StrCat(path, ".levels"), "is empty");
      for (const int64_t level : job.levels) {
        Range(absl::StrCat(path, ".levels"), level, int64_t{1}, kMaxEndpoints);
      }
    }
    for (size_t g = 0; g < job.groups.size() && violations_.items().size() < kMaxReported; ++g) {
      CheckGroup(absl::StrCat(path, ".groups[", g, "]"), job, job.groups[g]);
    }
    CheckBytes(path, job);
  }

  const NetworkCase& case_;
  base::Violations violations_;
};

// Product of sizes, 0 where one is not positive or the product leaves 62 bits.
int64_t Product(absl::Span<const int64_t> sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || product > (int64_t{1} << 62) / size) return 0;
    product *= size;
  }
  return product;
}

}  // namespace

absl::string_view TopologyKindName(TopologyKind kind) {
  return kTopologyNames[static_cast<size_t>(kind)];
}
absl::StatusOr<TopologyKind> ParseTopologyKind(absl::string_view name) {
  return ParseName<TopologyKind>(name, kTopologyNames);
}
absl::string_view PatternName(Pattern pattern) {
  return kPatternNames[static_cast<size_t>(pattern)];
}
absl::StatusOr<Pattern> ParsePattern(absl::string_view name) {
  return ParseName<Pattern>(name, kPatternNames);
}

int64_t TopologySpec::EndpointCount() const {
  switch (kind) {
    case TopologyKind::kRing:
    case TopologyKind::kLine:
    case TopologyKind::kTorus:
    case TopologyKind::kMesh:
      return dimensions.empty() ? 0 : Product(dimensions);
    case TopologyKind::kFullyConnected:
    case TopologyKind::kSwitch:
      return endpoint_count;
    case TopologyKind::kLeafSpine:
      return Product({leaf_count, endpoints_per_leaf});
    case TopologyKind::kNvSwitchRails:
    case TopologyKind::kNvSwitchLeafSpine:
      break;
  }
  return Product({server_count, gpus_per_server});
}

absl::Status ValidateNetworkCase(const NetworkCase& network_case) {
  return CaseValidator(network_case).Run();
}

}  // namespace sextant::network_sim
