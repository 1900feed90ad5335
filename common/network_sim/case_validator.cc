// SPDX-License-Identifier: Apache-2.0
// ValidateNetworkCase of network_case.h.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/violations.h"
#include "common/network_sim/network_case.h"

namespace sextant::network_sim {
namespace {

// Node indices enter the path hash as 20 bit fields.
constexpr int64_t kMaxEndpoints = int64_t{1} << 19;
constexpr int64_t kMaxFullyConnected = 2048;  // links grow with the square
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxPayload = 1 << 30;
constexpr double kMaxSeconds = 1e6;
constexpr double kMaxLinks = 2e7;
constexpr size_t kMaxParallelDimensions = 6;  // all orders are tried
constexpr size_t kMaxReported = 64;           // violations of one list, the rest is only counted

class CaseValidator {
 public:
  explicit CaseValidator(const NetworkCase& network_case) : case_(network_case) {}

  absl::Status Run() {
    CheckTopology();
    CheckTransport();
    CheckFaults();
    CheckParallel();
    if (case_.jobs.empty() && case_.parallel.empty()) {
      violations_.Add("jobs", "is empty; give at least one job");
    }
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
      violations_.Add(absl::StrCat(prefix, "bandwidth_GBps"),
                      absl::StrCat("is ", link.bandwidth_bytes_per_second / 1e9,
                                   " but must be between 1e-06 and 1e+09"));
    }
    if (!(link.latency_seconds >= 0 && link.latency_seconds <= 1)) {
      violations_.Add(
          absl::StrCat(prefix, "latency_ns"),
          absl::StrCat("is ", link.latency_seconds * 1e9, " but must be between 0 and 1e+09"));
    }
  }

  void CheckFault(const std::string& field, double bandwidth_fraction, double loss_fraction) {
    Range(absl::StrCat(field, ".bandwidth_fraction"), bandwidth_fraction, 0.0, 1.0);
    Range(absl::StrCat(field, ".loss_fraction"), loss_fraction, 0.0, 0.999999);
  }

  // Whether links and switches of these names exist is known to the topology, which reports it.
  void CheckFaults() {
    const Faults& f = case_.faults;
    for (size_t i = 0; i < f.links.size() && i < kMaxReported; ++i) {
      CheckFault(absl::StrCat("link_faults[", i, "]"), f.links[i].bandwidth_fraction,
                 f.links[i].loss_fraction);
    }
    for (size_t i = 0; i < f.patterns.size() && i < kMaxReported; ++i) {
      CheckFault(absl::StrCat("link_faults[", f.links.size() + i, "]"),
                 f.patterns[i].bandwidth_fraction, f.patterns[i].loss_fraction);
    }
    for (size_t i = 0; i < f.slow_ranks.size() && i < kMaxReported; ++i) {
      const std::string field = absl::StrCat("slow_ranks[", i, "]");
      Range(absl::StrCat(field, ".slowdown"), f.slow_ranks[i].slowdown, 1.0, 1e6);
      if (violations_.empty()) CheckRank(absl::StrCat(field, ".rank"), f.slow_ranks[i].rank);
    }
    for (size_t i = 0; i < f.random.size() && i < kMaxReported; ++i) {
      const std::string field = absl::StrCat("random_faults[", i, "]");
      Range(absl::StrCat(field, ".dead_probability"), f.random[i].dead_probability, 0.0, 1.0);
      Range(absl::StrCat(field, ".derated_probability"), f.random[i].derated_probability, 0.0, 1.0);
      Range(absl::StrCat(field, ".bandwidth_fraction"), f.random[i].bandwidth_fraction, 0.0, 1.0);
    }
  }

  void CheckParallel() {
    if (case_.parallel.empty()) return;
    if (case_.parallel.size() > kMaxParallelDimensions) {
      violations_.Add("parallel",
                      absl::StrCat("has ", case_.parallel.size(),
                                   " dimensions but must have at most ", kMaxParallelDimensions));
      return;
    }
    double ranks = 1;
    for (size_t i = 0; i < case_.parallel.size(); ++i) {
      const std::string field = absl::StrCat("parallel[", i, "]");
      const ParallelDimension& dimension = case_.parallel[i];
      Range(absl::StrCat(field, ".size"), dimension.size, int64_t{1}, kMaxEndpoints);
      if (dimension.job.pattern == Pattern::kFlows) {
        violations_.Add(absl::StrCat(field, ".pattern"),
                        "is flows but must be a pattern over a group of ranks");
      }
      ranks *= static_cast<double>(dimension.size);
    }
    if (violations_.empty() && ranks > static_cast<double>(case_.topology.EndpointCount())) {
      violations_.Add("parallel", absl::StrCat("has sizes that multiply to ", ranks,
                                               " ranks but the "
                                               "topology has ",
                                               case_.topology.EndpointCount()));
    }
    for (size_t i = 0; i < case_.parallel.size() && violations_.empty(); ++i) {
      NetworkJob job = case_.parallel[i].job;  // with a group of the right size, to be checked
      std::vector<int64_t>& group = job.groups.emplace_back();
      for (int64_t r = 0; r < case_.parallel[i].size; ++r) group.push_back(r);
      CheckJob(absl::StrCat("parallel[", i, "]"), job);
    }
  }

  void CheckGraph(const TopologySpec& t) {
    Range("topology.endpoints", t.endpoint_count, int64_t{1}, kMaxEndpoints);
    Range("topology.switches", t.switch_count, int64_t{0}, kMaxEndpoints);
    const int64_t nodes = t.endpoint_count + t.switch_count;
    std::set<std::pair<int64_t, int64_t>> seen;
    for (size_t i = 0; i < t.graph_links.size() && violations_.items().size() < kMaxReported; ++i) {
      const GraphLink& link = t.graph_links[i];
      const std::string field = absl::StrCat("topology.links[", i, "]");
      CheckLink(absl::StrCat(field, "."), link.forward);
      CheckLink(absl::StrCat(field, ".reverse_"), link.backward);
      Range(absl::StrCat(field, ".cost"), link.cost, int64_t{1}, int64_t{10});
      const auto [low, high] = std::minmax(link.a, link.b);
      if (low < 0 || high >= nodes || low == high) {
        violations_.Add(field, absl::StrCat("joins nodes ", link.a, " and ", link.b,
                                            " but must join two of 0 to ", nodes - 1));
      } else if (!seen.insert({low, high}).second) {
        violations_.Add(field, absl::StrCat("joins nodes ", link.a, " and ", link.b,
                                            " again; give one link of their joint bandwidth"));
      }
    }
  }

  void CheckFatTree(const TopologySpec& t) {
    Size("pods", t.pod_count);
    Size("leaves_per_pod", t.leaves_per_pod);
    Size("endpoints_per_leaf", t.endpoints_per_leaf);
    Size("spines_per_pod", t.spines_per_pod);
    Size("cores", t.spine_count);
    if (t.spines_per_pod > 0 && t.spine_count % t.spines_per_pod != 0) {
      violations_.Add("topology.cores", absl::StrCat("is ", t.spine_count,
                                                     " but must be a multiple "
                                                     "of spines_per_pod ",
                                                     t.spines_per_pod));
    }
    CheckLink("topology.nic_", t.nic);
    CheckLink("topology.uplink_", t.uplink);
    CheckLink("topology.core_uplink_", t.core_uplink);
  }

  void CheckDragonfly(const TopologySpec& t) {
    Size("groups", t.group_count);
    Size("routers_per_group", t.routers_per_group);
    Size("endpoints_per_router", t.endpoints_per_router);
    Size("global_links_per_router", t.global_links_per_router);
    const double ports =
        static_cast<double>(t.routers_per_group) * static_cast<double>(t.global_links_per_router);
    if (violations_.empty() && static_cast<double>(t.group_count) > ports + 1) {
      violations_.Add("topology.groups",
                      absl::StrCat("is ", t.group_count, " but ", ports,
                                   " global links of a group reach only as many other groups"));
    }
    // Routers of a group are fully connected.
    Range("topology.routers_per_group", t.routers_per_group, int64_t{1}, kMaxFullyConnected);
    CheckLink("topology.nic_", t.nic);
    CheckLink("topology.local_", t.local);
    CheckLink("topology.global_", t.global);
  }

  void Size(absl::string_view name, int64_t value) {
    Range(absl::StrCat("topology.", name), value, int64_t{1}, kMaxEndpoints);
  }

  // Switches and links that the sizes make, in doubles: they may be far too many.
  void CheckExtent(const TopologySpec& t) {
    const auto d = [](int64_t v) { return static_cast<double>(v); };
    double switches = 0;
    double links = d(t.EndpointCount()) * 2;
    switch (t.kind) {
      case TopologyKind::kLeafSpine:
        switches = d(t.leaf_count) + d(t.spine_count);
        links += d(t.leaf_count) * d(t.spine_count);
        break;
      case TopologyKind::kNvSwitchLeafSpine:
        switches = d(t.server_count) * 2 + d(t.spine_count);
        links += d(t.server_count) / d(t.servers_per_leaf) * d(t.spine_count);
        break;
      case TopologyKind::kFatTree:
        switches = d(t.pod_count) * (d(t.leaves_per_pod) + d(t.spines_per_pod)) + d(t.spine_count);
        links += d(t.pod_count) * (d(t.leaves_per_pod) * d(t.spines_per_pod) + d(t.spine_count));
        break;
      case TopologyKind::kDragonfly:
        switches = d(t.group_count) * d(t.routers_per_group);
        links += switches * d(t.routers_per_group) / 2 + d(t.group_count) * d(t.group_count) / 2;
        break;
      default:
        break;
    }
    if (switches > kMaxEndpoints || links > kMaxLinks) {
      violations_.Add("topology", absl::StrCat("has ", switches, " switches and about ", links,
                                               " links but may have at most ", kMaxEndpoints,
                                               " and ", kMaxLinks));
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
    for (const LinkClass& link : t.links) CheckLink("topology.link_", link);
  }

  void CheckTopology() {
    const TopologySpec& t = case_.topology;
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
        for (const LinkClass& link : t.links) CheckLink("topology.link_", link);
        break;
      case TopologyKind::kLeafSpine:
        Size("leaves", t.leaf_count);
        Size("endpoints_per_leaf", t.endpoints_per_leaf);
        Size("spines", t.spine_count);
        CheckLink("topology.nic_", t.nic);
        CheckLink("topology.uplink_", t.uplink);
        break;
      case TopologyKind::kNvSwitchRails:
      case TopologyKind::kNvSwitchLeafSpine:
        Size("servers", t.server_count);
        Size("gpus_per_server", t.gpus_per_server);
        CheckLink("topology.nvlink_", t.nvlink);
        CheckLink("topology.nic_", t.nic);
        if (t.kind == TopologyKind::kNvSwitchRails) break;
        Size("servers_per_leaf", t.servers_per_leaf);
        Size("spines", t.spine_count);
        CheckLink("topology.uplink_", t.uplink);
        if (t.servers_per_leaf > 0 && t.server_count % t.servers_per_leaf != 0) {
          violations_.Add(
              "topology.servers_per_leaf",
              absl::StrCat("is ", t.servers_per_leaf, " but must divide servers ", t.server_count));
        }
        break;
      case TopologyKind::kFatTree:
        CheckFatTree(t);
        break;
      case TopologyKind::kDragonfly:
        CheckDragonfly(t);
        break;
      case TopologyKind::kGraph:
        CheckGraph(t);
        break;
    }
    if (!violations_.empty()) return;
    const int64_t endpoints = t.EndpointCount();
    if (endpoints < 1 || endpoints > kMaxEndpoints) {
      violations_.Add(
          "topology",
          absl::StrCat("has ", endpoints < 1 ? "more than 2^62" : absl::StrCat(endpoints),
                       " endpoints but must have between 1 and ", kMaxEndpoints));
      return;
    }
    CheckExtent(t);
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

  // Into how many parts of at least a byte the pattern cuts a message over n ranks.
  static int64_t SmallestParts(const NetworkJob& job, int64_t n) {
    switch (job.pattern) {
      case Pattern::kRecursiveDoublingAllReduce:
      case Pattern::kPipelineChain:
        return 1;
      case Pattern::kTreeAllReduce:
      case Pattern::kTreeBroadcast:
      case Pattern::kInNetworkAllReduce:
        return job.chunk_count;
      case Pattern::kDoubleBinaryTreeAllReduce:
        return 2 * job.chunk_count;
      case Pattern::kHierarchicalAllReduce:
        return n * job.chunk_count;
      default:
        return n * (job.bidirectional ? 2 : 1);
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
      parts = std::max(parts, SmallestParts(job, n));
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

}  // namespace

absl::Status ValidateNetworkCase(const NetworkCase& network_case) {
  return CaseValidator(network_case).Run();
}

}  // namespace sextant::network_sim
