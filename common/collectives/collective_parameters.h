// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_PARAMETERS_H_
#define SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_PARAMETERS_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/hardware/cluster.h"
#include "common/parameters/parameter_descriptor.h"
#include "common/parameters/parameter_set.h"
#include "common/parameters/spread.h"

namespace sextant::collectives {

// Fitted parameters of one family of collectives on one fabric inside a node; the formula is
// NodeSeconds in collective_formula.h. Blocks "collective.<fabric>.<family>", for example
// "collective.nvlink.all_reduce"; fabrics and families are listed below.
template <typename T>
struct FabricParameters {
  T efficiency;
  T base_seconds;
  T step_seconds;
  T chunk_seconds;
  T copy_share;
  T fast_base_seconds;
  T fast_step_seconds;
  T fast_efficiency;
  T host_seconds;

  static constexpr size_t kCount = 9;
  static FabricParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
  }
};

// All-reduce with the reduction in the switches of the node. Block "collective.nvlink.in_network".
template <typename T>
struct InNetworkParameters {
  T efficiency;
  T base_seconds;
  T chunk_seconds;

  static constexpr size_t kCount = 3;
  static InNetworkParameters FromArray(const T* v) { return {v[0], v[1], v[2]}; }
};

// The part of a collective that crosses nodes. Latencies count in trips of the cluster's own
// network latency, so that fabrics of different latency share parameters. Block
// "collective.network".
template <typename T>
struct NetworkParameters {
  T efficiency;
  T base_seconds;
  T step_trips;
  T chunk_trips;
  T most_chunk_trips;
  T one_way_chunk_share;
  T serial_share;
  T send_efficiency;
  T burst_bytes;
  T sustained_share;

  static constexpr size_t kCount = 10;
  static NetworkParameters FromArray(const T* v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]};
  }
};

// Families that share parameters. All-gather, reduce-scatter and broadcast are kGather.
enum class Family : int { kAllReduce, kGather, kAllToAll, kSendReceive };
inline constexpr size_t kFamilyCount = 4;
// What carries a group's traffic inside a node: NVLink (through switches or a bridge) or PCIe.
enum class Carrier : int { kNvLink, kPcie };
inline constexpr size_t kCarrierCount = 2;

absl::string_view FabricBlock(Carrier carrier, Family family);  // "collective.nvlink.all_reduce"
inline constexpr absl::string_view kInNetworkBlock = "collective.nvlink.in_network";
inline constexpr absl::string_view kNetworkBlock = "collective.network";

// Everything that EstimateCollective reads from a parameter set.
template <typename T>
struct CollectiveParameters {
  std::array<std::array<FabricParameters<T>, kFamilyCount>, kCarrierCount> fabric;
  InNetworkParameters<T> in_network;
  NetworkParameters<T> network;
  // Which parameters are another accelerator's or initial values: such answers are extrapolated.
  std::array<std::array<bool, kFamilyCount>, kCarrierCount> fabric_transferred{};
  bool network_transferred = false;
  // How far measurements lie from answers inside a node, and from those that cross nodes.
  std::array<std::array<parameters::Spread, kFamilyCount>, kCarrierCount> fabric_spread{};
  parameters::Spread network_spread;

  const FabricParameters<T>& Fabric(Carrier carrier, Family family) const {
    return fabric[static_cast<size_t>(carrier)][static_cast<size_t>(family)];
  }
};

// Descriptors in the order of the structs' members. Initial values: medians of fits to published
// nccl-tests tables of A100 and H100 servers.
const std::array<parameters::ParameterDescriptor, FabricParameters<double>::kCount>&
FabricDescriptors(Carrier carrier, Family family);
const std::array<parameters::ParameterDescriptor, InNetworkParameters<double>::kCount>&
InNetworkDescriptors();
const std::array<parameters::ParameterDescriptor, NetworkParameters<double>::kCount>&
NetworkDescriptors();

// Parameters of the cluster's accelerator under `profile`; block by block its donor's where it has
// none, else initial values.
CollectiveParameters<double> ResolveCollectiveParameters(const parameters::ParameterSet& set,
                                                         const hardware::Cluster& cluster,
                                                         absl::string_view profile);

// Where nobody measured: 0.6 to 1.6 times the time of initial values; an assumption.
inline constexpr parameters::Spread kUnmeasuredCollective = {-0.5, 0.5};

// Every parameter of this room under its full key, for validating a set.
std::vector<parameters::KeyedDescriptor> CollectiveDescriptors();

}  // namespace sextant::collectives

#endif  // SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_PARAMETERS_H_
