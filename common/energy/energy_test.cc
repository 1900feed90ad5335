// SPDX-License-Identifier: Apache-2.0
#include "common/energy/energy.h"

#include <cmath>

#include "gtest/gtest.h"

namespace sextant::energy {
namespace {

workload::Job FourGpus() {
  workload::Job job;
  job.gpu_count = 4;
  job.cluster.accelerator.name = "h100-sxm5-80gb";
  job.cluster.accelerator.power_watts = 700;
  return job;
}

Economics SomeEconomics() {
  Economics e;
  e.power = {.idle = {0.1, 0.1, 0.2},
             .compute = {0.9, 0.8, 1.0},
             .memory = {0.6, 0.5, 0.7},
             .communication = {0.4, 0.3, 0.5},
             .host_watts_per_gpu = {100, 50, 150},
             .facility_overhead = {1.5, 1.0, 2.0}};
  e.dollars_per_gpu_hour["h100-sxm5-80gb"] = {3, 2, 10};
  return e;
}

// 10 s: 5 compute, 2 memory, 1 exposed communication, 2 bubble.
// Shares: 5 x 0.9 + 2 x 0.6 + 1 x 0.4 + 2 x 0.1 = 6.3; x 700 W = 4410 J; host 1000 J;
// (5410 J) x 1.5 x 4 GPUs = 32460 J.
orchestrator::Prediction TenSeconds() {
  orchestrator::Prediction p;
  p.total_seconds = 10;
  p.tokens_per_second = 50;
  p.breakdown = {{"matrix_multiply", 4},
                 {"attention", 1},
                 {"memory_bound", 2},
                 {"tensor_parallel_exposed", 1},
                 {"pipeline_bubble", 2}};
  return p;
}

TEST(Energy, IsPowerOfEachPartTimesItsSeconds) {
  const Estimate joules = EnergyJoules(FourGpus(), TenSeconds(), SomeEconomics().power);
  EXPECT_NEAR(joules.value, 32460, 1e-6);
  EXPECT_LT(joules.low, joules.value);
  EXPECT_GT(joules.high, joules.value);
  EXPECT_DOUBLE_EQ(TokenCount(TenSeconds()), 500);
}

TEST(Cost, IsGpuHoursTimesPrice) {
  // 4 GPUs x 10 s = 40 / 3600 GPU-hours at 3 dollars.
  const auto cost = CostDollars(FourGpus(), TenSeconds(), SomeEconomics());
  ASSERT_TRUE(cost.has_value());
  EXPECT_DOUBLE_EQ(cost->value, 3 * 40.0 / 3600);
  EXPECT_DOUBLE_EQ(cost->high, 10 * 40.0 / 3600);
  workload::Job unknown = FourGpus();
  unknown.cluster.accelerator.name = "no-such";
  EXPECT_FALSE(CostDollars(unknown, TenSeconds(), SomeEconomics()).has_value());
}

TEST(Economics, UnphysicalValuesAreRefusedByName) {
  EXPECT_TRUE(ValidateEconomics(SomeEconomics()).ok());
  Economics e = SomeEconomics();
  e.power.compute = {2, 2, 2};
  e.power.facility_overhead = {0.9, 0.9, 0.9};
  e.power.idle = {0.3, 0.1, 0.2};
  e.dollars_per_gpu_hour["h100-sxm5-80gb"] = {std::nan(""), 0, 1};
  const absl::Status status = ValidateEconomics(e);
  for (const char* field : {"power.compute", "power.facility_overhead", "power.idle",
                            "dollars_per_gpu_hour[h100-sxm5-80gb]"}) {
    EXPECT_NE(status.message().find(field), std::string::npos) << field;
  }
}

}  // namespace
}  // namespace sextant::energy
