// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/flow/streams.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/status_macros.h"
#include "common/network_sim/topology/routing.h"

namespace sextant::network_sim {
namespace {

int64_t PacketCount(int64_t bytes, const Transport& transport) {
  return (bytes + transport.payload_bytes - 1) / transport.payload_bytes;
}

// Hop of least bandwidth, the last of equals: packets queue there, so that only the hops before it
// see a full packet ahead of the last one.
size_t SlowestHop(const Topology& topology, absl::Span<const int32_t> path) {
  size_t slowest = 0;
  const auto bandwidth = [&](size_t hop) {
    return topology.links()[static_cast<size_t>(path[hop])].bandwidth_bytes_per_second;
  };
  for (size_t h = 1; h < path.size(); ++h) {
    if (bandwidth(h) <= bandwidth(slowest)) slowest = h;
  }
  return slowest;
}

}  // namespace

double WireBytes(int64_t bytes, const Transport& transport) {
  return static_cast<double>(bytes) + static_cast<double>(PacketCount(bytes, transport)) *
                                          static_cast<double>(transport.header_bytes);
}

double TailSeconds(const Topology& topology, absl::Span<const int32_t> path, int64_t bytes,
                   const Transport& transport) {
  const int64_t packets = PacketCount(bytes, transport);
  const int64_t last_payload = bytes - (packets - 1) * transport.payload_bytes;
  const double last = static_cast<double>(last_payload + transport.header_bytes);
  const double full =
      packets > 1 ? static_cast<double>(transport.payload_bytes + transport.header_bytes) : last;
  const size_t slowest = SlowestHop(topology, path);
  double seconds = 0;
  for (size_t h = 0; h < path.size(); ++h) {
    const DirectedLink& link = topology.links()[static_cast<size_t>(path[h])];
    seconds += link.latency_seconds;
    if (h < slowest) seconds += full / link.bandwidth_bytes_per_second;
    if (h > slowest) seconds += last / link.bandwidth_bytes_per_second;
  }
  return seconds;
}

absl::StatusOr<Streams> BuildStreams(const Topology& topology, const Schedule& schedule,
                                     const Transport& transport, uint64_t ecmp_seed) {
  Streams result;
  const size_t message_count = schedule.messages.size();
  result.stream_of.resize(message_count);
  using Key = std::tuple<int32_t, int32_t, int32_t, int32_t>;
  absl::flat_hash_map<Key, int32_t> index;
  std::vector<std::pair<int32_t, int32_t>> ends;  // (destination, source) per stream
  for (size_t m = 0; m < message_count; ++m) {
    const Message& message = schedule.messages[m];
    const auto [entry, is_new] =
        index.try_emplace({message.job, message.group, message.source, message.destination},
                          static_cast<int32_t>(ends.size()));
    if (is_new) ends.push_back({message.destination, message.source});
    result.stream_of[m] = entry->second;
  }
  result.streams.resize(ends.size());
  // By destination: the router computes the distances to each once.
  std::vector<int32_t> order(ends.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return ends[static_cast<size_t>(a)] < ends[static_cast<size_t>(b)];
  });
  Router router(topology, ecmp_seed);
  const double packet = static_cast<double>(transport.payload_bytes + transport.header_bytes);
  for (const int32_t s : order) {
    const auto [destination, source] = ends[static_cast<size_t>(s)];
    SEXTANT_ASSIGN_OR_RETURN(const std::vector<int32_t> path, router.Route(source, destination));
    Streams::Stream& stream = result.streams[static_cast<size_t>(s)];
    stream.first_hop = result.hops.size();
    stream.hop_count = path.size();
    result.hops.insert(result.hops.end(), path.begin(), path.end());
    double packet_seconds = 0;
    for (const int32_t hop : path) {
      const DirectedLink& link = topology.links()[static_cast<size_t>(hop)];
      stream.latency_seconds += link.latency_seconds;
      packet_seconds += packet / link.bandwidth_bytes_per_second;
    }
    // Credits return after the path's propagation delay.
    const double round_trip_seconds = 2 * stream.latency_seconds + packet_seconds;
    stream.rate_cap = transport.window_bytes > 0
                          ? static_cast<double>(transport.window_bytes) / round_trip_seconds *
                                packet / static_cast<double>(transport.payload_bytes)
                          : std::numeric_limits<double>::infinity();
  }
  return result;
}

std::vector<double> LinkBusySeconds(const Topology& topology, const Schedule& schedule,
                                    const Streams& streams, const Transport& transport) {
  std::vector<double> stream_bytes(streams.streams.size(), 0.0);
  for (size_t m = 0; m < schedule.messages.size(); ++m) {
    stream_bytes[static_cast<size_t>(streams.stream_of[m])] +=
        WireBytes(schedule.messages[m].bytes, transport);
  }
  std::vector<double> busy(topology.links().size(), 0.0);
  for (size_t s = 0; s < streams.streams.size(); ++s) {
    for (const int32_t hop : streams.Path(streams.streams[s])) {
      busy[static_cast<size_t>(hop)] +=
          stream_bytes[s] / topology.links()[static_cast<size_t>(hop)].bandwidth_bytes_per_second;
    }
  }
  return busy;
}

}  // namespace sextant::network_sim
