// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/network_case.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace sextant::network_sim {
namespace {

constexpr std::array<absl::string_view, 12> kTopologyNames = {"ring",
                                                              "line",
                                                              "torus",
                                                              "mesh",
                                                              "fully_connected",
                                                              "switch",
                                                              "leaf_spine",
                                                              "nvswitch_rails",
                                                              "nvswitch_leaf_spine",
                                                              "fat_tree",
                                                              "dragonfly",
                                                              "graph"};

constexpr std::array<absl::string_view, 4> kRoutingNames = {"automatic", "shortest", "hashed",
                                                            "adaptive"};

constexpr std::array<absl::string_view, 21> kPatternNames = {"ring_all_reduce",
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
                                                             "flows",
                                                             "double_binary_tree_all_reduce",
                                                             "tree_broadcast",
                                                             "in_network_all_reduce",
                                                             "all_reduce",
                                                             "reduce_scatter",
                                                             "all_gather",
                                                             "all_to_all"};

template <typename E, size_t N>
absl::StatusOr<E> ParseName(absl::string_view name, const std::array<absl::string_view, N>& names) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", name.substr(0, 64), "\" but must be one of ", absl::StrJoin(names, ", ")));
}

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

absl::string_view RoutingName(Routing routing) {
  return kRoutingNames[static_cast<size_t>(routing)];
}
absl::StatusOr<Routing> ParseRouting(absl::string_view name) {
  return ParseName<Routing>(name, kRoutingNames);
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
    case TopologyKind::kGraph:
      return endpoint_count;
    case TopologyKind::kLeafSpine:
      return Product({leaf_count, endpoints_per_leaf});
    case TopologyKind::kFatTree:
      return Product({pod_count, leaves_per_pod, endpoints_per_leaf});
    case TopologyKind::kDragonfly:
      return Product({group_count, routers_per_group, endpoints_per_router});
    case TopologyKind::kNvSwitchRails:
    case TopologyKind::kNvSwitchLeafSpine:
      break;
  }
  return Product({server_count, gpus_per_server});
}

}  // namespace sextant::network_sim
