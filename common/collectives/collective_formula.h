// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_FORMULA_H_
#define SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_FORMULA_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/collectives/collective.h"
#include "common/collectives/collective_parameters.h"
#include "common/hardware/cluster.h"

// Closed-form times as templates on the scalar: double serves, ceres::Jet fits. README.md derives
// them. Kinks: the choice of protocol, of in-network reduction, of the binding phase, the most that
// chunks between nodes add, and the host's floor.
namespace sextant::collectives {

// The time of one collective and what it is made of.
template <typename T>
struct CollectiveTime {
  T seconds;
  T latency_seconds;           // the same at zero bytes
  bool network_bound = false;  // the phase between nodes is the longer one
};

inline Family FamilyOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return Family::kAllReduce;
    case CollectiveKind::kAllToAll:
      return Family::kAllToAll;
    case CollectiveKind::kSendReceive:
      return Family::kSendReceive;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
      break;
  }
  return Family::kGather;
}

// Bytes that each rank sends over its link inside a group of n ranks, by kind.
inline double WireBytes(CollectiveKind kind, double bytes, double n) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * bytes * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return bytes * (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendReceive:
      break;
  }
  return bytes;
}

// What carries the traffic of `ranks` ranks of one node. A bridge carries only a pair.
inline Carrier CarrierOf(const hardware::Cluster& cluster, int64_t ranks) {
  switch (cluster.node_fabric) {
    case hardware::NodeFabric::kNvSwitch:
      return Carrier::kNvLink;
    case hardware::NodeFabric::kNvLinkPairs:
      return ranks <= 2 ? Carrier::kNvLink : Carrier::kPcie;
    case hardware::NodeFabric::kPcie:
      break;
  }
  return Carrier::kPcie;
}

// Bandwidth of one GPU's link inside the node, per direction.
inline double NodeBandwidth(const hardware::Cluster& cluster, Carrier carrier) {
  const bool bridged = cluster.node_fabric == hardware::NodeFabric::kNvLinkPairs;
  return bridged && carrier == Carrier::kPcie ? cluster.accelerator.pcie_bandwidth_bytes_per_second
                                              : cluster.node_bandwidth_bytes_per_second;
}

// True where the node's switches add up operands: NVSwitch of the third generation and later.
inline bool ReducesInNetwork(const hardware::Cluster& cluster, int64_t ranks) {
  return cluster.node_fabric == hardware::NodeFabric::kNvSwitch && ranks > 2 &&
         (cluster.accelerator.architecture == "hopper" ||
          cluster.accelerator.architecture == "blackwell");
}

// Optimally chunked pipeline: k chunks cost k * chunk_seconds and leave transfer / k unhidden, so
// that the best k costs 2 sqrt(chunk_seconds * transfer) beyond the transfer.
template <typename T>
T PipelineSeconds(const T& transfer_seconds, const T& chunk_seconds) {
  using std::sqrt;
  const T product = transfer_seconds * chunk_seconds;
  return product > T(0.0) ? T(2.0 * sqrt(product)) : T(0.0);  // sqrt has no derivative at 0
}

// Seconds inside one node: best of the high-bandwidth and the low-latency protocol.
template <typename T>
T NodeSeconds(CollectiveKind kind, double bytes, int64_t ranks, double bandwidth,
              const FabricParameters<T>& p) {
  using std::min;
  const double n = static_cast<double>(ranks);
  const double wire_seconds = WireBytes(kind, bytes, n) / bandwidth;
  const double own_seconds = kind == CollectiveKind::kSendReceive ? 0 : bytes / n / bandwidth;
  const T transfer = (wire_seconds + p.copy_share * own_seconds) / p.efficiency;
  const T bulk = p.base_seconds + p.step_seconds * (n - 2) + transfer +
                 PipelineSeconds(transfer, p.chunk_seconds);
  const T fast = p.fast_base_seconds + p.fast_step_seconds * (n - 2) +
                 (wire_seconds + p.copy_share * own_seconds) / p.fast_efficiency;
  return min(bulk, fast);
}

// All-reduce by the switches: each GPU sends its operands once, and its share of the result.
template <typename T>
T InNetworkSeconds(double bytes, int64_t ranks, double bandwidth, const InNetworkParameters<T>& p) {
  const double n = static_cast<double>(ranks);
  const T transfer = bytes * (1 + 1 / n) / bandwidth / p.efficiency;
  return p.base_seconds + transfer + PipelineSeconds(transfer, p.chunk_seconds);
}

// True where the GPUs of a node share its network interface, reached through the host: servers
// without NVSwitch. Others have interfaces per GPU.
inline bool SharesInterface(const hardware::Cluster& cluster) {
  return cluster.node_fabric != hardware::NodeFabric::kNvSwitch;
}

// Bytes that cross the boundary of one node per direction for one group, and the number of
// successive steps between nodes. All-reduce: double binary tree over the nodes, operands reduced
// inside first. Gathers: one ring through all ranks. All-to-all: everything not for this node.
struct Crossing {
  double bytes = 0;
  double steps = 1;
  double trips = 1;     // one-way network latencies per step: 2 where results come back
  bool lone = false;    // one stream per interface, not the many channels of a collective
  bool shared = false;  // the interface is shared by the GPUs of its node
};
inline Crossing CrossingOf(const Collective& c, const hardware::Cluster& cluster) {
  const double ranks = static_cast<double>(c.ranks_per_node);
  const double n = static_cast<double>(c.group_size);
  const double nodes = std::ceil(n / ranks);
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
      return {2 * c.bytes * (nodes - 1) / nodes, std::ceil(std::log2(nodes)), 2};
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return {c.bytes * (n - 1) / n, nodes - 1};
    case CollectiveKind::kAllToAll:
      return {ranks * c.bytes * (n - ranks) / n, nodes - 1};
    case CollectiveKind::kBroadcast:
      return {c.bytes, std::ceil(std::log2(nodes))};
    case CollectiveKind::kSendReceive:
      break;
  }
  return {c.bytes * ranks, 1, 1, true, SharesInterface(cluster)};
}

// Network bandwidth of one node that one of its groups can use: no more than the share of its
// ranks' interfaces, divided among groups where these are more than the interfaces.
inline double NetworkBandwidth(const Collective& c, const hardware::Cluster& cluster) {
  const double gpus = std::max(1, cluster.gpus_per_node);
  const double ranks = SharesInterface(cluster) ? gpus : static_cast<double>(c.ranks_per_node);
  const double share = std::min({1.0, ranks / gpus, 1.0 / static_cast<double>(c.groups_per_node)});
  return cluster.network_bandwidth_bytes_per_second * share / cluster.oversubscription;
}

// Seconds for the bytes of one stream over an interface without flow control of its own (TCP on
// Ethernet): at full rate while they fit into buffers, at the rate that the stream sustains beyond.
// The sixth power makes the change as steep as measured (from 2 to 4.5 times the wire's time
// between 4 and 6 MB); the sum grows with bytes.
template <typename T>
T BurstSeconds(double bytes, double bandwidth, const NetworkParameters<T>& p) {
  const T full = bytes / bandwidth / p.efficiency;
  const T fill = bytes / p.burst_bytes;
  const T cube = fill * fill * fill;
  const T held_back = cube * cube / (1.0 + cube * cube);
  return full + (full / p.sustained_share - full) * held_back;
}

template <typename T>
T NetworkSeconds(const Crossing& crossing, double bandwidth, double latency_seconds,
                 const NetworkParameters<T>& p) {
  using std::min;
  T transfer = crossing.bytes / bandwidth / (crossing.lone ? p.send_efficiency : p.efficiency);
  if (crossing.lone && crossing.shared) transfer = BurstSeconds(crossing.bytes, bandwidth, p);
  const T chunks = min(PipelineSeconds(transfer, T(p.chunk_trips * latency_seconds)),
                       T(p.most_chunk_trips * latency_seconds));
  return p.base_seconds + p.step_trips * (crossing.steps * crossing.trips * latency_seconds) +
         transfer + (crossing.trips > 1 ? T(1.0) : p.one_way_chunk_share) * chunks;
}

// Seconds of a valid collective. A group of one rank takes none.
template <typename T>
CollectiveTime<T> CollectiveSeconds(const Collective& c, const hardware::Cluster& cluster,
                                    const CollectiveParameters<T>& p) {
  using std::max;
  using std::min;
  if (c.group_size <= 1) return {T(0.0), T(0.0), false};
  const int64_t ranks = min(c.ranks_per_node, c.group_size);
  const Carrier carrier = CarrierOf(cluster, ranks);
  const FabricParameters<T>& fabric = p.Fabric(carrier, FamilyOf(c.kind));
  const double bandwidth = NodeBandwidth(cluster, carrier);
  // What moves inside a node: of a group that spans nodes every rank still receives all that is
  // gathered, and exchanges with its own node only the blocks meant for it.
  const double share = static_cast<double>(ranks) / static_cast<double>(c.group_size);
  const double inside_bytes = c.kind == CollectiveKind::kAllToAll ? c.bytes * share : c.bytes;
  const auto inside = [&](double bytes) {
    T seconds = NodeSeconds(c.kind, bytes, ranks, bandwidth, fabric);
    if (c.kind == CollectiveKind::kAllReduce && ReducesInNetwork(cluster, ranks)) {
      seconds = min(seconds, InNetworkSeconds(bytes, ranks, bandwidth, p.in_network));
    }
    return seconds;
  };
  const T zero = T(0.0);
  if (!c.SpansNodes()) {
    return {max(inside(inside_bytes), fabric.host_seconds), max(inside(0), fabric.host_seconds),
            false};
  }
  const Crossing crossing = CrossingOf(c, cluster);
  const double network_bandwidth = NetworkBandwidth(c, cluster);
  const double latency = cluster.network_latency_seconds;
  const T across = NetworkSeconds(crossing, network_bandwidth, latency, p.network);
  Crossing nothing = crossing;
  nothing.bytes = 0;
  const T across_latency = NetworkSeconds(nothing, network_bandwidth, latency, p.network);
  const T within = ranks > 1 ? inside(inside_bytes) : zero;
  const T within_latency = ranks > 1 ? inside(0) : zero;
  // Chunks of one phase overlap those of the other; latencies add up.
  const T across_bulk = across - across_latency;
  const T within_bulk = within - within_latency;
  const T latency_seconds = across_latency + within_latency;
  const T seconds = latency_seconds + max(across_bulk, within_bulk) +
                    p.network.serial_share * min(across_bulk, within_bulk);
  return {max(seconds, fabric.host_seconds), max(latency_seconds, fabric.host_seconds),
          across_bulk >= within_bulk};
}

}  // namespace sextant::collectives

#endif  // SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_FORMULA_H_
