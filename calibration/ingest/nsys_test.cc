// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/nsys.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "calibration/ingest/test_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

using testing::SizeIs;

// Headers as nsys stats prints them: 2024.6 (cuda_gpu_kern_sum) and 2020.4 (gpukernsum).
constexpr char kNew[] =
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n";
constexpr char kOld[] = "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n";

TEST(Nsys, BothHeadersGiveTheSameKernels) {
  const NsysReading current = ReadNsys(absl::StrCat(
      kNew, "90.0,9000,3,3000.0,2900.0,2000,4100,10.5,\"void f<a, b>(int, \"\"x\"\")\"\n",
      "10.0,1000,1,1000.0,1000.0,1000,1000,0.0,ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)\n"));
  const NsysReading old = ReadNsys(
      absl::StrCat(kOld, "90.0,9000,3,3000.0,2000,4100,\"void f<a, b>(int, \"\"x\"\")\"\r\n",
                   "10.0,1000,1,1000.0,1000,1000,ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)\r\n"));
  for (const NsysReading* reading : {&current, &old}) {
    ASSERT_THAT(reading->kernels, SizeIs(2));
    EXPECT_TRUE(reading->complete);
    const NsysKernel& kernel = reading->kernels[0];
    EXPECT_EQ(kernel.name, "void f<a, b>(int, \"x\")");
    EXPECT_EQ(kernel.instance_count, 3);
    EXPECT_DOUBLE_EQ(kernel.total_seconds, 9e-6);
    EXPECT_DOUBLE_EQ(*kernel.mean_seconds, 3e-6);
    EXPECT_DOUBLE_EQ(*kernel.maximum_seconds, 4.1e-6);
    EXPECT_FALSE(kernel.is_communication);
    EXPECT_TRUE(reading->kernels[1].is_communication);
  }
  EXPECT_DOUBLE_EQ(*current.kernels[0].median_seconds, 2.9e-6);
  EXPECT_FALSE(old.kernels[0].median_seconds.has_value());
}

TEST(Nsys, UnitsOfTheHeaderHold) {
  const NsysReading reading =
      ReadNsys("Time (%),Total Time (ms),Instances,Avg (ms),Name\n100.0,\"1,234.5\",2,617.25,k\n");
  ASSERT_THAT(reading.kernels, SizeIs(1));
  EXPECT_DOUBLE_EQ(reading.kernels[0].total_seconds, 1.2345);
}

TEST(Nsys, TablesThatOnlyBearNamesAreRefused) {
  const NsysReading reading = ReadNsys(
      "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n99.0,5000,2,2500.0,cudaLaunchKernel\n\n"
      "Time (%),Total Time (ns),Instances,Avg (ns),Style,Range\n50,10,1,10.0,PushPop,nccl:all\n\n"
      "Time (%),Total Time (ns),Count,Avg (ns),Operation\n50.0,10,1,10.0,[CUDA memcpy HtoD]\n");
  EXPECT_TRUE(reading.kernels.empty());
  EXPECT_EQ(reading.refusals.Count("is a call of the host, not a kernel"), 1);
  EXPECT_EQ(reading.refusals.Count("is an annotated range, not a kernel"), 1);
  EXPECT_EQ(reading.refusals.Count("is a memory operation, not a kernel"), 1);
}

TEST(Nsys, DamagedRowsAreRefusedAndCutListsSaid) {
  const NsysReading reading = ReadNsys(absl::StrCat(
      kNew, "50.0,9000,3,3000.0,2900.0,2000,4100,10.5,f\n", "50.0,9000,3,3000.0,2900.0,20\n",
      "1.0,NaN,3,3000.0,2900.0,2000,4100,10.5,g\n", "1.0,9000,3,300.0,2900.0,2000,4100,10.5,h\n",
      "1.0,0,0,0,0,0,0,0,idle\n", "50.0,9000,3,3000.0,2900.0,2000,4100,10.5,f\n"));
  EXPECT_THAT(reading.kernels, SizeIs(1));
  EXPECT_EQ(reading.refusals.Count("line is cut or not a row of the table"), 2);
  EXPECT_EQ(reading.refusals.Count("total and mean contradict each other"), 1);
  EXPECT_EQ(reading.refusals.Count("ran no time"), 1);
  EXPECT_EQ(reading.refusals.Count("is a copy of a row before it"), 1);
  EXPECT_FALSE(reading.complete);  // shares sum to 50
}

TEST(NsysSamples, FilesGiveTheirTrueValues) {
  SEXTANT_NEEDS_SAMPLES();
  const NsysReading csv = ReadNsys(ReadSample("nsys/llama31_8b_q4_prefill_476tok_kern_sum.csv"));
  ASSERT_THAT(csv.kernels, SizeIs(15));
  int64_t instances = 0;
  double total = 0;
  for (const NsysKernel& kernel : csv.kernels) {
    instances += kernel.instance_count;
    total += kernel.total_seconds;
    EXPECT_FALSE(kernel.is_communication);
  }
  EXPECT_EQ(instances, 679);
  EXPECT_NEAR(total, 0.198511027, 1e-12);
  EXPECT_EQ(csv.kernels[0].name, "flash_attention_prefill_f16");
  EXPECT_EQ(csv.kernels[1].instance_count, 193);
  EXPECT_NEAR(csv.kernels[2].total_seconds, 0.032179988, 1e-12);
  EXPECT_TRUE(csv.complete);

  const NsysReading table = ReadNsys(ReadSample("nsys/vllm_h100_nsys_stats_table.txt"));
  ASSERT_THAT(table.kernels, SizeIs(9));
  instances = 0;
  total = 0;
  for (const NsysKernel& kernel : table.kernels) {
    instances += kernel.instance_count;
    total += kernel.total_seconds;
    EXPECT_TRUE(kernel.name_is_cut);
  }
  EXPECT_EQ(instances, 186697);
  EXPECT_NEAR(total, 21.650493023, 1e-9);
  EXPECT_NEAR(table.kernels[0].total_seconds, 10.327352338, 1e-9);
  EXPECT_EQ(table.kernels[1].instance_count, 5152);
  EXPECT_FALSE(table.complete);
  EXPECT_EQ(table.report, "cuda_gpu_kern_sum");
}

}  // namespace
}  // namespace sextant::ingest
