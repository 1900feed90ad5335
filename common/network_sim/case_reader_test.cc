// SPDX-License-Identifier: Apache-2.0
#include "common/network_sim/case_reader.h"

#include <random>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

using ::testing::HasSubstr;

constexpr char kValid[] = R"({
 "case_id": "small", "description": "not read",
 "topology": {"kind": "torus", "dims": [4, 2], "link_bandwidth_GBps": [50, 25],
              "link_latency_ns": 500},
 "link_faults": [{"a": 0, "b": 1, "bandwidth_fraction": 0.5}],
 "ecmp_seed": 7,
 "transport": {"payload_bytes": 2048, "header_bytes": 32},
 "jobs": [{"name": "main", "pattern": "ring_all_reduce", "groups": [[0, 1, 2, 3]],
           "message_bytes": 4096, "start_ns": 1000, "bidirectional": true}]
})";

std::string MessageOf(absl::string_view text) {
  const absl::StatusOr<NetworkCase> parsed = ParseNetworkCase(text, "case.json");
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

// The valid case with one text replaced.
std::string Broken(absl::string_view from, absl::string_view to) {
  std::string text = absl::StrReplaceAll(kValid, {{from, to}});
  EXPECT_NE(text, kValid) << from;
  return text;
}

TEST(ParseNetworkCase, ReadsEveryFieldInBaseUnits) {
  const absl::StatusOr<NetworkCase> parsed = ParseNetworkCase(kValid, "case.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  NetworkCase expected;
  expected.id = "small";
  expected.topology.kind = TopologyKind::kTorus;
  expected.topology.dimensions = {4, 2};
  expected.topology.links = {{50e9, 500e-9}, {25e9, 500e-9}};
  expected.faults.links = {{0, 1, 0.5}};
  expected.ecmp_seed = 7;
  expected.transport = {2048, 32, 0};
  NetworkJob& job = expected.jobs.emplace_back();
  job.name = "main";
  job.pattern = Pattern::kRingAllReduce;
  job.groups = {{0, 1, 2, 3}};
  job.message_bytes = 4096;
  job.start_seconds = parsed->jobs[0].start_seconds;
  EXPECT_DOUBLE_EQ(job.start_seconds, 1e-6);
  expected.topology.links[0].latency_seconds = parsed->topology.links[0].latency_seconds;
  expected.topology.links[1].latency_seconds = parsed->topology.links[1].latency_seconds;
  EXPECT_DOUBLE_EQ(parsed->topology.links[0].latency_seconds, 5e-7);
  job.bidirectional = true;
  EXPECT_EQ(*parsed, expected);
}

TEST(ParseNetworkCase, UnknownKindsListTheKnownOnes) {
  EXPECT_THAT(MessageOf(Broken("\"torus\"", "\"dragon\"")),
              HasSubstr("topology.kind: is \"dragon\" but must be one of ring, line, torus"));
  EXPECT_THAT(MessageOf(Broken("ring_all_reduce", "magic")),
              HasSubstr("jobs[0].pattern: is \"magic\" but must be one of ring_all_reduce"));
}

TEST(ParseNetworkCase, EveryViolationIsReportedAtOnce) {
  const std::string message = MessageOf(R"({
    "topology": {"kind": "leaf_spine", "leaves": "two", "endpoints_per_leaf": 1.5},
    "link_faults": 3, "jobs": [{"pattern": "flows"}]})");
  for (const char* part :
       {"topology.leaves: must be an integer", "topology.endpoints_per_leaf: must be an integer",
        "topology.spines: is missing", "topology.nic_bandwidth_GBps: is missing",
        "topology.uplink_latency_ns: is missing", "link_faults: is a number but must be a list",
        "jobs[0].flows: is missing"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(ParseNetworkCase, ValuesOutOfRangeAreNamedWithTheirPath) {
  EXPECT_THAT(MessageOf(Broken("[[0, 1, 2, 3]]", "[[0, 1, 2, 8]]")),
              HasSubstr("jobs[0].groups[0][3]: is 8 but endpoints are 0 to 7"));
  EXPECT_THAT(MessageOf(Broken("[[0, 1, 2, 3]]", "[[0, 1, 1, 2]]")), HasSubstr("repeats rank 1"));
  EXPECT_THAT(MessageOf(Broken("\"message_bytes\": 4096", "\"message_bytes\": 3")),
              HasSubstr("jobs[0].message_bytes: is 3 but is divided into 8 parts"));
  EXPECT_THAT(MessageOf(Broken("[50, 25]", "[50, 0]")),
              HasSubstr("topology.link_bandwidth_GBps: is 0"));
  EXPECT_THAT(MessageOf(Broken("[50, 25]", "[50, 25, 1]")), HasSubstr("has 3 values"));
  EXPECT_THAT(MessageOf(Broken("\"bandwidth_fraction\": 0.5", "\"bandwidth_fraction\": 1.5")),
              HasSubstr("link_faults[0].bandwidth_fraction: is 1.5"));
  EXPECT_THAT(MessageOf(Broken("[4, 2]", "[4000000000, 4000000000]")),
              HasSubstr("topology.dims: is 4000000000"));
  EXPECT_THAT(MessageOf(Broken("\"start_ns\": 1000", "\"start_ns\": -1")),
              HasSubstr("jobs[0].start_ns: is -1"));
  EXPECT_THAT(MessageOf(Broken("ring_all_reduce", "hierarchical_all_reduce")),
              HasSubstr("jobs[0].levels: is missing"));
}

TEST(ParseNetworkCase, TextThatIsNotJsonIsReportedWithItsLine) {
  EXPECT_THAT(MessageOf("{\n \"topology\": oops }"), HasSubstr("case.json: is not JSON"));
  EXPECT_THAT(MessageOf("{\n \"topology\": oops }"), HasSubstr("line 2"));
  EXPECT_THAT(MessageOf(""), HasSubstr("is not JSON"));
  EXPECT_THAT(MessageOf("[1, 2]"), HasSubstr("is a JSON array but must be an object"));
}

TEST(ParseNetworkCase, AnyTextIsSafe) {
  std::mt19937 random(5);
  const std::string valid = kValid;
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = valid;
    for (int change = 0; change < 1 + round % 4; ++change) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 8);
      } else {
        text[at] = static_cast<char>(random() % 256);
      }
    }
    refused += ParseNetworkCase(text, "case.json").ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_FALSE(ParseNetworkCase(std::string(100000, '['), "deep.json").ok());
}

}  // namespace
}  // namespace sextant::network_sim
