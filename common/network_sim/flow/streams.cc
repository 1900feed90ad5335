// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/flow/streams.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
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

// How many paths adaptive routing looks at per stream.
constexpr uint64_t kAdaptiveChoices = 8;

// Finds the streams of a schedule, then routes one after another.
class StreamBuilder {
 public:
  StreamBuilder(const Topology& topology, const Schedule& schedule, const Transport& transport,
                const RoutingOptions& routing)
      : topology_(topology),
        schedule_(schedule),
        transport_(transport),
        routing_(routing),
        router_(topology, routing) {}

  absl::StatusOr<Streams> Build(const Streams* healthy, const ProgressCheck& check) {
    FindStreams();
    const bool reuse = healthy != nullptr && healthy->streams.size() == ends_.size();
    const std::optional<TouchedPairs> touched =
        reuse ? std::optional<TouchedPairs>(topology_) : std::nullopt;
    const bool adaptive = routing_.policy == Routing::kAdaptive;
    if (adaptive) SumBytes();
    ProgressPoll poll(check);
    for (const int32_t s : ByDestination()) {
      if (poll.Due()) SEXTANT_RETURN_IF_ERROR(poll.Ask({}));
      const Streams::Stream* old = reuse ? &healthy->streams[static_cast<size_t>(s)] : nullptr;
      if (old != nullptr && !touched->Touches(healthy->Path(*old), routing_.policy)) {
        SetPath(s, healthy->Path(*old));
        continue;
      }
      SEXTANT_ASSIGN_OR_RETURN(const std::vector<int32_t> path,
                               adaptive ? LeastLoadedPath(s) : PathOf(s, 0));
      if (old != nullptr && healthy->Path(*old) != absl::MakeConstSpan(path)) {
        ++result_.rerouted_count;
      }
      SetPath(s, path);
    }
    return std::move(result_);
  }

 private:
  void FindStreams() {
    const size_t message_count = schedule_.messages.size();
    result_.stream_of.resize(message_count);
    using Key = std::tuple<int32_t, int32_t, int32_t, int32_t>;
    absl::flat_hash_map<Key, int32_t> index;
    for (size_t m = 0; m < message_count; ++m) {
      const Message& message = schedule_.messages[m];
      const auto [entry, is_new] =
          index.try_emplace({message.job, message.group, message.source, message.destination},
                            static_cast<int32_t>(ends_.size()));
      if (is_new) ends_.push_back({message.destination, message.source});
      result_.stream_of[m] = entry->second;
    }
    result_.streams.resize(ends_.size());
  }

  void SumBytes() {
    bytes_.assign(ends_.size(), 0.0);
    for (size_t m = 0; m < schedule_.messages.size(); ++m) {
      bytes_[static_cast<size_t>(result_.stream_of[m])] +=
          WireBytes(schedule_.messages[m].bytes, transport_);
    }
    load_seconds_.assign(topology_.links().size(), 0.0);
  }

  // The router computes the distances to each destination once.
  std::vector<int32_t> ByDestination() const {
    std::vector<int32_t> order(ends_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return ends_[static_cast<size_t>(a)] < ends_[static_cast<size_t>(b)];
    });
    return order;
  }

  absl::StatusOr<std::vector<int32_t>> PathOf(int32_t stream, uint64_t choice) {
    const auto [destination, source] = ends_[static_cast<size_t>(stream)];
    return router_.Route(source, destination, choice);
  }

  double SecondsOn(int32_t link, double bytes) const {
    return bytes / topology_.links()[static_cast<size_t>(link)].bandwidth_bytes_per_second;
  }

  // The path whose busiest link would be least busy, the first of equals.
  absl::StatusOr<std::vector<int32_t>> LeastLoadedPath(int32_t stream) {
    const double bytes = bytes_[static_cast<size_t>(stream)];
    std::vector<int32_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (uint64_t choice = 0; choice < kAdaptiveChoices; ++choice) {
      SEXTANT_ASSIGN_OR_RETURN(std::vector<int32_t> path, PathOf(stream, choice));
      double busiest = 0;
      for (const int32_t link : path) {
        busiest =
            std::max(busiest, load_seconds_[static_cast<size_t>(link)] + SecondsOn(link, bytes));
      }
      if (busiest >= least) continue;
      least = busiest;
      best = std::move(path);
    }
    for (const int32_t link : best) {
      load_seconds_[static_cast<size_t>(link)] += SecondsOn(link, bytes);
    }
    return best;
  }

  void SetPath(int32_t s, absl::Span<const int32_t> path) {
    const double packet = static_cast<double>(transport_.payload_bytes + transport_.header_bytes);
    Streams::Stream& stream = result_.streams[static_cast<size_t>(s)];
    stream.first_hop = result_.hops.size();
    stream.hop_count = path.size();
    result_.hops.insert(result_.hops.end(), path.begin(), path.end());
    double packet_seconds = 0;
    for (const int32_t hop : path) {
      const DirectedLink& link = topology_.links()[static_cast<size_t>(hop)];
      stream.latency_seconds += link.latency_seconds;
      packet_seconds += packet / link.bandwidth_bytes_per_second;
    }
    // Credits return after the path's propagation delay.
    const double round_trip_seconds = 2 * stream.latency_seconds + packet_seconds;
    stream.rate_cap = transport_.window_bytes > 0
                          ? static_cast<double>(transport_.window_bytes) / round_trip_seconds *
                                packet / static_cast<double>(transport_.payload_bytes)
                          : std::numeric_limits<double>::infinity();
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const Transport& transport_;
  const RoutingOptions routing_;
  Router router_;
  std::vector<std::pair<int32_t, int32_t>> ends_;  // (destination, source) per stream
  std::vector<double> bytes_;                      // on the wire per stream
  std::vector<double> load_seconds_;               // per link, of the streams placed so far
  Streams result_;
};

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
                                     const Transport& transport, const RoutingOptions& routing,
                                     const Streams* healthy, const ProgressCheck& check) {
  return StreamBuilder(topology, schedule, transport, routing).Build(healthy, check);
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
