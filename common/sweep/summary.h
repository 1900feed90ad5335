// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_SUMMARY_H_
#define SEXTANT_COMMON_SWEEP_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/sweep/metric.h"
#include "common/sweep/space.h"

namespace sextant::sweep {

// One point of a sweep: where it lies in the space, and what it measures.
struct Point {
  uint64_t id = 0;  // position in the enumeration of the whole sweep, the same in every shard
  uint32_t scenario = 0;
  Layout layout;
  Metrics metrics;
};

// What a summary keeps of the points it is given.
struct SummaryOptions {
  Metric rank_by = Metric::kTokensPerSecond;
  std::vector<Metric> pareto = {Metric::kTotalSeconds, Metric::kMemoryBytes};  // two or three
  size_t top_count = 20;
  size_t sample_count = 0;  // points kept for a picture of the whole

  friend bool operator==(const SummaryOptions&, const SummaryOptions&) = default;
};

// Why points were turned down, each counted once under the first reason that holds.
struct Counts {
  int64_t candidate_count = 0;              // points of the space
  int64_t predicted_count = 0;              // points whose time was predicted
  int64_t accepted_count = 0;               // points that meet every limit
  std::map<std::string, int64_t> rejected;  // "does_not_fit", "invalid", "time_to_first_token_..."

  void Add(const Counts& other);
};

// The best of what was turned down. Points that fit in memory come before those that do not.
struct NearMiss {
  Point point;
  bool fits = false;
  double excess = 0;  // largest relative miss of a limit, or of memory

  bool BetterThan(const NearMiss& other) const;
};

// The answer to a sweep as it grows. Add and Merge in any order and grouping give equal summaries,
// ties broken by point id: so that threads and shards agree. Thread-compatible.
class Summary {
 public:
  explicit Summary(SummaryOptions options) : options_(std::move(options)) {}

  // A point that meets all limits. O(log top + front).
  void Add(const Point& point);
  void Reject(const std::string& reason, int64_t count = 1) { counts_.rejected[reason] += count; }
  void Miss(const NearMiss& miss);
  void Merge(const Summary& other);
  Counts& counts() { return counts_; }

  const SummaryOptions& options() const { return options_; }
  const Counts& counts() const { return counts_; }
  // Best first.
  std::vector<Point> Top() const;
  // Points that no other beats in every metric of the front, in order of the first metric. Of
  // points equal in all of them the first in the space stands for the rest.
  std::vector<Point> Pareto() const;
  // The best point of each scenario that has one, by scenario.
  const std::map<uint32_t, Point>& BestPerScenario() const { return best_; }
  // The `sample_count` points whose hashed ids are least: a fair sample, equal however it was cut.
  std::vector<Point> Sample() const;
  // The nearest ones first; at most kNearMissCount.
  const std::vector<NearMiss>& NearMisses() const { return misses_; }

  static constexpr size_t kNearMissCount = 5;

 private:
  bool RanksBefore(const Point& a, const Point& b) const;
  bool Dominates(const Point& a, const Point& b) const;
  void AddToTop(const Point& point);
  void AddToFront(const Point& point);
  void AddToSample(const Point& point);

  SummaryOptions options_;
  Counts counts_;
  std::vector<Point> top_;            // heap, worst first
  std::vector<Point> front_;          // unordered
  std::map<uint64_t, Point> sample_;  // by hashed id
  std::map<uint32_t, Point> best_;
  std::vector<NearMiss> misses_;
};

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_SUMMARY_H_
