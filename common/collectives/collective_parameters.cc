// SPDX-License-Identifier: Apache-2.0
#include "common/collectives/collective_parameters.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sextant::collectives {
namespace {

using parameters::KeyedDescriptor;
using parameters::ParameterDescriptor;

constexpr size_t kFabricCount = FabricParameters<double>::kCount;
using FabricArray = std::array<ParameterDescriptor, kFabricCount>;

// Initial values of the members of FabricParameters, in order.
using FabricInitial = std::array<double, kFabricCount>;

constexpr FabricArray MakeFabric(const FabricInitial& v) {
  return {{
      {"efficiency", v[0], 0.02, 1.0, "Share of the link bandwidth that long messages reach."},
      {"base_seconds", v[1], 0.0, 1e-3, "Fixed time of the high-bandwidth protocol, seconds."},
      {"step_seconds", v[2], 0.0, 1e-4, "Further time per rank beyond two, seconds."},
      {"chunk_seconds", v[3], 0.0, 1e-3,
       "Overhead per pipelined chunk of a long message, seconds."},
      {"copy_share", v[4], 0.0, 2.0,
       "Cost of copying a rank's own block, in units of sending it over the link."},
      {"fast_base_seconds", v[5], 0.0, 1e-3, "Fixed time of the low-latency protocol, seconds."},
      {"fast_step_seconds", v[6], 0.0, 1e-4,
       "Further time of the low-latency protocol per rank beyond two, seconds."},
      {"fast_efficiency", v[7], 0.001, 1.0,
       "Share of the link bandwidth that the low-latency protocol reaches."},
      {"host_seconds", v[8], 0.0, 1e-3, "Least time of a call that the host prepares, seconds."},
  }};
}

constexpr std::array<std::array<FabricArray, kFamilyCount>, kCarrierCount> kFabric = {{
    {MakeFabric({0.80, 8e-6, 1.7e-6, 4e-6, 0.3, 9e-6, 1.6e-6, 0.15, 0.0}),
     MakeFabric({0.83, 7e-6, 0.9e-6, 4e-6, 0.4, 7e-6, 1e-6, 0.05, 0.0}),
     MakeFabric({0.79, 10e-6, 0.4e-6, 4e-6, 0.2, 9e-6, 0.2e-6, 0.1, 0.0}),
     MakeFabric({0.83, 9e-6, 0.0, 1e-6, 0.0, 5e-6, 0.0, 0.1, 0.0})},
    {MakeFabric({0.80, 20e-6, 3e-6, 5e-6, 0.1, 14e-6, 3e-6, 0.2, 0.0}),
     MakeFabric({0.8, 15e-6, 2e-6, 2e-6, 0.0, 10e-6, 2e-6, 0.2, 0.0}),
     MakeFabric({0.7, 15e-6, 1e-6, 2e-6, 0.0, 10e-6, 1e-6, 0.2, 0.0}),
     MakeFabric({0.8, 12e-6, 0.0, 2e-6, 0.0, 8e-6, 0.0, 0.2, 0.0})},
}};

constexpr std::array<ParameterDescriptor, InNetworkParameters<double>::kCount> kInNetwork = {{
    {"efficiency", 0.65, 0.02, 1.0, "Share of the link bandwidth that long messages reach."},
    {"base_seconds", 15e-6, 0.0, 1e-3, "Fixed time, seconds."},
    {"chunk_seconds", 6e-6, 0.0, 1e-3, "Overhead per pipelined chunk, seconds."},
}};

constexpr std::array<ParameterDescriptor, NetworkParameters<double>::kCount> kNetwork = {{
    {"efficiency", 0.9, 0.02, 1.0,
     "Share of the network bandwidth that long messages reach, headers included."},
    {"base_seconds", 12e-6, 0.0, 1e-2, "Fixed time of crossing nodes, seconds."},
    {"step_trips", 1.7, 0.0, 30.0, "Network latencies that each one-way trip of a step costs."},
    {"chunk_trips", 10.0, 0.0, 200.0, "Network latencies that each pipelined chunk costs."},
    {"most_chunk_trips", 25.0, 0.0, 500.0,
     "Most network latencies that chunks add, reached when they are as long as buffers."},
    {"one_way_chunk_share", 0.05, 0.0, 1.0,
     "Share of an all-reduce's cost per chunk that kinds without a way back pay."},
    {"serial_share", 0.1, 0.0, 1.0,
     "Share of the shorter of the two phases, inside and between nodes, that is not hidden."},
    {"send_efficiency", 0.75, 0.02, 1.0,
     "Share of its interface's bandwidth that a single sender reaches, headers included."},
    // Linux's largest default socket buffer (tcp_wmem) is 4 MiB.
    {"burst_bytes", 4.2e6, 1e3, 1e9,
     "What a single sender of a shared interface sends at full rate before it is held back."},
    {"sustained_share", 1.0, 0.02, 1.0,
     "Share of that rate that a single sender of a shared interface sustains."},
}};

constexpr std::array<std::array<absl::string_view, kFamilyCount>, kCarrierCount> kBlocks = {{
    {"collective.nvlink.all_reduce", "collective.nvlink.gather", "collective.nvlink.all_to_all",
     "collective.nvlink.send_receive"},
    {"collective.pcie.all_reduce", "collective.pcie.gather", "collective.pcie.all_to_all",
     "collective.pcie.send_receive"},
}};

// True where the accelerator's shared values hold one of the block.
bool HasBlock(const parameters::ParameterSet& set, absl::string_view accelerator,
              absl::string_view block) {
  const auto found = set.accelerators().find(accelerator);
  if (found == set.accelerators().end()) return false;
  const std::string prefix = absl::StrCat(block, ".");
  const auto first = found->second.shared.lower_bound(prefix);
  return first != found->second.shared.end() && absl::StartsWith(first->first, prefix);
}

}  // namespace

absl::string_view FabricBlock(Carrier carrier, Family family) {
  return kBlocks[static_cast<size_t>(carrier)][static_cast<size_t>(family)];
}

const FabricArray& FabricDescriptors(Carrier carrier, Family family) {
  return kFabric[static_cast<size_t>(carrier)][static_cast<size_t>(family)];
}

const std::array<ParameterDescriptor, InNetworkParameters<double>::kCount>& InNetworkDescriptors() {
  return kInNetwork;
}

const std::array<ParameterDescriptor, NetworkParameters<double>::kCount>& NetworkDescriptors() {
  return kNetwork;
}

CollectiveParameters<double> ResolveCollectiveParameters(const parameters::ParameterSet& set,
                                                         const hardware::Cluster& cluster,
                                                         absl::string_view profile) {
  const std::string& own = cluster.accelerator.name;
  const std::string& donor = cluster.accelerator.parameter_donor;
  struct Block {
    std::vector<double> values;
    parameters::Spread spread;
    bool transferred = false;
  };
  // Values of one block, and whether they are not the accelerator's own.
  const auto block = [&](absl::string_view name, const auto& descriptors) {
    const bool donated = !HasBlock(set, own, name) && HasBlock(set, donor, name);
    const parameters::ParameterSource source = {donated ? donor : own, donated};
    const bool transferred =
        !HasBlock(set, own, name) && !parameters::IsMeasured(set, source, name, own);
    return Block{parameters::BlockValues(set, source, profile, name, descriptors.data(),
                                         static_cast<int>(descriptors.size())),
                 parameters::FindSpread(set, source, profile, name, kUnmeasuredCollective),
                 transferred};
  };
  CollectiveParameters<double> resolved;
  for (size_t c = 0; c < kCarrierCount; ++c) {
    for (size_t f = 0; f < kFamilyCount; ++f) {
      const auto [values, spread, transferred] = block(kBlocks[c][f], kFabric[c][f]);
      resolved.fabric[c][f] = FabricParameters<double>::FromArray(values.data());
      resolved.fabric_spread[c][f] = spread;
      resolved.fabric_transferred[c][f] = transferred;
    }
  }
  resolved.in_network =
      InNetworkParameters<double>::FromArray(block(kInNetworkBlock, kInNetwork).values.data());
  const auto [network, network_spread, network_transferred] = block(kNetworkBlock, kNetwork);
  resolved.network = NetworkParameters<double>::FromArray(network.data());
  resolved.network_spread = network_spread;
  resolved.network_transferred = network_transferred;
  return resolved;
}

std::vector<KeyedDescriptor> CollectiveDescriptors() {
  std::vector<KeyedDescriptor> all;
  const auto add = [&](absl::string_view block, const auto& descriptors) {
    for (const ParameterDescriptor& d : descriptors) {
      all.push_back({absl::StrCat(block, ".", d.name), d});
    }
  };
  for (size_t c = 0; c < kCarrierCount; ++c) {
    for (size_t f = 0; f < kFamilyCount; ++f) {
      add(kBlocks[c][f], kFabric[c][f]);
      parameters::AppendSpreadDescriptors(kBlocks[c][f], kUnmeasuredCollective, all);
    }
  }
  parameters::AppendSpreadDescriptors(kNetworkBlock, kUnmeasuredCollective, all);
  add(kInNetworkBlock, kInNetwork);
  add(kNetworkBlock, kNetwork);
  return all;
}

}  // namespace sextant::collectives
