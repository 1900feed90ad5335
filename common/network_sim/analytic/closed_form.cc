// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/analytic/closed_form.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/network_sim/flow/streams.h"
#include "common/network_sim/topology/routing.h"

namespace sextant::network_sim {
namespace {

// Blocks that differ by one byte count as equal, and so do times that differ by rounding.
constexpr double kSameTime = 1e-3;
constexpr int64_t kMaxRoundMessages = 20'000'000;

struct Transfer {
  int64_t source = 0;
  int64_t destination = 0;
  int64_t bytes = 0;
};
// Messages sent at the same time, `repeat` times in a row.
struct Round {
  std::vector<Transfer> transfers;
  int64_t repeat = 1;
};

// Time of one transfer in its round.
struct Timed {
  double sending_seconds = 0;  // until the last byte has left the slowest link
  double tail_seconds = 0;
  double Total() const { return sending_seconds + tail_seconds; }
};

int64_t LargestBlock(int64_t bytes, int64_t parts) { return (bytes + parts - 1) / parts; }

void AddRing(const std::vector<int64_t>& ranks, int64_t bytes, Round& round) {
  const int64_t block = LargestBlock(bytes, static_cast<int64_t>(ranks.size()));
  for (size_t i = 0; i < ranks.size(); ++i) {
    round.transfers.push_back({ranks[i], ranks[(i + 1) % ranks.size()], block});
  }
}

void AddShift(const std::vector<int64_t>& ranks, int64_t bytes, size_t shift, Round& round) {
  const int64_t block = LargestBlock(bytes, static_cast<int64_t>(ranks.size()));
  for (size_t i = 0; i < ranks.size(); ++i) {
    round.transfers.push_back({ranks[i], ranks[(i + shift) % ranks.size()], block});
  }
}

void AddExchange(const std::vector<int64_t>& ranks, int64_t bytes, size_t distance, Round& round) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    round.transfers.push_back({ranks[i], ranks[i ^ distance], bytes});
  }
}

// One ring round in every line of `level` ranks that are `stride` apart.
void AddLines(const std::vector<int64_t>& ranks, int64_t level, int64_t stride, int64_t bytes,
              Round& round) {
  const int64_t block = LargestBlock(bytes, level);
  for (int64_t i = 0; i < static_cast<int64_t>(ranks.size()); ++i) {
    const int64_t position = i / stride % level;
    const int64_t next = position + 1 < level ? i + stride : i - position * stride;
    round.transfers.push_back(
        {ranks[static_cast<size_t>(i)], ranks[static_cast<size_t>(next)], block});
  }
}

// Rounds of a job all of whose groups have equal size. Empty for tree, chain (own closed forms).
std::vector<Round> RoundsOf(const NetworkJob& job, size_t n) {
  std::vector<Round> rounds;
  const int64_t bytes = job.message_bytes;
  const auto add = [&](int64_t repeat, const auto& fill) {
    Round& round = rounds.emplace_back();
    round.repeat = repeat;
    for (const std::vector<int64_t>& ranks : job.groups) {
      if (ranks.size() >= 2) fill(ranks, round);
    }
  };
  const int64_t steps = static_cast<int64_t>(n) - 1;
  switch (job.pattern) {
    case Pattern::kRingAllReduce:
    case Pattern::kRingReduceScatter:
    case Pattern::kRingAllGather:
      add(job.pattern == Pattern::kRingAllReduce ? 2 * steps : steps,
          [&](const std::vector<int64_t>& ranks, Round& round) {
            if (!job.bidirectional) return AddRing(ranks, bytes, round);
            AddRing(ranks, bytes / 2, round);
            AddRing({ranks.rbegin(), ranks.rend()}, bytes - bytes / 2, round);
          });
      break;
    case Pattern::kDirectReduceScatter:
    case Pattern::kDirectAllGather:
    case Pattern::kDirectAllToAll:
    case Pattern::kDirectAllReduce:
      add(job.pattern == Pattern::kDirectAllReduce ? 2 : 1,
          [&](const std::vector<int64_t>& ranks, Round& round) {
            for (size_t k = 1; k < ranks.size(); ++k) AddShift(ranks, bytes, k, round);
          });
      break;
    case Pattern::kPairwiseAllToAll:
      for (size_t k = 1; k < n; ++k) {
        add(1, [&](const std::vector<int64_t>& ranks, Round& round) {
          AddShift(ranks, bytes, k, round);
        });
      }
      break;
    case Pattern::kRecursiveDoublingAllReduce:
      for (size_t distance = 1; distance < n; distance *= 2) {
        add(1, [&](const std::vector<int64_t>& ranks, Round& round) {
          AddExchange(ranks, bytes, distance, round);
        });
      }
      break;
    case Pattern::kHalvingDoublingAllReduce: {
      int64_t part = bytes;
      for (size_t distance = n / 2; distance >= 1; distance /= 2) {
        part /= 2;
        add(2, [&](const std::vector<int64_t>& ranks, Round& round) {  // there and back
          AddExchange(ranks, part, distance, round);
        });
      }
      break;
    }
    case Pattern::kHierarchicalAllReduce: {
      int64_t stride = 1;
      int64_t part = bytes;
      for (const int64_t level : job.levels) {
        if (level > 1) {
          add(2 * (level - 1), [&](const std::vector<int64_t>& ranks, Round& round) {
            AddLines(ranks, level, stride, part, round);
          });
        }
        stride *= level;
        part /= level;
      }
      break;
    }
    case Pattern::kFlows: {
      Round& round = rounds.emplace_back();
      for (const FlowSpec& f : job.flows) {
        round.transfers.push_back({f.source, f.destination, f.bytes});
      }
      break;
    }
    case Pattern::kTreeAllReduce:
    case Pattern::kPipelineChain:
      break;
  }
  return rounds;
}

// Times jobs one by one and remembers which job used a link.
class ClosedFormTimer {
 public:
  ClosedFormTimer(const Topology& topology, const NetworkCase& network_case)
      : topology_(topology),
        case_(network_case),
        router_(topology, network_case.ecmp_seed),
        owner_(topology.links().size(), -1),
        load_bytes_(topology.links().size(), 0.0) {
    outcome_.link_busy_seconds.assign(topology.links().size(), 0.0);
  }

  absl::StatusOr<ClosedFormOutcome> Run() {
    if (case_.transport.window_bytes > 0) {
      return absl::UnimplementedError(
          "analytic assumes windows that never bind (window_bytes 0); use flow");
    }
    for (size_t j = 0; j < case_.jobs.size(); ++j) {
      job_ = static_cast<int32_t>(j);
      const NetworkJob& job = case_.jobs[j];
      SEXTANT_ASSIGN_OR_RETURN(const double seconds, JobSeconds(job));
      outcome_.job_finish_seconds.push_back(seconds > 0 ? job.start_seconds + seconds : 0);
    }
    return std::move(outcome_);
  }

 private:
  absl::StatusOr<double> JobSeconds(const NetworkJob& job) {
    size_t n = 0;
    for (const std::vector<int64_t>& ranks : job.groups) {
      if (ranks.size() < 2) continue;
      if (n != 0 && ranks.size() != n) {
        return absl::UnimplementedError(absl::StrCat(
            "job ", job.name, " has groups of different sizes, which analytic cannot time"));
      }
      n = ranks.size();
    }
    if (job.pattern == Pattern::kFlows) n = 2;
    if (n == 0) return 0;
    if (job.pattern == Pattern::kPipelineChain) return ChainSeconds(job);
    if (job.pattern == Pattern::kTreeAllReduce) return TreeSeconds(job);
    double seconds = 0;
    const std::vector<Round> rounds = RoundsOf(job, n);
    const bool one_round = rounds.size() == 1 && rounds[0].repeat == 1;
    for (const Round& round : rounds) {
      SEXTANT_ASSIGN_OR_RETURN(const std::vector<Timed> times, Time(job, round));
      const auto [least, most] =
          std::minmax_element(times.begin(), times.end(),
                              [](const Timed& a, const Timed& b) { return a.Total() < b.Total(); });
      // Without shared links one round lasts as long as its longest message. Otherwise all must
      // take equally long: then every rate is wire bytes / time, which fills each message's
      // busiest link and so is its max-min share, and all ranks go on together.
      if (most->Total() - least->Total() > kSameTime * most->Total() && (shared_ || !one_round)) {
        return Uneven(job);
      }
      seconds += static_cast<double>(round.repeat) * most->Total();
    }
    return seconds;
  }

  static absl::Status Uneven(const NetworkJob& job) {
    return absl::UnimplementedError(
        absl::StrCat("the messages of a round of job ", job.name, " (", PatternName(job.pattern),
                     ") do not take equally long, which analytic cannot time; use flow"));
  }

  // Time of every transfer of a round; sets shared_ where two transfers meet on a link.
  absl::StatusOr<std::vector<Timed>> Time(const NetworkJob& job, const Round& round) {
    if (static_cast<int64_t>(round.transfers.size()) > kMaxRoundMessages) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a round of job ", job.name, " has ", round.transfers.size(), " messages"));
    }
    std::vector<size_t> order(round.transfers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return round.transfers[a].destination < round.transfers[b].destination;
    });
    std::vector<std::vector<int32_t>> paths(round.transfers.size());
    std::vector<int32_t> used;
    shared_ = false;
    for (const size_t i : order) {
      const Transfer& t = round.transfers[i];
      SEXTANT_ASSIGN_OR_RETURN(paths[i], router_.Route(static_cast<int32_t>(t.source),
                                                       static_cast<int32_t>(t.destination)));
      for (const int32_t link : paths[i]) {
        double& load = load_bytes_[static_cast<size_t>(link)];
        shared_ |= load > 0;
        if (load == 0) used.push_back(link);
        load += WireBytes(t.bytes, case_.transport);
      }
    }
    std::vector<Timed> times(round.transfers.size());
    for (size_t i = 0; i < times.size(); ++i) {
      for (const int32_t link : paths[i]) {
        times[i].sending_seconds = std::max(times[i].sending_seconds, LoadSeconds(link));
      }
      times[i].tail_seconds =
          TailSeconds(topology_, paths[i], round.transfers[i].bytes, case_.transport);
    }
    bool taken = false;
    for (const int32_t link : used) {
      const size_t index = static_cast<size_t>(link);
      taken |= owner_[index] != -1 && owner_[index] != job_;
      owner_[index] = job_;
      outcome_.link_busy_seconds[index] += LoadSeconds(link) * static_cast<double>(round.repeat);
      load_bytes_[index] = 0;
    }
    if (taken) {
      return absl::UnimplementedError(
          absl::StrCat("job ", job.name,
                       " shares links with another job, which analytic cannot time; use flow"));
    }
    return times;
  }

  double LoadSeconds(int32_t link) const {
    return load_bytes_[static_cast<size_t>(link)] /
           topology_.links()[static_cast<size_t>(link)].bandwidth_bytes_per_second;
  }

  // The first micro-batch crosses all stages; each further one follows after the slowest stage.
  absl::StatusOr<double> ChainSeconds(const NetworkJob& job) {
    double longest = 0;
    Round round;
    round.repeat = job.micro_batch_count;
    for (const std::vector<int64_t>& ranks : job.groups) {
      for (size_t s = 0; s + 1 < ranks.size(); ++s) {
        round.transfers.push_back({ranks[s], ranks[s + 1], job.message_bytes});
      }
    }
    SEXTANT_ASSIGN_OR_RETURN(const std::vector<Timed> times, Time(job, round));
    if (shared_) return Uneven(job);
    size_t next = 0;
    for (const std::vector<int64_t>& ranks : job.groups) {
      double seconds = 0;
      double slowest = 0;
      for (size_t s = 0; s + 1 < ranks.size(); ++s, ++next) {
        seconds += times[next].Total();
        slowest = std::max(slowest, times[next].sending_seconds);
      }
      longest =
          std::max(longest, seconds + static_cast<double>(job.micro_batch_count - 1) * slowest);
    }
    return longest;
  }

  // A chunk climbs `depth` steps and comes down; the others follow one sending time apart.
  absl::StatusOr<double> TreeSeconds(const NetworkJob& job) {
    const int64_t chunk = LargestBlock(job.message_bytes, job.chunk_count);
    Round round;
    round.repeat = job.chunk_count;
    double depth = 0;
    for (const std::vector<int64_t>& ranks : job.groups) {
      for (size_t i = 1; i < ranks.size(); ++i) {
        round.transfers.push_back({ranks[i], ranks[(i - 1) / 2], chunk});
        round.transfers.push_back({ranks[(i - 1) / 2], ranks[i], chunk});
      }
      depth = std::max(depth, std::floor(std::log2(static_cast<double>(ranks.size()))));
    }
    SEXTANT_ASSIGN_OR_RETURN(const std::vector<Timed> times, Time(job, round));
    const auto [least, most] =
        std::minmax_element(times.begin(), times.end(),
                            [](const Timed& a, const Timed& b) { return a.Total() < b.Total(); });
    if (shared_ || most->Total() - least->Total() > kSameTime * most->Total()) return Uneven(job);
    return 2 * depth * most->Total() +
           static_cast<double>(job.chunk_count - 1) * most->sending_seconds;
  }

  const Topology& topology_;
  const NetworkCase& case_;
  Router router_;
  std::vector<int32_t> owner_;      // job that uses each directed link, -1: none yet
  std::vector<double> load_bytes_;  // of the round being timed
  int32_t job_ = 0;
  bool shared_ = false;
  ClosedFormOutcome outcome_;
};

}  // namespace

absl::StatusOr<ClosedFormOutcome> ClosedForm(const Topology& topology,
                                             const NetworkCase& network_case) {
  return ClosedFormTimer(topology, network_case).Run();
}

}  // namespace sextant::network_sim
