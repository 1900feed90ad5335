// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/ingest.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "calibration/ingest/device_names.h"
#include "calibration/measurements/read_measurements.h"
#include "common/catalog/catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// A table of nccl-tests 2.13 on one node of eight H100; rows whose bandwidths are bytes over time.
std::string NcclTable(int hosts = 1) {
  std::string text = "# nThread 1 nGpus 1 minBytes 8\nall_reduce_perf\nNCCL version 2.18.3\n";
  for (int rank = 0; rank < 8; ++rank) {
    absl::StrAppend(&text, "#  Rank  ", rank, " Group  0 Pid 1 on node-", rank % hosts,
                    " device  0 [0x1a] NVIDIA H100 80GB HBM3\n");
  }
  return text +
         "   0   0   half  sum  -1  12.1  0.00  0.00  0  12.1  0.00  0.00  0\n"
         "   22020096  11010048  half  sum  -1  147.7  149.08  260.89  0  146.4  150.46  263.30  "
         "0\n"
         "   44040192  22020096  half  sum  -1  235.4  187.08  327.39  0  234.8  187.60  328.31  "
         "0\n";
}

catalog::Catalog OpenCatalog() {
  auto catalog = catalog::Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets");
  EXPECT_TRUE(catalog.ok()) << catalog.status();
  return *std::move(catalog);
}

std::string OnlyReason(const Ingested& ingested) {
  std::string reasons;
  for (const Refusal& refusal : ingested.refusals.items()) {
    absl::StrAppend(&reasons, refusal.reason, "\n");
  }
  return reasons;
}

TEST(Ingest, RowsOfNcclTestsAreReadByOurTables) {
  const auto ingested = Ingest(NcclTable(), "/some/where/run.log", {});
  ASSERT_TRUE(ingested.ok()) << ingested.status();
  ASSERT_THAT(ingested->rows, SizeIs(2));
  calibration::Measurements measurements;
  const catalog::Catalog catalog = OpenCatalog();
  ASSERT_TRUE(calibration::ParseMeasurements(RowsCsv(RowKind::kCollectives, ingested->rows), "x",
                                             catalog, &measurements)
                  .ok());
  ASSERT_THAT(measurements.collectives, SizeIs(2));
  const calibration::CollectiveRow& row = measurements.collectives[0];
  EXPECT_EQ(row.facts.refusal, "");
  EXPECT_TRUE(row.facts.may_fit);
  EXPECT_EQ(row.facts.source, "run.log");
  EXPECT_EQ(row.facts.profile, "nccl-2.18.3");
  EXPECT_EQ(row.collective.bytes, 22020096);
  EXPECT_EQ(row.collective.group_size, 8);
  EXPECT_EQ(row.collective.ranks_per_node, 8);
  EXPECT_DOUBLE_EQ(row.measured_seconds, 147.7e-6);
}

TEST(Ingest, TheSameContentHasTheSameIdsUnderAnyNameAndOtherContentOthers) {
  const auto first = Ingest(NcclTable(), "a.log", {});
  IngestContext context;
  context.cluster = "dgx-h100";
  const auto again = Ingest(absl::StrReplaceAll(NcclTable(), {{"\n", "\r\n"}}), "b.txt", context);
  const auto other = Ingest(absl::StrReplaceAll(NcclTable(), {{"147.7", "147.8"}}), "a.log", {});
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  ASSERT_THAT(again->rows, SizeIs(2));
  ASSERT_THAT(other->rows, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first->rows[i].columns.at("id"), again->rows[i].columns.at("id"));
    EXPECT_NE(first->rows[i].columns.at("id"), other->rows[i].columns.at("id"));
  }
}

TEST(Ingest, ContextFillsWhatIsUnknownAndMayNotContradict) {
  const std::string bare =
      "   44040192  22020096  half  sum  -1  235.4  187.08  327.39  0  234.8  187.60  328.31  0\n";
  const auto unknown = Ingest(bare, "x", {});
  ASSERT_TRUE(unknown.ok());
  EXPECT_THAT(unknown->rows, SizeIs(0));
  EXPECT_THAT(OnlyReason(*unknown),
              testing::AllOf(HasSubstr("--accelerator"), HasSubstr("--nodes")));
  IngestContext context;
  context.accelerator = "h100-sxm5-80gb";
  context.gpu_count = 8;
  context.node_count = 1;
  EXPECT_THAT(Ingest(bare, "x", context)->rows, SizeIs(1));
  const auto contradicted = Ingest(NcclTable(2), "x", context);
  EXPECT_THAT(contradicted->rows, SizeIs(0));
  EXPECT_THAT(OnlyReason(*contradicted), HasSubstr("nodes is 2 in the file but 1"));
}

TEST(Ingest, TimesOverAFabricThatNobodyStatesAreNotCounted) {
  IngestContext context;
  EXPECT_EQ(Ingest(NcclTable(2), "x", context)->rows[0].columns.at("fabric_stated"), "0");
  context.cluster = "dgx-h100";
  EXPECT_EQ(Ingest(NcclTable(2), "x", context)->rows[0].columns.at("fabric_stated"), "1");
}

workload::Job TrainingJob() {
  workload::Job job;
  job.model = *OpenCatalog().FindModel("llama-3.1-8b");
  job.cluster = *OpenCatalog().FindCluster("dgx-h100");
  job.gpu_count = 8;
  job.workload = workload::TrainingWorkload{128, 8192, workload::Optimizer::kAdam};
  job.plan.data_parallel_size = 8;
  job.framework = "torchtitan";
  return job;
}

TEST(Ingest, AJobMakesALogARow) {
  // 128 x 8192 tokens at 8 x 16384 tokens a second are 8 s.
  const std::string log =
      "step: 10  loss: 3.4  memory: 60.00GiB(75%)  tps: 9,000  mfu: 30.0%\n"
      "step: 20  loss: 3.4  memory: 60.00GiB(75%)  tps: 16,384  mfu: 39.7%\n"
      "step: 30  loss: 3.4  memory: 60.00GiB(75%)  tps: 16,384  mfu: 39.7%\n";
  const auto alone = Ingest(log, "x", {});
  EXPECT_THAT(alone->rows, SizeIs(0));
  EXPECT_THAT(OnlyReason(*alone), HasSubstr("--job"));
  IngestContext context;
  context.job = TrainingJob();
  const auto ingested = Ingest(log, "x", context);
  ASSERT_THAT(ingested->rows, SizeIs(1)) << OnlyReason(*ingested);
  calibration::Measurements measurements;
  const catalog::Catalog catalog = OpenCatalog();
  ASSERT_TRUE(calibration::ParseMeasurements(RowsCsv(RowKind::kTraining, ingested->rows), "x",
                                             catalog, &measurements)
                  .ok());
  ASSERT_THAT(measurements.training, SizeIs(1));
  EXPECT_EQ(measurements.training[0].facts.refusal, "");
  EXPECT_DOUBLE_EQ(*measurements.training[0].measured_seconds, 8.0);
}

TEST(Ingest, AJobThatContradictsTheLogIsRefused) {
  const std::string log =
      " iteration 1/ 10 | elapsed time per iteration (ms): 900.0 | global batch size:  256 |\n"
      " iteration 2/ 10 | elapsed time per iteration (ms): 800.0 | global batch size:  256 |\n";
  IngestContext context;
  context.job = TrainingJob();
  const auto ingested = Ingest(log, "x", context);
  EXPECT_THAT(ingested->rows, SizeIs(0));
  EXPECT_THAT(OnlyReason(*ingested), HasSubstr("gbs is 256 in the file but 128 in the context"));
}

TEST(Ingest, ServingRowsCountRequestsAtOnce) {
  // Little's law: 5 requests a second that stay 0.4 s are two at once.
  const std::string open =
      R"({"completed": 10, "request_rate": 5.0, "request_throughput": 5.0, "mean_ttft_ms": 50.0,
          "mean_tpot_ms": 2.0, "mean_e2el_ms": 400.0, "total_input_tokens": 1000,
          "total_output_tokens": 1760, "output_throughput": 880.0})";
  IngestContext context;
  context.job = TrainingJob();
  context.job->workload = workload::InferenceWorkload{100, 176, 1};
  const auto ingested = Ingest(open, "x", context);
  ASSERT_THAT(ingested->rows, SizeIs(1)) << OnlyReason(*ingested);
  const auto& columns = ingested->rows[0].columns;
  EXPECT_EQ(columns.at("load"), "poisson");
  EXPECT_EQ(columns.at("batch_or_concurrency"), "2");
  EXPECT_EQ(columns.at("input_len"), "100");
  EXPECT_EQ(columns.at("output_len"), "176");
  EXPECT_EQ(columns.at("ttft_ms"), "50");
  EXPECT_EQ(columns.at("itl_ms"), "2");
}

TEST(Ingest, UnknownContentSaysWhatIsKnown) {
  const auto result = Ingest("hello\n", "x.txt", {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("nccl-tests"));
}

TEST(ContextText, KeysAreReadAndEveryWrongLineIsNamed) {
  IngestContext context;
  std::string job;
  ASSERT_TRUE(ReadContextText("# of this run\naccelerator: h100-sxm5-80gb\ngpus: 16  # two nodes\n"
                              "nodes: 2\njob: \"job.yaml\"\nsource: page#3\n",
                              "x.context", &context, &job)
                  .ok());
  EXPECT_EQ(context.accelerator, "h100-sxm5-80gb");
  EXPECT_EQ(context.gpu_count, 16);
  EXPECT_EQ(context.source, "page#3");
  EXPECT_EQ(job, "job.yaml");
  const absl::Status wrong =
      ReadContextText("gpus: none\nspeed: 3\nrole: both\nx\n", "x.context", &context, &job);
  for (const char* part : {"x.context:1", "x.context:2", "role must be", "x.context:4"}) {
    EXPECT_THAT(std::string(wrong.message()), HasSubstr(part));
  }
}

TEST(DeviceNames, DriversNamesAreEntriesOfTheCatalog) {
  const catalog::Catalog catalog = OpenCatalog();
  for (const char* device :
       {"A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB",
        "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200",
        "NVIDIA H800", "NVIDIA A800-SXM4-80GB", "NVIDIA GH200 480GB"}) {
    EXPECT_TRUE(catalog.FindAccelerator(AcceleratorOfDevice(device)).ok()) << device;
  }
  EXPECT_EQ(AcceleratorOfDevice("AMD Radeon Graphics"), "");
  EXPECT_EQ(AcceleratorOfDevice("NVIDIA A100-PG509-200"), "");
}

}  // namespace
}  // namespace sextant::ingest
