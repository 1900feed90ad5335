// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_H_
#define SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/collectives/collective_parameters.h"
#include "common/hardware/cluster.h"

namespace sextant::collectives {

enum class CollectiveKind : int {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendReceive,
};
absl::string_view CollectiveKindName(CollectiveKind kind);  // "all_reduce", "send_receive", ...
absl::StatusOr<CollectiveKind> ParseCollectiveKind(absl::string_view name);

// One collective over one group of ranks, as the group lies on the nodes.
// `bytes` counts as nccl-tests do: all-reduce, broadcast, send: buffer per rank; all-gather: total
// gathered; reduce-scatter: total input per rank; all-to-all: send buffer per rank.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0;
  int64_t group_size = 1;      // ranks
  int64_t ranks_per_node = 1;  // of this group on each node it touches; group_size: one node
  // Equal groups that run at the same time and share each node's network interfaces (data parallel
  // groups of a node's 8 tensor parallel ranks: 8).
  int64_t groups_per_node = 1;

  bool SpansNodes() const { return ranks_per_node < group_size; }

  friend bool operator==(const Collective&, const Collective&) = default;
};

struct CollectiveEstimate {
  double seconds = 0;
  double latency_seconds = 0;  // the part that does not grow with bytes
  bool network_bound = false;  // the links between nodes bind, not those inside
  bool extrapolated = false;
  double interval_low_seconds = 0;  // 90 % interval
  double interval_high_seconds = 0;

  friend bool operator==(const CollectiveEstimate&, const CollectiveEstimate&) = default;
};

// Every rule that `collective` breaks on `cluster`; paths "group_size", "ranks_per_node", ...
absl::Status ValidateCollective(const Collective& collective, const hardware::Cluster& cluster);

// Closed-form time of a valid collective on a healthy, otherwise idle cluster: hierarchical over
// node fabric and network, best of the algorithms (ring, tree) that NCCL would choose among.
// A group of one rank takes no time. Monotone in bytes and in every bandwidth. O(1). Thread-safe.
CollectiveEstimate EstimateCollective(const Collective& collective,
                                      const hardware::Cluster& cluster,
                                      const CollectiveParameters<double>& parameters);

// The same for a batch, in order; violations under "collectives[i].".
absl::StatusOr<std::vector<CollectiveEstimate>> EstimateCollectives(
    absl::Span<const Collective> collectives, const hardware::Cluster& cluster,
    const CollectiveParameters<double>& parameters);

// The block that says how far measurements lie from an answer: that of the node's fabric, or
// "collective.network" for groups that span nodes.
absl::string_view SpreadBlock(const Collective& collective, const hardware::Cluster& cluster);

}  // namespace sextant::collectives

#endif  // SEXTANT_COMMON_COLLECTIVES_COLLECTIVE_H_
