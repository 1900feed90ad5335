// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/kineto.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibration/ingest/gunzip.h"
#include "calibration/ingest/test_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::ingest {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// Events in the form of libkineto's output_json.cpp.
std::string Kernel(const std::string& name, double us, int id, const std::string& args = "") {
  return absl::StrCat(R"({"ph": "X", "cat": "kernel", "name": ")", name,
                      R"(", "pid": 0, "tid": 7, "ts": )", 1000 + 10 * id, R"(, "dur": )", us,
                      R"(, "args": {"External id": )", id, R"(, "correlation": )", id,
                      R"(, "stream": 7, "device": 0)", args, "}}");
}
std::string Addmm(int id) {
  return absl::StrCat(
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": 1, "dur": 39, "args": {)",
      R"("External id": )", id, R"(, "Input type": ["c10::BFloat16", "c10::BFloat16",)",
      R"( "c10::BFloat16"], "Input Strides": [[1], [512, 1], [1, 512]],)",
      R"( "Input Dims": [[1024], [141, 512], [512, 1024], [], []]}})");
}
std::string Trace(const std::vector<std::string>& events) {
  return absl::StrCat(
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],)",
      R"( "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 64},)",
      R"( "traceEvents": [)", absl::StrJoin(events, ",\n"), R"(], "baseTimeNanoseconds": )",
      "1751410836000000000}");
}

TEST(Kineto, KernelsAreSummedByNameAndAnnotationsRefused) {
  const KinetoReading reading = ReadKineto(Trace(
      {Kernel("gemm", 5.5, 1), Kernel("gemm", 4.5, 2),
       Kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", 20, 3),
       R"({"ph": "X", "cat": "gpu_user_annotation", "name": "nccl:all_reduce", "ts": 1, "dur": 20})",
       R"({"ph": "X", "cat": "cuda_profiler_range", "name": "gemm", "ts": 1, "dur": 20})",
       R"({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH", "ts": 1, "dur": 2.25})",
       R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1, "dur": 9})",
       R"({"ph": "s", "cat": "ac2g", "name": "ac2g", "ts": 1})"}));
  EXPECT_EQ(reading.kernel_count, 3);
  EXPECT_NEAR(reading.kernel_seconds, 30e-6, 1e-15);
  EXPECT_EQ(reading.communication_kernel_count, 1);
  EXPECT_NEAR(reading.communication_kernel_seconds, 20e-6, 1e-15);
  EXPECT_EQ(reading.copy_count, 1);
  ASSERT_THAT(reading.kernels, SizeIs(2));
  EXPECT_THAT(reading.kernels[0].name, StartsWith("nccl"));
  EXPECT_EQ(reading.kernels[1].count, 2);
  EXPECT_EQ(reading.refusals.Count("is an annotation that bears the name of a kernel"), 1);
  EXPECT_EQ(reading.refusals.Count("is a range of the profiler, not a kernel"), 1);
  EXPECT_EQ(reading.origin.device, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(reading.world_size, 64);
  EXPECT_EQ(reading.origin.time, "2025-07-01 23:00:36");
}

TEST(Kineto, TheBareArrayAndTheOldCategoriesAreReadAsWell) {
  const KinetoReading reading = ReadKineto(
      R"([{"ph": "X", "cat": "Kernel", "name": "k", "ts": 1, "dur": 2},
          {"ph": "X", "cat": "Memcpy", "name": "m", "ts": 1, "dur": 3}])");
  EXPECT_EQ(reading.kernel_count, 1);
  EXPECT_EQ(reading.copy_count, 1);
}

TEST(Kineto, ProductsAreTiedToTheirKernels) {
  // Call 1 runs one kernel, call 2 two (split-K and its reduction); events in any order.
  const KinetoReading reading =
      ReadKineto(Trace({Kernel("splitk", 6, 2), Addmm(1), Addmm(2), Kernel("gemm", 8, 1),
                        Kernel("reduce", 3, 2), Kernel("gelu", 50, 9)}));
  ASSERT_THAT(reading.gemms, SizeIs(1));
  const KinetoGemm& gemm = reading.gemms[0];
  EXPECT_EQ(gemm.m, 141);
  EXPECT_EQ(gemm.k, 512);
  EXPECT_EQ(gemm.n, 1024);
  EXPECT_EQ(gemm.data_type, "bf16");
  EXPECT_EQ(gemm.layout, "TN");
  EXPECT_EQ(gemm.count, 2);
  EXPECT_NEAR(gemm.median_seconds, 8.5e-6, 1e-15);
}

std::string Nccl(const std::string& name, double us, int id, int64_t in, int64_t out, int group) {
  return Kernel("ncclDevKernel_X(ncclDevComm*)", us, id,
                absl::StrCat(R"(, "Collective name": ")", name, R"(", "In msg nelems": )", in,
                             R"(, "Out msg nelems": )", out, R"(, "Group size": )", group,
                             R"(, "dtype": "BFloat16")"));
}

TEST(Kineto, CollectivesCarryTheirSizes) {
  const KinetoReading reading = ReadKineto(Trace(
      {Nccl("_allgather_base", 90, 1, 1000, 8000, 8), Nccl("_allgather_base", 70, 2, 1000, 8000, 8),
       Nccl("allreduce", 5, 3, 1000, 1000, 1), Nccl("allreduce", 5, 4, 0, 0, 8)}));
  ASSERT_THAT(reading.collectives, SizeIs(1));
  EXPECT_EQ(reading.collectives[0].collective, "all_gather");
  EXPECT_EQ(reading.collectives[0].bytes, 16000);  // all that is gathered, as nccl-tests count
  EXPECT_EQ(reading.collectives[0].count, 2);
  EXPECT_NEAR(reading.collectives[0].shortest_seconds, 70e-6, 1e-15);
  EXPECT_EQ(reading.refusals.Count("one rank: nothing was communicated"), 1);
  EXPECT_EQ(reading.refusals.Count("moves no bytes"), 1);
}

TEST(Kineto, AMergedCopyCountsOnceAndATruncatedTraceAsFarAsItGoes) {
  const KinetoReading copy = ReadKineto(Trace({Kernel("k", 2, 1), Kernel("k", 2, 1)}));
  EXPECT_EQ(copy.kernel_count, 1);
  EXPECT_EQ(copy.refusals.Count("is a copy of an event before it"), 1);
  const std::string whole = Trace({Kernel("k", 2, 1), Kernel("k", 2, 2)});
  const KinetoReading cut = ReadKineto(whole.substr(0, whole.rfind("stream")));
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.kernel_count, 1);
}

TEST(Kineto, EventsWithoutDurationAreRefused) {
  const KinetoReading reading =
      ReadKineto(R"([{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": NaN},
                     {"ph": "X", "cat": "kernel", "name": "k", "ts": 1},
                     {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -4}])");
  EXPECT_EQ(reading.kernel_count, 0);
  EXPECT_EQ(reading.refusals.Count("event has no duration"), 3);
}

std::string Gzip(const std::string& text) {
  std::string packed(compressBound(text.size()) + 64, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<unsigned char*>(packed.data());
  stream.avail_out = static_cast<unsigned>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(Gunzip, UnpacksMembersInARowAndSaysWhatIsCut) {
  const std::string packed = Gzip("hello ") + Gzip("world");
  ASSERT_TRUE(IsGzip(packed));
  EXPECT_EQ(Gunzip(packed, 100)->text, "hello world");
  EXPECT_FALSE(Gunzip(packed, 100)->truncated);
  const std::string long_text(100'000, 'x');
  const auto cut = Gunzip(Gzip(long_text).substr(0, 60), 1'000'000);
  ASSERT_TRUE(cut.ok());
  EXPECT_TRUE(cut->truncated);
  EXPECT_FALSE(Gunzip("\x1f\x8b\x08", 100).ok());
}

TEST(Gunzip, ABombStopsAtTheLimit) {
  const auto result = Gunzip(Gzip(std::string(10'000'000, 'x')), 1'000'000);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
}

struct Expected {
  const char* file;
  int64_t kernels;
  double kernel_us;
  // start of the name, count, us of the three longest
  struct Top {
    const char* name;
    int64_t count;
    double us;
  } top[3];
  int64_t nccl;
  double nccl_us;
  int64_t copies;
  double copy_us;
};

// The values that the reference folder's page gives for these files.
const Expected kSamples[] = {
    {"cupti_range_no_kernels.json.gz", 0, 0, {}, 0, 0, 0, 0},
    {"deepseek_train_ep64_trim.json",
     127,
     27510,
     {{"void dpsk::ep::internode::combine<false", 1, 6074},
      {"void dpsk::ep::internode::cached_notify<false>", 2, 4431},
      {"void cutlass::device_kernel<flash::FlashAttnBwd", 1, 3863}},
     0,
     0,
     1,
     0},
    {"dlrm_train_128ranks_rank0.json.gz",
     1154,
     606519,
     {{"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 10, 396199},
      {"void split_embedding_backward_codegen_rowwise_adagrad", 2, 23469},
      {"void split_embedding_codegen_forward_unweighted_kernel", 2, 15167}},
     10,
     396199,
     50,
     1325},
    {"h100_bert_small_infer.json.gz",
     60,
     307.197,
     {{"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm", 17, 98.718},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128", 1, 41.280},
      {"void pytorch_flash::flash_fwd_kernel", 4, 37.408}},
     0,
     0,
     1,
     2.240},
    {"mi250_toy_train_rocm.json",
     14,
     110.881,
     {{"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32", 1, 17.600},
      {"void at::native::reduce_kernel<128, 4", 1, 13.600},
      {"Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16", 1, 12.640}},
     0,
     0,
     2,
     38.161},
    {"triton_compile_mi300.json.gz",
     12,
     12549.021,
     {{"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", 2, 3749.165},
      {"attn_fwd", 1, 3683.509},
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", 4, 2246.691}},
     0,
     0,
     0,
     0}};

TEST(KinetoSamples, EveryFileGivesItsTrueValues) {
  SEXTANT_NEEDS_SAMPLES();
  for (const Expected& expected : kSamples) {
    SCOPED_TRACE(expected.file);
    std::string text = ReadSample(absl::StrCat("kineto/", expected.file));
    if (IsGzip(text)) text = Gunzip(text, size_t{1} << 30)->text;
    const KinetoReading reading = ReadKineto(text);
    EXPECT_EQ(reading.error, "");
    EXPECT_EQ(reading.kernel_count, expected.kernels);
    EXPECT_NEAR(reading.kernel_seconds * 1e6, expected.kernel_us, 0.0005);
    EXPECT_EQ(reading.communication_kernel_count, expected.nccl);
    EXPECT_NEAR(reading.communication_kernel_seconds * 1e6, expected.nccl_us, 0.0005);
    EXPECT_EQ(reading.copy_count, expected.copies);
    EXPECT_NEAR(reading.copy_seconds * 1e6, expected.copy_us, 0.0005);
    if (expected.kernels == 0) continue;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_THAT(reading.kernels[i].name, StartsWith(expected.top[i].name));
      EXPECT_EQ(reading.kernels[i].count, expected.top[i].count);
      EXPECT_NEAR(reading.kernels[i].total_seconds * 1e6, expected.top[i].us, 0.0005);
    }
  }
}

TEST(KinetoSamples, AnnotationsThatBearKernelNamesAreRefused) {
  SEXTANT_NEEDS_SAMPLES();
  const auto dlrm = ReadKineto(
      Gunzip(ReadSample("kineto/dlrm_train_128ranks_rank0.json.gz"), size_t{1} << 30)->text);
  EXPECT_EQ(dlrm.refusals.Count("is an annotation that bears the name of a kernel"), 10);
  EXPECT_EQ(dlrm.world_size, 128);
  const auto ranges = ReadKineto(
      Gunzip(ReadSample("kineto/cupti_range_no_kernels.json.gz"), size_t{1} << 30)->text);
  EXPECT_EQ(ranges.refusals.Count("is a range of the profiler, not a kernel"), 77);
}

}  // namespace
}  // namespace sextant::ingest
