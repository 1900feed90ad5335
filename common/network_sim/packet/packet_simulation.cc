// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/packet/packet_simulation.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/network_sim/engine/event_queue.h"
#include "common/network_sim/flow/dependencies.h"

namespace sextant::network_sim {
namespace {

// An automatic window holds at least eight packets, so that up to there none binds.
constexpr int64_t kMostPacketsOfAMessage = 8;
constexpr double kMostPacketHops = 5e6;  // a few seconds

struct Packet {
  int32_t message = 0;
  int64_t payload = 0;
  int32_t next = kNone;  // in its queue
};

enum class EventKind : int32_t { kStart, kTransmitted, kReceived };

struct Event {
  EventKind kind = EventKind::kStart;
  int32_t index = 0;  // job, link or packet
  size_t hop = 0;     // received: the hop crossed
};

class PacketEngine {
 public:
  PacketEngine(const Topology& topology, const Schedule& schedule, const Streams& streams,
               const Transport& transport, absl::Span<const NetworkJob> jobs)
      : topology_(topology),
        schedule_(schedule),
        streams_(streams),
        transport_(transport),
        jobs_(jobs),
        dependencies_(schedule, jobs.size()),
        undelivered_(schedule.messages.size()),
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
      if (now_ >= kSimTimeLimit) {
        return absl::OutOfRangeError(absl::StrCat("the case lasts longer than ",
                                                  ToSeconds(kSimTimeLimit), " simulated seconds"));
      }
      ++outcome_.event_count;
      Handle(event.payload);
    }
    return outcome_;
  }

 private:
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
    }
  }

  void Send(int32_t m) {
    int64_t left = schedule_.messages[static_cast<size_t>(m)].bytes;
    for (; left > 0; left -= transport_.payload_bytes) {
      const int32_t packet = static_cast<int32_t>(packets_.size());
      packets_.push_back({m, std::min(left, transport_.payload_bytes), kNone});
      Enqueue(packet, StreamOf(m).first_hop);
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
    undelivered -= packets_[static_cast<size_t>(packet)].payload;
    if (undelivered > 0) return;
    double& finish = outcome_.job_finish_seconds[static_cast<size_t>(
        schedule_.messages[static_cast<size_t>(m)].job)];
    finish = std::max(finish, ToSeconds(now_));
    for (const int32_t next : dependencies_.Arrive(m)) Send(next);
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const Streams& streams_;
  const Transport& transport_;
  const absl::Span<const NetworkJob> jobs_;

  Dependencies dependencies_;
  SimTime now_ = 0;
  EventQueue<Event> events_;
  std::vector<int64_t> undelivered_;  // payload bytes per message
  std::vector<Packet> packets_;
  std::vector<Queue> queues_;              // per hop of all streams
  std::vector<Transmitter> transmitters_;  // per directed link
  FlowOutcome outcome_;
};

}  // namespace

bool PacketsDecide(const Schedule& schedule, const Streams& streams, const Transport& transport) {
  if (transport.window_bytes > 0) return false;
  double packet_hops = 0;
  for (size_t m = 0; m < schedule.messages.size(); ++m) {
    const int64_t bytes = schedule.messages[m].bytes;
    if (bytes > kMostPacketsOfAMessage * transport.payload_bytes) return false;
    packet_hops +=
        static_cast<double>(bytes / transport.payload_bytes + 1) *
        static_cast<double>(streams.streams[static_cast<size_t>(streams.stream_of[m])].hop_count);
    if (packet_hops > kMostPacketHops) return false;
  }
  return true;
}

absl::StatusOr<FlowOutcome> SimulatePackets(const Topology& topology, const Schedule& schedule,
                                            const Streams& streams, const Transport& transport,
                                            absl::Span<const NetworkJob> jobs) {
  return PacketEngine(topology, schedule, streams, transport, jobs).Run();
}

}  // namespace sextant::network_sim
