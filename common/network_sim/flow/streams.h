// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_FLOW_STREAMS_H_
#define SEXTANT_COMMON_NETWORK_SIM_FLOW_STREAMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network_sim/network_case.h"
#include "common/network_sim/patterns/schedule.h"
#include "common/network_sim/progress.h"
#include "common/network_sim/topology/routing.h"
#include "common/network_sim/topology/topology.h"

namespace sextant::network_sim {

// The ordered byte streams of a schedule, one per (job, group, source, destination), with their
// paths. Messages of a stream are sent one after another.
struct Streams {
  struct Stream {
    size_t first_hop = 0;  // path: hops[first_hop .. first_hop + hop_count)
    size_t hop_count = 0;
    double latency_seconds = 0;  // of the whole path
    double rate_cap = 0;         // wire bytes per second that the window allows; infinity: no limit
  };
  std::vector<Stream> streams;
  std::vector<int32_t> hops;       // directed links
  std::vector<int32_t> stream_of;  // per message
  int64_t rerouted_count = 0;      // streams that the healthy topology would route otherwise

  absl::Span<const int32_t> Path(const Stream& stream) const {
    return absl::MakeConstSpan(hops).subspan(stream.first_hop, stream.hop_count);
  }
};

// Finds streams and routes. UNAVAILABLE where a pair has no surviving path. `healthy`, where given,
// holds the streams of the same schedule and routing on topology.Healthy(): only pairs that removed
// links touch are routed anew, with the same result. Adaptive routing places one stream after
// another where, by then, least is to be sent.
absl::StatusOr<Streams> BuildStreams(const Topology& topology, const Schedule& schedule,
                                     const Transport& transport, const RoutingOptions& routing,
                                     const Streams* healthy = nullptr,
                                     const ProgressCheck& check = {});

// Bytes on the wire for a message: payload and one header per packet.
double WireBytes(int64_t bytes, const Transport& transport);

// Time from the moment the last byte of a message has left the path's slowest link until it has
// arrived: propagation, and storing and forwarding one packet on every other link.
double TailSeconds(const Topology& topology, absl::Span<const int32_t> path, int64_t bytes,
                   const Transport& transport);

// Wire seconds that all messages keep each directed link busy.
std::vector<double> LinkBusySeconds(const Topology& topology, const Schedule& schedule,
                                    const Streams& streams, const Transport& transport);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_FLOW_STREAMS_H_
