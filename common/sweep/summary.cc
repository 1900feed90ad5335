// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/summary.h"

#include <algorithm>

namespace sextant::sweep {
namespace {

// SplitMix64 (Steele et al. 2014): a bijection, so that distinct ids keep distinct hashes.
uint64_t Hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

void Counts::Add(const Counts& other) {
  candidate_count += other.candidate_count;
  predicted_count += other.predicted_count;
  accepted_count += other.accepted_count;
  for (const auto& [reason, count] : other.rejected) rejected[reason] += count;
}

bool NearMiss::BetterThan(const NearMiss& other) const {
  if (fits != other.fits) return fits;
  if (excess != other.excess) return excess < other.excess;
  return point.id < other.point.id;
}

bool Summary::RanksBefore(const Point& a, const Point& b) const {
  const double cost_a = Cost(a.metrics, options_.rank_by);
  const double cost_b = Cost(b.metrics, options_.rank_by);
  return cost_a != cost_b ? cost_a < cost_b : a.id < b.id;
}

bool Summary::Dominates(const Point& a, const Point& b) const {
  bool strictly = false;
  for (const Metric metric : options_.pareto) {
    const double cost_a = Cost(a.metrics, metric);
    const double cost_b = Cost(b.metrics, metric);
    if (cost_a > cost_b) return false;
    strictly |= cost_a < cost_b;
  }
  return strictly || a.id < b.id;
}

void Summary::AddToTop(const Point& point) {
  const auto before = [this](const Point& a, const Point& b) { return RanksBefore(a, b); };
  if (top_.size() >= options_.top_count) {
    if (top_.empty() || !RanksBefore(point, top_.front())) return;
    std::pop_heap(top_.begin(), top_.end(), before);
    top_.pop_back();
  }
  top_.push_back(point);
  std::push_heap(top_.begin(), top_.end(), before);
}

void Summary::AddToFront(const Point& point) {
  if (options_.pareto.empty()) return;
  for (size_t i = 0; i < front_.size(); ++i) {
    if (!Dominates(front_[i], point)) continue;
    // What beats one point often beats the next: look there first.
    if (i > 0) std::swap(front_[i], front_[i / 2]);
    return;
  }
  std::erase_if(front_, [&](const Point& other) { return Dominates(point, other); });
  front_.push_back(point);
}

void Summary::AddToSample(const Point& point) {
  if (options_.sample_count == 0) return;
  const uint64_t key = Hash(point.id);
  if (sample_.size() >= options_.sample_count) {
    const auto last = std::prev(sample_.end());
    if (key >= last->first) return;
    sample_.erase(last);
  }
  sample_.emplace(key, point);
}

void Summary::Add(const Point& point) {
  AddToTop(point);
  AddToFront(point);
  AddToSample(point);
  const auto [best, fresh] = best_.emplace(point.scenario, point);
  if (!fresh && RanksBefore(point, best->second)) best->second = point;
}

void Summary::Miss(const NearMiss& miss) {
  if (misses_.size() >= kNearMissCount && !miss.BetterThan(misses_.back())) return;
  const auto place = std::find_if(misses_.begin(), misses_.end(),
                                  [&](const NearMiss& other) { return miss.BetterThan(other); });
  misses_.insert(place, miss);
  if (misses_.size() > kNearMissCount) misses_.pop_back();
}

void Summary::Merge(const Summary& other) {
  counts_.Add(other.counts_);
  for (const Point& point : other.top_) AddToTop(point);
  for (const Point& point : other.front_) AddToFront(point);
  for (const auto& [key, point] : other.sample_) AddToSample(point);
  for (const auto& [scenario, point] : other.best_) {
    const auto [best, fresh] = best_.emplace(scenario, point);
    if (!fresh && RanksBefore(point, best->second)) best->second = point;
  }
  for (const NearMiss& miss : other.misses_) Miss(miss);
}

std::vector<Point> Summary::Top() const {
  std::vector<Point> points = top_;
  std::sort(points.begin(), points.end(),
            [this](const Point& a, const Point& b) { return RanksBefore(a, b); });
  return points;
}

std::vector<Point> Summary::Pareto() const {
  std::vector<Point> points = front_;
  std::sort(points.begin(), points.end(), [this](const Point& a, const Point& b) {
    const double cost_a = Cost(a.metrics, options_.pareto.front());
    const double cost_b = Cost(b.metrics, options_.pareto.front());
    return cost_a != cost_b ? cost_a < cost_b : a.id < b.id;
  });
  return points;
}

std::vector<Point> Summary::Sample() const {
  std::vector<Point> points;
  for (const auto& [key, point] : sample_) points.push_back(point);
  return points;
}

}  // namespace sextant::sweep
