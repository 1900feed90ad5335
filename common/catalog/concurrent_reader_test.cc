// SPDX-License-Identifier: Apache-2.0
#include "common/catalog/concurrent_reader.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::catalog {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<collectives::ConcurrentCollectives> Read(absl::string_view text) {
  const auto catalog = Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets");
  if (!catalog.ok()) return catalog.status();
  return ReadConcurrentCollectives(text, "together.yaml", *catalog);
}

TEST(ReadConcurrentCollectives, StridesAndListsGiveGroups) {
  const auto question = Read(R"(
cluster: dgx-h100
gpu_count: 16
collectives:
  - {kind: all_reduce, bytes: 1e6, group_size: 8}
  - {kind: all_gather, bytes: 1e6, group_size: 2, stride: 8, start_seconds: 1e-3, name: data}
  - {kind: send_receive, bytes: 1e6, groups: [{ranks: [0, 8]}]}
derated_links: [{links: rail3, bandwidth_fraction: 0.5}]
dead_switches: [rail7]
)");
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_EQ(question->cluster.name, "dgx-h100");
  EXPECT_EQ(question->collectives[0].name, "all_reduce");
  EXPECT_EQ(question->collectives[0].groups, collectives::StridedGroups(16, 8, 1));
  EXPECT_EQ(question->collectives[1].groups, collectives::StridedGroups(16, 2, 8));
  EXPECT_EQ(question->collectives[1].start_seconds, 1e-3);
  EXPECT_EQ(question->collectives[2].groups, (std::vector<std::vector<int64_t>>{{0, 8}}));
  EXPECT_EQ(question->faults.patterns[0].links, "rail3");
  EXPECT_EQ(question->faults.dead_switches, std::vector<std::string>{"rail7"});
}

TEST(ReadConcurrentCollectives, EveryViolationAtOnce) {
  const absl::Status status = Read(R"(
cluster: dgx-h100
gpu_count: 16
collectives:
  - {kind: all_redoce, bytes: 1e6, group_size: 3}
  - {bytes: 1e6, group_size: 2, groups: [{ranks: [0, 1]}]}
)")
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("collectives[0].kind"));
  EXPECT_THAT(message, HasSubstr("collectives[0].stride"));
  EXPECT_THAT(message, HasSubstr("collectives[1].kind: is missing"));
  EXPECT_THAT(message, HasSubstr("collectives[1].groups: are listed"));
}

TEST(ReadConcurrentCollectives, UnknownNamesAndFieldsSuggestTheNearest) {
  const absl::Status cluster = Read("{cluster: dgx-h10, gpu_count: 8}").status();
  EXPECT_EQ(cluster.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(cluster.message()), HasSubstr("dgx-h100"));
  EXPECT_THAT(std::string(Read("{cluster: dgx-h100, gpu_cuont: 8}").status().message()),
              HasSubstr("gpu_count"));
  EXPECT_EQ(Read("[").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("3").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sextant::catalog
