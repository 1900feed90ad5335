// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/summary.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace sextant::sweep {
namespace {

// Coarse values, so that ties are common.
std::vector<Point> RandomPoints(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Point> points(count);
  for (size_t i = 0; i < count; ++i) {
    points[i].id = i;
    points[i].scenario = static_cast<uint32_t>(random() % 3);
    points[i].metrics[Metric::kTotalSeconds] = static_cast<double>(1 + random() % 20);
    points[i].metrics[Metric::kMemoryBytes] = static_cast<double>(1 + random() % 20);
    points[i].metrics[Metric::kTokensPerSecond] = static_cast<double>(1 + random() % 20);
  }
  return points;
}

std::vector<uint64_t> Ids(const std::vector<Point>& points) {
  std::vector<uint64_t> ids;
  for (const Point& point : points) ids.push_back(point.id);
  return ids;
}

const SummaryOptions kOptions{
    .rank_by = Metric::kTokensPerSecond,
    .pareto = {Metric::kTotalSeconds, Metric::kMemoryBytes, Metric::kTokensPerSecond},
    .top_count = 10,
    .sample_count = 50};

TEST(Summary, IsTheSameInAnyOrderAndGrouping) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Point> points = RandomPoints(400, seed);
    Summary whole(kOptions);
    for (const Point& point : points) whole.Add(point);

    std::shuffle(points.begin(), points.end(), std::mt19937_64(seed + 1));
    std::vector<Summary> parts(4, Summary(kOptions));
    for (size_t i = 0; i < points.size(); ++i) parts[i % 4].Add(points[i]);
    Summary merged(kOptions);
    for (const size_t part : {2u, 0u, 3u, 1u}) merged.Merge(parts[part]);

    EXPECT_EQ(Ids(whole.Top()), Ids(merged.Top()));
    EXPECT_EQ(Ids(whole.Pareto()), Ids(merged.Pareto()));
    EXPECT_EQ(Ids(whole.Sample()), Ids(merged.Sample()));
    ASSERT_EQ(whole.BestPerScenario().size(), merged.BestPerScenario().size());
    for (const auto& [scenario, point] : whole.BestPerScenario()) {
      EXPECT_EQ(point.id, merged.BestPerScenario().at(scenario).id);
    }
  }
}

TEST(Summary, TopIsWhatSortingGives) {
  std::vector<Point> points = RandomPoints(300, 7);
  Summary summary(kOptions);
  for (const Point& point : points) summary.Add(point);
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.metrics[Metric::kTokensPerSecond] > b.metrics[Metric::kTokensPerSecond];
  });
  points.resize(kOptions.top_count);
  EXPECT_EQ(Ids(summary.Top()), Ids(points));
}

// By definition: kept exactly where no other point is at least as good in all and better in one.
TEST(Summary, FrontHoldsExactlyWhatNothingBeats) {
  const std::vector<Point> points = RandomPoints(300, 11);
  Summary summary(kOptions);
  for (const Point& point : points) summary.Add(point);
  const auto costs = [](const Point& p) {
    return std::vector<double>{p.metrics[Metric::kTotalSeconds], p.metrics[Metric::kMemoryBytes],
                               -p.metrics[Metric::kTokensPerSecond]};
  };
  std::vector<uint64_t> expected;
  for (const Point& p : points) {
    const bool beaten = std::any_of(points.begin(), points.end(), [&](const Point& q) {
      if (q.id == p.id) return false;
      bool as_good = true;
      for (size_t i = 0; i < 3; ++i) as_good &= costs(q)[i] <= costs(p)[i];
      return as_good && (costs(q) != costs(p) || q.id < p.id);
    });
    if (!beaten) expected.push_back(p.id);
  }
  std::vector<uint64_t> front = Ids(summary.Pareto());
  std::sort(front.begin(), front.end());
  EXPECT_EQ(front, expected);
}

TEST(Summary, WhatFitsIsNearerThanWhatDoesNot) {
  Summary summary(kOptions);
  summary.Miss({.point = {.id = 1}, .fits = false, .excess = 0.01});
  summary.Miss({.point = {.id = 2}, .fits = true, .excess = 0.5});
  summary.Miss({.point = {.id = 3}, .fits = true, .excess = 0.2});
  ASSERT_EQ(summary.NearMisses().size(), 3u);
  EXPECT_EQ(summary.NearMisses()[0].point.id, 3u);
  EXPECT_EQ(summary.NearMisses()[1].point.id, 2u);
  EXPECT_EQ(summary.NearMisses()[2].point.id, 1u);
}

TEST(Metric, LimitsAreMetOnTheirSide) {
  Metrics m;
  m[Metric::kTotalSeconds] = 2;
  m[Metric::kTokensPerSecond] = 100;
  EXPECT_EQ(Excess(m, {Metric::kTotalSeconds, 2}), 0);
  EXPECT_DOUBLE_EQ(Excess(m, {Metric::kTotalSeconds, 1}), 1);
  EXPECT_EQ(Excess(m, {Metric::kTokensPerSecond, 100}), 0);
  EXPECT_DOUBLE_EQ(Excess(m, {Metric::kTokensPerSecond, 200}), 0.5);
  EXPECT_GT(Excess(m, {Metric::kTotalSeconds, 0}), 0);
  m[Metric::kTimeToFirstTokenSeconds] = std::nan("");
  EXPECT_GT(Excess(m, {Metric::kTimeToFirstTokenSeconds, 1}), 0);
}

TEST(Metric, NamesReadBack) {
  for (int i = 0; i < kMetricCount; ++i) {
    const auto metric = static_cast<Metric>(i);
    EXPECT_EQ(ParseMetric(MetricName(metric)).value(), metric);
  }
  EXPECT_FALSE(ParseMetric("total_second").ok());
}

}  // namespace
}  // namespace sextant::sweep
