// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/patterns/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPlenty = 1'000'000;

NetworkJob Job(Pattern pattern, int64_t ranks, int64_t bytes) {
  NetworkJob job;
  job.name = "job";
  job.pattern = pattern;
  job.message_bytes = bytes;
  std::vector<int64_t>& group = job.groups.emplace_back(static_cast<size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  return job;
}

Schedule Lower(const NetworkJob& job) {
  absl::StatusOr<Schedule> schedule = LowerJobs({job}, kPlenty);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(static_cast<double>(schedule->messages.size()), MessageCount(job));
  return *std::move(schedule);
}

// Bytes that every rank sends.
std::map<int32_t, int64_t> BytesSent(const Schedule& schedule) {
  std::map<int32_t, int64_t> sent;
  for (const Message& m : schedule.messages) sent[m.source] += m.bytes;
  return sent;
}

TEST(LowerJobs, EveryRankSendsWhatThePatternMoves) {
  // 8 ranks, 64 bytes: reduce-scatter or all-gather 7/8 of 64 = 56 per rank, all-reduce twice.
  for (const auto& [pattern, bytes] :
       std::map<Pattern, int64_t>{{Pattern::kRingAllReduce, 112},
                                  {Pattern::kRingReduceScatter, 56},
                                  {Pattern::kRingAllGather, 56},
                                  {Pattern::kDirectReduceScatter, 56},
                                  {Pattern::kDirectAllGather, 56},
                                  {Pattern::kDirectAllToAll, 56},
                                  {Pattern::kDirectAllReduce, 112},
                                  {Pattern::kPairwiseAllToAll, 56},
                                  {Pattern::kRecursiveDoublingAllReduce, 3 * 64},
                                  {Pattern::kHalvingDoublingAllReduce, 112}}) {
    for (const auto& [rank, sent] : BytesSent(Lower(Job(pattern, 8, 64)))) {
      EXPECT_EQ(sent, bytes) << PatternName(pattern) << " rank " << rank;
    }
  }
}

TEST(LowerJobs, UnevenBlocksLoseNoByte) {
  // 10 bytes over 4 ranks: blocks 3, 3, 2, 2. In each of 3 rounds all four blocks move once.
  int64_t total = 0;
  for (const Message& m : Lower(Job(Pattern::kRingAllGather, 4, 10)).messages) total += m.bytes;
  EXPECT_EQ(total, 30);
}

TEST(LowerJobs, AHierarchyMovesTheBytesOfItsLevels) {
  // 4 x 2 ranks, 80 bytes: level 0 moves 3/4 of 80 = 60, level 1 1/2 of 20 = 10; there and back.
  NetworkJob job = Job(Pattern::kHierarchicalAllReduce, 8, 80);
  job.levels = {4, 2};
  for (const auto& [rank, sent] : BytesSent(Lower(job))) EXPECT_EQ(sent, 140) << rank;
}

TEST(LowerJobs, JoinsCountTheirMessagesAndNoneWaitsForALaterOne) {
  std::vector<NetworkJob> jobs;
  for (const Pattern pattern :
       {Pattern::kRingAllReduce, Pattern::kDirectAllReduce, Pattern::kPairwiseAllToAll,
        Pattern::kHalvingDoublingAllReduce, Pattern::kTreeAllReduce, Pattern::kPipelineChain,
        Pattern::kHierarchicalAllReduce, Pattern::kDoubleBinaryTreeAllReduce,
        Pattern::kTreeBroadcast}) {
    NetworkJob job = Job(pattern, 8, 4096);
    job.levels = {2, 4};
    job.chunk_count = 3;
    job.micro_batch_count = 5;
    jobs.push_back(job);
  }
  const Schedule schedule = *LowerJobs(jobs, kPlenty);
  std::vector<int32_t> arrivals(schedule.join_sizes.size(), 0);
  std::vector<size_t> last_arrival(schedule.join_sizes.size(), 0);
  for (size_t m = 0; m < schedule.messages.size(); ++m) {
    const int32_t join = schedule.messages[m].arrives;
    if (join == kNone) continue;
    ++arrivals[static_cast<size_t>(join)];
    last_arrival[static_cast<size_t>(join)] = m;
  }
  for (const auto& [from, to] : schedule.join_arrivals) {  // joins of joins are made after both
    ++arrivals[static_cast<size_t>(to)];
    last_arrival[static_cast<size_t>(to)] =
        std::max(last_arrival[static_cast<size_t>(to)], last_arrival[static_cast<size_t>(from)]);
  }
  EXPECT_EQ(arrivals, schedule.join_sizes);
  for (size_t m = 0; m < schedule.messages.size(); ++m) {
    const int32_t after = schedule.messages[m].after;
    // Dependencies point backwards, so there is no cycle and every message is sent.
    if (after == kNone) continue;
    EXPECT_LT(last_arrival[static_cast<size_t>(after)], m);
  }
}

TEST(LowerJobs, OneRankSendsNothing) {
  EXPECT_TRUE(Lower(Job(Pattern::kRingAllReduce, 1, 64)).messages.empty());
}

TEST(LowerJobs, TooManyMessagesAreRefusedBeforeTheyAreBuilt) {
  const absl::Status status =
      LowerJobs({Job(Pattern::kRingAllReduce, 2000, 1 << 20)}, 1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 1000"));
}

}  // namespace
}  // namespace sextant::network_sim
