// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/nccl_tests.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "calibration/ingest/test_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

// The form of nccl-tests 2.13 (src/common.cu, src/all_reduce.cu); numbers of a DGX H100.
constexpr char kHeader[] =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 "
    "agg iters: 1 validation: 1 graph: 0\n"
    "#\n# Using devices\n"
    "#  Rank  0 Group  0 Pid   6899 on node-1 device  0 [0000:04:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   6900 on node-2 device  0 [0000:05:00] NVIDIA H100 80GB HBM3\n"
    "NCCL version 2.18.3+cuda12.2\n#\n"
    "#                                        out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
    "time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
    "(us)  (GB/s)  (GB/s)\n";
constexpr char kRow[] =
    "    22020096      11010048      half     sum      -1    147.7  149.08  149.08      0    146.4 "
    " 150.46  150.46      0\n";

std::string Table(const std::string& rows) { return absl::StrCat(kHeader, rows); }

TEST(NcclTests, RowAndHeaderGiveWhatWasMeasuredWhereAndWith) {
  const NcclTestsReading reading = ReadNcclTests(Table(kRow));
  ASSERT_EQ(reading.runs.size(), 1u);
  const NcclTestsRun& run = reading.runs[0];
  EXPECT_EQ(run.collective, "all_reduce");
  EXPECT_EQ(run.rank_count, 2);
  EXPECT_EQ(run.node_count, 2);
  EXPECT_EQ(run.origin.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(run.origin.software, "NCCL 2.18.3");
  ASSERT_EQ(run.rows.size(), 1u);
  const NcclTestsRow& row = run.rows[0];
  EXPECT_EQ(row.refusal, "");
  EXPECT_EQ(row.bytes, 22020096);
  EXPECT_EQ(row.data_type, "half");
  EXPECT_EQ(row.out_of_place->time_us, 147.7);
  EXPECT_EQ(row.in_place->time_us, 146.4);
  EXPECT_FALSE(row.root.has_value());
}

TEST(NcclTests, LabelsColoursAndCarriageReturnsChangeNothing) {
  const std::string plain = Table(kRow);
  const NcclTestsReading expected = ReadNcclTests(plain);
  for (const auto& [break_from, break_to] : {std::pair<std::string, std::string>{"\n", "\r\n"},
                                             {"\n", "\n[1,0]<stdout>:"},
                                             {"\n", "\n0: "},
                                             {"\n", "\n\x1b[36m"},
                                             {"#", ""}}) {
    const NcclTestsReading reading =
        ReadNcclTests(absl::StrReplaceAll(plain, {{break_from, break_to}}));
    ASSERT_EQ(reading.runs.size(), 1u) << break_to;
    EXPECT_EQ(reading.runs[0].rows.size(), 1u) << break_to;
    EXPECT_EQ(reading.runs[0].rank_count, expected.runs[0].rank_count) << break_to;
    EXPECT_EQ(reading.runs[0].rows[0].out_of_place->time_us, 147.7) << break_to;
  }
}

TEST(NcclTests, WhatIsNoMeasurementIsRefusedWithItsReason) {
  const std::string zero = absl::StrReplaceAll(kRow, {{"22020096      11010048", "0 0"}});
  const std::string wrong = absl::StrReplaceAll(kRow, {{"      0    146.4", "      7    146.4"}});
  const std::string timeless = absl::StrReplaceAll(kRow, {{"147.7", "0.00"}});
  const std::string beside = absl::StrReplaceAll(kRow, {{"149.08  149.08", "14.908  14.908"}});
  const std::string cut = "    22020096      11010048      half     sum      -1    147.7  149.08\n";
  const std::string glued =
      "    1048576      524288      half     sum      -1    147.7  7.1 "
      "7.1   0    146.4  7.16    22020096      11010048      half\n";
  const NcclTestsReading reading =
      ReadNcclTests(Table(zero + wrong + timeless + beside + cut + glued));
  EXPECT_EQ(reading.refusals.Count("moves no bytes"), 1);
  EXPECT_EQ(reading.refusals.Count("failed its validation: #wrong is above 0"), 1);
  EXPECT_EQ(reading.refusals.Count("no time was measured"), 1);
  EXPECT_EQ(reading.refusals.Count("time and bandwidth contradict each other"), 1);
  EXPECT_EQ(reading.refusals.Count("line is cut or glued to another"), 2);
  for (const NcclTestsRow& row : reading.runs[0].rows) EXPECT_NE(row.refusal, "");
}

TEST(NcclTests, OneRankCommunicatesNothing) {
  // By its list of devices, and by a bus bandwidth of nothing where there is no list.
  std::string listed = Table(kRow);
  listed.erase(listed.find("#  Rank  1"), listed.find("NCCL version") - listed.find("#  Rank  1"));
  const std::string bare =
      "    22020096      11010048      half     sum      -1    14.77  1490.8    0.00      0    "
      "14.64  1504.6    0.00      0\n";
  for (const std::string& text : {listed, bare}) {
    const NcclTestsReading reading = ReadNcclTests(text);
    ASSERT_EQ(reading.runs.size(), 1u);
    EXPECT_EQ(reading.runs[0].rows[0].refusal, "one rank: nothing was communicated");
  }
}

TEST(NcclTests, CopiesFromOtherRanksCountOnce) {
  const NcclTestsReading reading = ReadNcclTests(Table(absl::StrCat(kRow, "3: ", kRow, kRow)));
  EXPECT_EQ(reading.runs[0].rows.size(), 1u);
  EXPECT_EQ(reading.refusals.Count("is a copy of a row before it"), 2);
}

TEST(NcclTests, EachTableOfAFileIsARunOfItsOwn) {
  const std::string second =
      absl::StrReplaceAll(Table(kRow), {{"147.7", "148.7"}, {"149.08  149.08", "148.08  148.08"}});
  const NcclTestsReading reading =
      ReadNcclTests("+ srun all_reduce_perf -b 8\n" + Table(kRow) +
                    "# Avg bus bandwidth    : 150.5\n+ srun reduce_scatter_perf -b 8\n" + second);
  ASSERT_EQ(reading.runs.size(), 2u);
  EXPECT_EQ(reading.runs[0].collective, "all_reduce");
  EXPECT_EQ(reading.runs[0].average_bus_gigabytes_per_second, 150.5);
  EXPECT_EQ(reading.runs[1].collective, "reduce_scatter");
}

TEST(NcclTests, ColumnsTellTheCollectiveAndTheRanks) {
  // 2 (n - 1) / n = 1.75 for 8 ranks; counts of all-gather are per rank (size = count x 4 x 16).
  const NcclTestsReading reduce = ReadNcclTests(
      " 17179869184    4294967296     float     sum      -1    62239  276.03  483.05      0\n");
  EXPECT_EQ(reduce.runs[0].collective, "all_reduce");
  EXPECT_EQ(reduce.runs[0].derived_rank_count, 8);
  const std::string gather =
      "  8589934592     134217728     float    none      -1    42713  201.11  188.54    N/A    "
      "42701  201.16  188.59    N/A\n";
  EXPECT_EQ(ReadNcclTests(gather).runs[0].collective, "");  // all-to-all prints the same
  EXPECT_EQ(ReadNcclTests(gather, "allgather.log").runs[0].collective, "all_gather");
  EXPECT_EQ(ReadNcclTests(gather).runs[0].derived_rank_count, 16);
  const std::string exchange = absl::StrReplaceAll(gather, {{"188.54    N/A", "188.54    0"}});
  EXPECT_EQ(ReadNcclTests(exchange).runs[0].collective, "all_to_all");
  const std::string broadcast =
      "  8589934592    2147483648     float    none       0    42713  201.11  201.11      0\n";
  EXPECT_EQ(ReadNcclTests(broadcast).runs[0].collective, "broadcast");
}

struct Expected {
  const char* file;
  const char* collective;
  size_t rows;
  int64_t ranks;  // 0: not in the file
  int64_t nodes;
  // bytes, us, busbw out of place of three rows: first, one in the middle, last
  struct Row {
    int64_t bytes;
    double time_us;
    double bus;
  } shown[3];
  double last_in_place_us;
  double last_in_place_bus;
  double average;
  int64_t refused;
};

// The values that the reference folder's page gives for these files.
const Expected kSamples[] = {
    {"a100x8_nccl_allreduce.log",
     "all_reduce",
     34,
     8,
     1,
     {{0, 35.2, 0}, {131072, 41.19, 5.57}, {8589934592, 63896, 235.26}},
     63959,
     235.03,
     68.4048,
     2},
    {"a100x8_nccl_alltoall.log",
     "all_to_all",
     34,
     8,
     1,
     {{0, 1.63, 0}, {131072, 87.35, 1.31}, {8589934592, 33508, 224.31}},
     33234,
     226.16,
     58.6481,
     5},
    {"allreduce_mpirun_tagged.log",
     "all_reduce",
     32,
     0,
     0,
     {{8, 12.9, 0}, {524288, 21.17, 43.35}, {17179869184, 62239, 483.05}},
     62200,
     483.35,
     156.742,
     0},
    {"h100x16_2nodes_allgather_tcpxo_nohash.log",
     "all_gather",
     11,
     0,
     0,
     {{8388608, 166.6, 47.19}, {268435456, 1522.1, 165.34}, {8589934592, 42713, 188.54}},
     42701,
     188.59,
     146.948,
     0},
    {"h100x16_2nodes_allreduce_a3mega.log",
     "all_reduce",
     31,
     16,
     2,
     {{8, 135.8, 0}, {262144, 167.1, 2.94}, {8589934592, 47535, 338.82}},
     47743,
     337.35,
     70.742,
     0},
    {"h100x8_allreduce_pmix_noise.log",
     "all_reduce",
     6,
     8,
     1,
     {{22020096, 147.7, 260.89}, {176160768, 732.8, 420.72}, {704643072, 2693.8, 457.77}},
     2688.5,
     458.66,
     382.449,
     0}};

TEST(NcclTestsSamples, EveryFileGivesItsTrueValues) {
  SEXTANT_NEEDS_SAMPLES();
  for (const Expected& expected : kSamples) {
    SCOPED_TRACE(expected.file);
    const NcclTestsReading reading =
        ReadNcclTests(ReadSample(absl::StrCat("nccl-tests/", expected.file)), expected.file);
    ASSERT_EQ(reading.runs.size(), 1u);
    const NcclTestsRun& run = reading.runs[0];
    EXPECT_EQ(run.collective, expected.collective);
    EXPECT_EQ(run.rank_count.value_or(0), expected.ranks);
    EXPECT_EQ(run.node_count.value_or(0), expected.nodes);
    ASSERT_EQ(run.rows.size(), expected.rows);
    EXPECT_NEAR(run.average_bus_gigabytes_per_second.value_or(0), expected.average, 1e-9);
    size_t found = 0;
    for (const NcclTestsRow& row : run.rows) {
      for (const Expected::Row& shown : expected.shown) {
        if (row.bytes != shown.bytes || row.out_of_place->time_us != shown.time_us) continue;
        EXPECT_EQ(row.out_of_place->bus_gigabytes_per_second, shown.bus);
        ++found;
      }
    }
    EXPECT_EQ(found, 3u);
    EXPECT_EQ(run.rows.back().in_place->time_us, expected.last_in_place_us);
    EXPECT_EQ(run.rows.back().in_place->bus_gigabytes_per_second, expected.last_in_place_bus);
    int64_t refused = 0;
    for (const NcclTestsRow& row : run.rows) refused += row.refusal.empty() ? 0 : 1;
    EXPECT_EQ(refused, expected.refused);
  }
}

}  // namespace
}  // namespace sextant::ingest
