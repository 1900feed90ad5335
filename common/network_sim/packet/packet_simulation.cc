// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/packet/packet_simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "common/base/status_macros.h"
#include "common/network_sim/engine/event_queue.h"
#include "common/network_sim/flow/dependencies.h"

namespace sextant::network_sim {
namespace {

// Longer messages share links as fluids do. Where messages wait for others, the order of packets
// decides for longer, as one late message delays all that follow.
constexpr int64_t kMostPacketsAtOnce = 24;
constexpr int64_t kMostPacketsInRounds = 64;
constexpr double kMostPacketHops = 5e5;  // a tenth of a second

struct Packet {
  int32_t message = 0;
  int64_t payload = 0;
  int32_t next = kNone;  // in its queue
};

enum class EventKind : int32_t { kStart, kTransmitted, kReceived, kCredit };

struct Event {
  EventKind kind = EventKind::kStart;
  int32_t index = 0;  // job, link, packet or stream
  size_t hop = 0;     // received: the hop crossed
  int64_t bytes = 0;  // credit
};

class PacketEngine {
 public:
  PacketEngine(const Topology& topology, const Schedule& schedule, const Streams& streams,
               const Transport& transport, absl::Span<const NetworkJob> jobs,
               const FlowLimits& limits, const ProgressCheck& check)
      : topology_(topology),
        schedule_(schedule),
        streams_(streams),
        transport_(transport),
        jobs_(jobs),
        limits_(limits),
        latest_(ToSimTime(limits.max_simulated_seconds)),
        poll_(check),
        dependencies_(schedule, jobs.size()),
        undelivered_(schedule.messages.size()),
        senders_(streams.streams.size()),
        window_bytes_(WindowBytes(topology, streams, transport)),
        queues_(streams.hops.size()),
        transmitters_(topology.links().size()) {
    for (size_t m = 0; m < undelivered_.size(); ++m) undelivered_[m] = schedule.messages[m].bytes;
    outcome_.job_finish_seconds.assign(jobs.size(), 0.0);
  }

  absl::StatusOr<FlowOutcome> Run() {
    for (size_t j = 0; j < jobs_.size(); ++j) {
      events_.Push(ToSimTime(jobs_[j].start_seconds),
                   {EventKind::kStart, static_cast<int32_t>(j), 0});
    }
    while (!events_.empty()) {
      const auto event = events_.Pop();
      now_ = event.time;
      if (now_ > latest_) return BeyondTime(limits_);
      if (++outcome_.event_count > limits_.max_events) return BeyondEvents(limits_, now_);
      Handle(event.payload);
      if (poll_.Due()) {
        SEXTANT_RETURN_IF_ERROR(poll_.Ask({ToSeconds(now_), outcome_.event_count, arrived_count_,
                                           static_cast<int64_t>(schedule_.messages.size())}));
      }
    }
    return outcome_;
  }

 private:
  struct Sender {                  // of one stream
    std::deque<int32_t> messages;  // with bytes to send
    int64_t unsent = 0;            // of the first
    int64_t in_flight = 0;
  };
  struct Queue {  // packets of one stream at one hop
    int32_t first = kNone;
    int32_t last = kNone;
  };
  struct Transmitter {
    std::deque<size_t> turns;  // hops with packets waiting, in the order of their turns
    bool busy = false;
  };

  const Streams::Stream& StreamOf(int32_t message) const {
    return streams_.streams[static_cast<size_t>(streams_.stream_of[static_cast<size_t>(message)])];
  }

  void Handle(const Event& event) {
    switch (event.kind) {
      case EventKind::kStart:
        for (const int32_t m : dependencies_.FirstMessages(event.index)) Send(m);
        return;
      case EventKind::kTransmitted:
        transmitters_[static_cast<size_t>(event.index)].busy = false;
        return Transmit(event.index);
      case EventKind::kReceived:
        return Receive(event.index, event.hop);
      case EventKind::kCredit:
        senders_[static_cast<size_t>(event.index)].in_flight -= event.bytes;
        return Pump(event.index);
    }
  }

  // Payload in flight per stream. Automatic: a lone stream runs at line rate.
  static int64_t WindowBytes(const Topology& topology, const Streams& streams,
                             const Transport& transport) {
    if (transport.window_bytes > 0) return transport.window_bytes;
    const double packet = static_cast<double>(transport.payload_bytes + transport.header_bytes);
    double wanted = 0;
    for (const Streams::Stream& stream : streams.streams) {
      double slowest = std::numeric_limits<double>::infinity();
      double packet_seconds = 0;
      for (const int32_t hop : streams.Path(stream)) {
        const double bandwidth =
            topology.links()[static_cast<size_t>(hop)].bandwidth_bytes_per_second;
        slowest = std::min(slowest, bandwidth);
        packet_seconds += packet / bandwidth;
      }
      wanted = std::max(wanted, 1.25 * slowest * (2 * stream.latency_seconds + packet_seconds));
    }
    const double packets = std::ceil(wanted / static_cast<double>(transport.payload_bytes)) + 8;
    return static_cast<int64_t>(std::min(packets, 1e9)) * transport.payload_bytes;
  }

  void Send(int32_t m) {
    const int32_t stream = streams_.stream_of[static_cast<size_t>(m)];
    Sender& sender = senders_[static_cast<size_t>(stream)];
    if (sender.messages.empty()) sender.unsent = schedule_.messages[static_cast<size_t>(m)].bytes;
    sender.messages.push_back(m);
    Pump(stream);
  }

  // Hands the stream's packets to its first transmitter as far as the window allows; one packet
  // may always be in flight.
  void Pump(int32_t stream) {
    Sender& sender = senders_[static_cast<size_t>(stream)];
    while (!sender.messages.empty()) {
      const int64_t payload = std::min(sender.unsent, transport_.payload_bytes);
      if (sender.in_flight > 0 && sender.in_flight + payload > window_bytes_) return;
      sender.in_flight += payload;
      sender.unsent -= payload;
      const int32_t packet = static_cast<int32_t>(packets_.size());
      packets_.push_back({sender.messages.front(), payload, kNone});
      if (sender.unsent == 0) {
        sender.messages.pop_front();
        if (!sender.messages.empty()) {
          sender.unsent = schedule_.messages[static_cast<size_t>(sender.messages.front())].bytes;
        }
      }
      Enqueue(packet, streams_.streams[static_cast<size_t>(stream)].first_hop);
    }
  }

  void Enqueue(int32_t packet, size_t hop) {
    Queue& queue = queues_[hop];
    const int32_t link = streams_.hops[hop];
    packets_[static_cast<size_t>(packet)].next = kNone;
    if (queue.first == kNone) {
      queue.first = packet;
      transmitters_[static_cast<size_t>(link)].turns.push_back(hop);
    } else {
      packets_[static_cast<size_t>(queue.last)].next = packet;
    }
    queue.last = packet;
    Transmit(link);
  }

  // Starts the next packet of an idle transmitter: one of the stream whose turn it is.
  void Transmit(int32_t link) {
    Transmitter& transmitter = transmitters_[static_cast<size_t>(link)];
    if (transmitter.busy || transmitter.turns.empty()) return;
    const size_t hop = transmitter.turns.front();
    transmitter.turns.pop_front();
    Queue& queue = queues_[hop];
    const int32_t index = queue.first;
    const Packet& packet = packets_[static_cast<size_t>(index)];
    queue.first = packet.next;
    if (queue.first != kNone) transmitter.turns.push_back(hop);
    transmitter.busy = true;
    const DirectedLink& directed = topology_.links()[static_cast<size_t>(link)];
    const SimTime sent =
        now_ + ToSimTime(static_cast<double>(packet.payload + transport_.header_bytes) /
                         directed.bandwidth_bytes_per_second);
    events_.Push(sent, {EventKind::kTransmitted, link, 0});
    events_.Push(sent + ToSimTime(directed.latency_seconds), {EventKind::kReceived, index, hop});
  }

  void Receive(int32_t packet, size_t hop) {
    const int32_t m = packets_[static_cast<size_t>(packet)].message;
    const Streams::Stream& stream = StreamOf(m);
    if (hop + 1 < stream.first_hop + stream.hop_count) return Enqueue(packet, hop + 1);
    int64_t& undelivered = undelivered_[static_cast<size_t>(m)];
    const int64_t payload = packets_[static_cast<size_t>(packet)].payload;
    undelivered -= payload;
    events_.Push(now_ + ToSimTime(stream.latency_seconds),
                 {EventKind::kCredit, streams_.stream_of[static_cast<size_t>(m)], 0, payload});
    if (undelivered > 0) return;
    ++arrived_count_;
    double& finish = outcome_.job_finish_seconds[static_cast<size_t>(
        schedule_.messages[static_cast<size_t>(m)].job)];
    finish = std::max(finish, ToSeconds(now_));
    dependencies_.Arrive(m, [&](int32_t next) { Send(next); });
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const Streams& streams_;
  const Transport& transport_;
  const absl::Span<const NetworkJob> jobs_;
  const FlowLimits& limits_;
  const SimTime latest_;
  ProgressPoll poll_;
  int64_t arrived_count_ = 0;

  Dependencies dependencies_;
  SimTime now_ = 0;
  EventQueue<Event> events_;
  std::vector<int64_t> undelivered_;  // payload bytes per message
  std::vector<Sender> senders_;
  const int64_t window_bytes_;
  std::vector<Packet> packets_;
  std::vector<Queue> queues_;              // per hop of all streams
  std::vector<Transmitter> transmitters_;  // per directed link
  FlowOutcome outcome_;
};

}  // namespace

bool PacketsDecide(const Schedule& schedule, const Streams& streams, const Transport& transport) {
  const bool rounds = std::any_of(schedule.messages.begin(), schedule.messages.end(),
                                  [](const Message& message) { return message.after != kNone; });
  const int64_t most = rounds ? kMostPacketsInRounds : kMostPacketsAtOnce;
  double packet_hops = 0;
  for (size_t m = 0; m < schedule.messages.size(); ++m) {
    const int64_t bytes = schedule.messages[m].bytes;
    if (bytes > most * transport.payload_bytes) return false;
    packet_hops +=
        static_cast<double>(bytes / transport.payload_bytes + 1) *
        static_cast<double>(streams.streams[static_cast<size_t>(streams.stream_of[m])].hop_count);
    if (packet_hops > kMostPacketHops) return false;
  }
  return true;
}

absl::StatusOr<FlowOutcome> SimulatePackets(const Topology& topology, const Schedule& schedule,
                                            const Streams& streams, const Transport& transport,
                                            absl::Span<const NetworkJob> jobs,
                                            const FlowLimits& limits, const ProgressCheck& check) {
  return PacketEngine(topology, schedule, streams, transport, jobs, limits, check).Run();
}

}  // namespace sextant::network_sim
