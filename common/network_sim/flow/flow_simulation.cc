// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/flow/flow_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/network_sim/engine/event_queue.h"
#include "common/network_sim/flow/dependencies.h"
#include "common/network_sim/sharing/max_min.h"

namespace sextant::network_sim {
namespace {

// Rates that differ by less are the rounding of one and the same rate.
constexpr double kSameRate = 1e-12;

enum class EventKind : int32_t { kStart, kSent, kArrived, kRefresh };

struct Event {
  EventKind kind = EventKind::kStart;
  int32_t index = 0;        // job, stream or message
  uint32_t generation = 0;  // of the stream's rate: older events are void
};

class FlowEngine {
 public:
  FlowEngine(const Topology& topology, const Schedule& schedule, const Streams& streams,
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
        states_(streams.streams.size()),
        positions_(streams.hops.size(), 0),
        link_flows_(topology.links().size()),
        link_seen_(topology.links().size(), 0),
        dependencies_(schedule, jobs.size()),
        next_waiting_(schedule.messages.size(), kNone) {
    outcome_.job_finish_seconds.assign(jobs.size(), 0.0);
  }

  absl::StatusOr<FlowOutcome> Run() {
    for (size_t j = 0; j < jobs_.size(); ++j) {
      queue_.Push(ToSimTime(jobs_[j].start_seconds),
                  {EventKind::kStart, static_cast<int32_t>(j), 0});
    }
    while (!queue_.empty()) {
      now_ = queue_.Top().time;
      while (!queue_.empty() && queue_.Top().time == now_) {
        if (++outcome_.event_count > limits_.max_events) return BeyondEvents(limits_, now_);
        Handle(queue_.Pop().payload);
        if (poll_.Due()) {
          SEXTANT_RETURN_IF_ERROR(poll_.Ask({ToSeconds(now_), outcome_.event_count, arrived_count_,
                                             static_cast<int64_t>(schedule_.messages.size())}));
        }
      }
      ShareLinks();
      if (out_of_range_ || now_ > latest_) return BeyondTime(limits_);
    }
    return outcome_;
  }

 private:
  struct StreamState {
    double remaining_bytes = 0;  // of the message being sent, on the wire, at time `updated`
    double rate = 0;             // wire bytes per second
    SimTime updated = 0;
    uint32_t generation = 0;
    int32_t sending = kNone;  // message
    int32_t first_waiting = kNone;
    int32_t last_waiting = kNone;
    uint64_t seen = 0;  // stamp of the last search that found this flow
  };

  void Handle(const Event& event) {
    switch (event.kind) {
      case EventKind::kStart:
        for (const int32_t m : dependencies_.FirstMessages(event.index)) Enqueue(m);
        return;
      case EventKind::kSent:
        if (states_[static_cast<size_t>(event.index)].generation == event.generation) {
          FinishSending(event.index);
        }
        return;
      case EventKind::kArrived:
        return Arrive(event.index);
      case EventKind::kRefresh:
        if (event.generation == refresh_generation_) refresh_due_ = true;
        return;
    }
  }

  void Enqueue(int32_t message) {
    const int32_t s = streams_.stream_of[static_cast<size_t>(message)];
    StreamState& state = states_[static_cast<size_t>(s)];
    if (state.sending != kNone) {
      (state.first_waiting == kNone ? state.first_waiting
                                    : next_waiting_[static_cast<size_t>(state.last_waiting)]) =
          message;
      state.last_waiting = message;
      return;
    }
    Load(state, message);
    state.rate = 0;
    const Streams::Stream& stream = streams_.streams[static_cast<size_t>(s)];
    for (size_t h = stream.first_hop; h < stream.first_hop + stream.hop_count; ++h) {
      std::vector<Crossing>& flows = link_flows_[static_cast<size_t>(streams_.hops[h])];
      positions_[h] = static_cast<int32_t>(flows.size());
      flows.push_back({s, h});
      dirty_links_.push_back(streams_.hops[h]);
    }
    ++active_count_;
    last_start_ = now_;
    started_ = true;
  }

  void Load(StreamState& state, int32_t message) {
    state.sending = message;
    state.remaining_bytes =
        WireBytes(schedule_.messages[static_cast<size_t>(message)].bytes, transport_);
    state.updated = now_;
  }

  void FinishSending(int32_t s) {
    StreamState& state = states_[static_cast<size_t>(s)];
    const Streams::Stream& stream = streams_.streams[static_cast<size_t>(s)];
    const int32_t message = state.sending;
    const double tail =
        TailSeconds(topology_, streams_.Path(stream),
                    schedule_.messages[static_cast<size_t>(message)].bytes, transport_);
    queue_.Push(now_ + ToSimTime(tail), {EventKind::kArrived, message, 0});
    if (state.first_waiting != kNone) {  // the stream goes on at its rate
      const int32_t next = state.first_waiting;
      state.first_waiting = next_waiting_[static_cast<size_t>(next)];
      Load(state, next);
      ScheduleSent(s);
      return;
    }
    state.sending = kNone;
    ++state.generation;
    --active_count_;
    for (size_t h = stream.first_hop; h < stream.first_hop + stream.hop_count; ++h) {
      std::vector<Crossing>& flows = link_flows_[static_cast<size_t>(streams_.hops[h])];
      const Crossing moved = flows.back();
      flows[static_cast<size_t>(positions_[h])] = moved;
      positions_[moved.hop] = positions_[h];
      flows.pop_back();
      if (!flows.empty()) dirty_links_.push_back(streams_.hops[h]);
    }
  }

  void Arrive(int32_t m) {
    ++arrived_count_;
    const Message& message = schedule_.messages[static_cast<size_t>(m)];
    double& finish = outcome_.job_finish_seconds[static_cast<size_t>(message.job)];
    finish = std::max(finish, ToSeconds(now_));
    dependencies_.Arrive(m, [&](int32_t next) { Enqueue(next); });
  }

  void ScheduleSent(int32_t s) {
    StreamState& state = states_[static_cast<size_t>(s)];
    const SimTime duration = ToSimTime(state.remaining_bytes / state.rate);
    if (duration >= kSimTimeLimit - now_) {
      out_of_range_ = true;
      return;
    }
    queue_.Push(now_ + duration, {EventKind::kSent, s, ++state.generation});
  }

  // Recomputes the rates of every flow that the changes of this moment can reach.
  void ShareLinks() {
    if (dirty_links_.empty()) return;
    if (!started_ && !refresh_due_ && active_count_ > limits_.exact_flow_count) {
      if (!refresh_scheduled_) {
        const double elapsed = static_cast<double>(now_ - last_start_);
        const SimTime wait =
            std::max<SimTime>(1, static_cast<SimTime>(elapsed * limits_.refresh_fraction));
        queue_.Push(now_ + wait, {EventKind::kRefresh, 0, refresh_generation_});
        refresh_scheduled_ = true;
      }
      return;
    }
    ++refresh_generation_;
    refresh_scheduled_ = false;
    refresh_due_ = false;
    started_ = false;
    ++stamp_;
    for (const int32_t link : dirty_links_) {
      if (link_seen_[static_cast<size_t>(link)] != stamp_) SharePiece(link);
    }
    dirty_links_.clear();
  }

  // Solves the connected piece of flows and links that `first_link` belongs to.
  void SharePiece(int32_t first_link) {
    piece_links_.clear();
    piece_flows_.clear();
    const auto visit = [&](int32_t link) {
      uint64_t& seen = link_seen_[static_cast<size_t>(link)];
      if (seen == stamp_) return;
      seen = stamp_;
      link_slot_.resize(topology_.links().size());
      link_slot_[static_cast<size_t>(link)] = static_cast<int32_t>(piece_links_.size());
      piece_links_.push_back(link);
    };
    visit(first_link);
    for (size_t i = 0; i < piece_links_.size(); ++i) {
      for (const Crossing& crossing : link_flows_[static_cast<size_t>(piece_links_[i])]) {
        StreamState& state = states_[static_cast<size_t>(crossing.stream)];
        if (state.seen == stamp_) continue;
        state.seen = stamp_;
        piece_flows_.push_back(crossing.stream);
        for (const int32_t hop :
             streams_.Path(streams_.streams[static_cast<size_t>(crossing.stream)])) {
          visit(hop);
        }
      }
    }
    if (piece_flows_.empty()) return;
    capacity_.clear();
    offsets_.assign(1, 0);
    slots_.clear();
    rate_caps_.clear();
    for (const int32_t link : piece_links_) {
      capacity_.push_back(topology_.links()[static_cast<size_t>(link)].bandwidth_bytes_per_second);
    }
    for (const int32_t s : piece_flows_) {
      const Streams::Stream& stream = streams_.streams[static_cast<size_t>(s)];
      for (const int32_t hop : streams_.Path(stream)) {
        slots_.push_back(link_slot_[static_cast<size_t>(hop)]);
      }
      offsets_.push_back(static_cast<int32_t>(slots_.size()));
      if (transport_.window_bytes > 0) rate_caps_.push_back(stream.rate_cap);
    }
    const absl::Span<const double> rates = solver_.Solve({capacity_, offsets_, slots_, rate_caps_});
    for (size_t i = 0; i < piece_flows_.size(); ++i) SetRate(piece_flows_[i], rates[i]);
  }

  void SetRate(int32_t s, double rate) {
    StreamState& state = states_[static_cast<size_t>(s)];
    if (std::abs(rate - state.rate) <= kSameRate * rate) return;
    state.remaining_bytes =
        std::max(0.0, state.remaining_bytes - state.rate * ToSeconds(now_ - state.updated));
    state.updated = now_;
    state.rate = rate;
    ScheduleSent(s);
  }

  struct Crossing {
    int32_t stream = 0;
    size_t hop = 0;  // index in streams_.hops
  };

  const Topology& topology_;
  const Schedule& schedule_;
  const Streams& streams_;
  const Transport& transport_;
  const absl::Span<const NetworkJob> jobs_;
  const FlowLimits& limits_;

  const SimTime latest_;
  ProgressPoll poll_;
  int64_t arrived_count_ = 0;
  SimTime now_ = 0;
  EventQueue<Event> queue_;
  std::vector<StreamState> states_;
  std::vector<int32_t> positions_;                 // per hop: place in its link's list
  std::vector<std::vector<Crossing>> link_flows_;  // active flows of each link
  std::vector<int32_t> dirty_links_;
  std::vector<uint64_t> link_seen_;
  Dependencies dependencies_;
  std::vector<int32_t> next_waiting_;  // per message: the next one of its stream

  int64_t active_count_ = 0;
  SimTime last_start_ = 0;
  bool started_ = false;
  bool refresh_scheduled_ = false;
  bool refresh_due_ = false;
  uint32_t refresh_generation_ = 0;
  bool out_of_range_ = false;
  uint64_t stamp_ = 0;

  MaxMinSolver solver_;
  std::vector<int32_t> piece_links_;
  std::vector<int32_t> piece_flows_;
  std::vector<int32_t> link_slot_;
  std::vector<double> capacity_;
  std::vector<int32_t> offsets_;
  std::vector<int32_t> slots_;
  std::vector<double> rate_caps_;

  FlowOutcome outcome_;
};

}  // namespace

absl::Status BeyondEvents(const FlowLimits& limits, SimTime now) {
  return absl::ResourceExhaustedError(absl::StrCat("more than ", limits.max_events,
                                                   " events at simulated second ", ToSeconds(now),
                                                   "; simulate a smaller case"));
}

absl::Status BeyondTime(const FlowLimits& limits) {
  return absl::OutOfRangeError(absl::StrCat("the case lasts longer than ",
                                            limits.max_simulated_seconds, " simulated seconds"));
}

absl::StatusOr<FlowOutcome> SimulateFlows(const Topology& topology, const Schedule& schedule,
                                          const Streams& streams, const Transport& transport,
                                          absl::Span<const NetworkJob> jobs,
                                          const FlowLimits& limits, const ProgressCheck& check) {
  return FlowEngine(topology, schedule, streams, transport, jobs, limits, check).Run();
}

}  // namespace sextant::network_sim
