// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit_framework/fit_framework.h"

#include <cmath>
#include <memory>

#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/memory.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

using parameters::ParameterSet;

constexpr char kAccelerator[] = "a100-sxm4-80gb";

double Seconds(const workload::Job& job, const std::shared_ptr<const ParameterSet>& set) {
  orchestrator::LocalOperatorCost operators(set);
  orchestrator::LocalNetworkTime network(set);
  const auto prediction = orchestrator::Predict(job, operators, network);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return prediction.ok() ? prediction->total_seconds : 0;
}

std::vector<FrameworkTrainingRow> Rows(const std::shared_ptr<const ParameterSet>& set) {
  std::vector<FrameworkTrainingRow> rows;
  for (const int64_t batch : {8, 16, 32, 64}) {
    for (const int64_t hidden : {1024, 2048, 4096}) {
      workload::Job job = orchestrator::LlamaTraining();
      job.framework = "imaginary";
      job.model = orchestrator::GptModel(hidden, 24, 16);
      std::get<workload::TrainingWorkload>(job.workload).global_batch_size = batch;
      rows.push_back({.id = "row", .job = job, .measured_seconds = Seconds(job, set)});
    }
  }
  return rows;
}

TEST(FitFramework, FindsTheOverheadsThatMadeTheRows) {
  parameters::AcceleratorParameters truth;
  truth.profiles["imaginary"] = {{"training.step_seconds", {.value = 0.2}},
                                 {"training.micro_batch_seconds", {.value = 0.03}}};
  const auto set =
      std::make_shared<const ParameterSet>(WithFramework(ParameterSet(), kAccelerator, truth, {}));
  const std::vector<FrameworkTrainingRow> rows = Rows(set);
  const auto fit = FitFramework(rows, {}, kAccelerator, ParameterSet());
  ASSERT_TRUE(fit.ok()) << fit.status();
  ASSERT_EQ(fit->fits.size(), 1);
  EXPECT_GT(fit->fits[0].start_mape_percent, 10);
  EXPECT_LT(fit->fits[0].mape_percent, 1);

  // What was fitted is what serves.
  const auto served = std::make_shared<const ParameterSet>(
      WithFramework(ParameterSet(), kAccelerator, fit->parameters, {}));
  double sum = 0;
  for (const FrameworkTrainingRow& row : rows) {
    sum += std::abs(Seconds(row.job, served) / row.measured_seconds - 1);
  }
  EXPECT_NEAR(100 * sum / static_cast<double>(rows.size()), fit->fits[0].mape_percent, 0.2);
}

// Reserved memory is a peak and what the allocator wastes beside it; the fullest of many devices
// shows what the allocator cannot have.
TEST(FitFramework, ReservedMemoryTellsWasteAndWhatTheAllocatorCannotHave) {
  std::vector<FrameworkTrainingRow> rows;
  double fullest = 0;
  double capacity = 0;
  for (int64_t batch = 1; batch <= 32; ++batch) {
    workload::Job job = orchestrator::LlamaTraining();
    job.framework = "imaginary";
    job.model = orchestrator::GptModel(2048, 24, 16);
    job.plan.micro_batch_size = batch;
    std::get<workload::TrainingWorkload>(job.workload).global_batch_size =
        batch * job.plan.data_parallel_size;
    const auto parameters =
        orchestrator::ResolveFrameworkParameters(ParameterSet(), job.cluster.accelerator, "");
    const double peak = static_cast<double>(
        orchestrator::PredictMemory(job, parameters.memory, /*fused_attention=*/true).total_bytes);
    capacity = static_cast<double>(job.cluster.accelerator.hbm_bytes);
    if (1.2 * peak > 0.95 * capacity) break;
    fullest = 1.2 * peak;
    rows.push_back({.id = "row", .job = job, .measured_reserved_bytes = fullest});
  }
  ASSERT_GE(rows.size(), 6u);
  ASSERT_GT(fullest, 0.85 * capacity);
  while (rows.size() < 40) rows.push_back(rows[rows.size() % 6]);
  const auto fit = FitFramework(rows, {}, kAccelerator, ParameterSet());
  ASSERT_TRUE(fit.ok()) << fit.status();
  const auto& values = fit->parameters.profiles.at("imaginary");
  EXPECT_NEAR(values.at("memory.fragmentation").value, 0.2, 0.01);
  EXPECT_NEAR(values.at("memory.context_bytes").value, std::min(8e9, capacity - fullest), 1);
}

TEST(FitFramework, FewRowsMakeNoProfile) {
  std::vector<FrameworkTrainingRow> rows = Rows(std::make_shared<const ParameterSet>());
  rows.resize(3);
  const auto fit = FitFramework(rows, {}, kAccelerator, ParameterSet());
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_TRUE(fit->fits.empty());
  EXPECT_EQ(fit->parameters.profiles.count("imaginary"), 0);
}

}  // namespace
}  // namespace sextant::calibration
