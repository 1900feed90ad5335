// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit_collectives/fit_collectives.h"

#include <cmath>
#include <limits>

#include "common/collectives/collective_parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

using collectives::CollectiveKind;
using ::testing::HasSubstr;

hardware::Cluster TestCluster() {
  hardware::Cluster cluster;
  cluster.name = "test";
  cluster.accelerator.name = "gpu";
  cluster.accelerator.architecture = "ampere";
  cluster.gpus_per_node = 8;
  cluster.node_bandwidth_bytes_per_second = 300e9;
  cluster.network_bandwidth_bytes_per_second = 200e9;
  cluster.network_latency_seconds = 3e-6;
  return cluster;
}

// The machine behind the synthetic rows: not where the fit starts.
parameters::ParameterSet Truth() {
  parameters::AcceleratorParameters gpu;
  const std::string block = "collective.nvlink.all_reduce.";
  gpu.shared[block + "efficiency"] = {0.66, {}};
  gpu.shared[block + "base_seconds"] = {16e-6, {}};
  gpu.shared[block + "step_seconds"] = {2.5e-6, {}};
  gpu.shared[block + "chunk_seconds"] = {2e-6, {}};
  gpu.shared["collective.network.efficiency"] = {0.75, {}};
  gpu.shared["collective.network.step_trips"] = {4, {}};
  gpu.profiles["engine"][block + "host_seconds"] = {60e-6, {}};
  return parameters::ParameterSet({.name = "truth"}, {{"gpu", gpu}});
}

// Rows of the truth, times a factor that alternates around one by `noise`.
std::vector<CollectiveFitRow> Rows(const std::string& profile, int64_t nodes, double noise = 0) {
  std::vector<CollectiveFitRow> rows;
  double sign = 1;
  for (const int64_t ranks : {2, 4, 8}) {
    if (nodes > 1 && ranks < 8) continue;
    for (double bytes = 1024; bytes < 2e9; bytes *= 2) {
      CollectiveFitRow row;
      row.suite = "synthetic";
      row.cluster = TestCluster();
      row.profile = profile;
      row.collective = {CollectiveKind::kAllReduce, bytes, ranks * nodes, ranks, 1};
      row.measured_seconds = (1 + sign * noise) * collectives::EstimateCollective(
                                                      row.collective, row.cluster,
                                                      collectives::ResolveCollectiveParameters(
                                                          Truth(), row.cluster, profile))
                                                      .seconds;
      sign = -sign;
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<CollectiveFitRow> AllRows(double noise = 0) {
  std::vector<CollectiveFitRow> rows = Rows("nccl-2.27.3", 1, noise);
  for (const auto& more : {Rows("engine", 1, noise), Rows("nccl-2.27.3", 4, noise)}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

parameters::ParameterSet Fitted(const std::vector<CollectiveFitRow>& rows) {
  const absl::StatusOr<CollectiveFit> fit = FitCollectives(rows, parameters::ParameterSet());
  EXPECT_TRUE(fit.ok()) << fit.status();
  return WithCollectives(parameters::ParameterSet(), *fit, {.name = "fitted"});
}

TEST(FitCollectives, FindsTheMachineBehindItsRows) {
  const std::vector<CollectiveFitRow> rows = AllRows();
  EXPECT_GT(CollectiveMapePercent(rows, parameters::ParameterSet()), 15);
  const parameters::ParameterSet fitted = Fitted(rows);
  EXPECT_LT(CollectiveMapePercent(rows, fitted), 2);
  EXPECT_TRUE(parameters::ValidateParameterSet(fitted, collectives::CollectiveDescriptors()).ok());
  EXPECT_NEAR(*fitted.Find("gpu", "", "collective.nvlink.all_reduce.efficiency"), 0.66, 0.07);
  EXPECT_NEAR(*fitted.Find("gpu", "engine", "collective.nvlink.all_reduce.host_seconds"), 60e-6,
              3e-6);
}

TEST(FitCollectives, NoiseIsNotFitted) {
  const parameters::ParameterSet fitted = Fitted(AllRows(0.1));
  EXPECT_LT(CollectiveMapePercent(AllRows(0.1), fitted), 12);
  EXPECT_LT(CollectiveMapePercent(AllRows(), fitted), 6);
  const auto& shared = fitted.accelerators().at("gpu").shared;
  const auto& efficiency = shared.at("collective.nvlink.all_reduce.efficiency");
  ASSERT_TRUE(efficiency.standard_error.has_value());
  EXPECT_GT(*efficiency.standard_error, 0);
}

TEST(FitCollectives, OnlyWhatDiffersBecomesAProfile) {
  std::vector<CollectiveFitRow> rows = AllRows();
  for (CollectiveFitRow& row : rows) {
    if (row.profile == "engine") row.profile = "nccl-2.30";  // the library again: shared
  }
  EXPECT_TRUE(Fitted(rows).Profiles("gpu").empty());
  const std::vector<CollectiveFitRow> same = [&] {
    std::vector<CollectiveFitRow> list = Rows("nccl-2.27.3", 1);
    std::vector<CollectiveFitRow> copy = list;
    for (CollectiveFitRow& row : copy) row.profile = "wrapper";
    list.insert(list.end(), copy.begin(), copy.end());
    return list;
  }();
  EXPECT_TRUE(Fitted(same).Profiles("gpu").empty());
}

TEST(FitCollectives, RowsOfAnUnstatedFabricAreLeftOut) {
  std::vector<CollectiveFitRow> rows = Rows("nccl-2.27.3", 4);
  for (CollectiveFitRow& row : rows) row.cluster.network_stated = false;
  const auto fit = FitCollectives(rows, parameters::ParameterSet());
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit->used_rows, 0);
  ASSERT_EQ(fit->notes.size(), 1u);
  EXPECT_THAT(fit->notes[0], HasSubstr("unstated fabric"));
}

TEST(FitCollectives, EqualRowsGiveEqualSets) {
  EXPECT_EQ(Fitted(AllRows(0.05)).version(), Fitted(AllRows(0.05)).version());
}

TEST(FitCollectives, RowsThatAreNotPhysicalAreNamed) {
  std::vector<CollectiveFitRow> rows = Rows("nccl-2.27.3", 1);
  rows[1].measured_seconds = 0;
  rows[2].weight = std::numeric_limits<double>::infinity();
  rows[3].collective.group_size = 0;
  const std::string message(FitCollectives(rows, parameters::ParameterSet()).status().message());
  EXPECT_THAT(message, HasSubstr("rows[1].measured_seconds: is 0"));
  EXPECT_THAT(message, HasSubstr("rows[2].weight: is inf"));
  EXPECT_THAT(message, HasSubstr("rows[3].group_size: is 0"));
}

TEST(WithCollectives, KeepsWhatIsNotItsOwn) {
  parameters::AcceleratorParameters gpu;
  gpu.shared["gemm.16bit.peak_efficiency"] = {0.8, {}};
  gpu.profiles["old"]["collective.nvlink.all_reduce.host_seconds"] = {1e-6, {}};
  gpu.profiles["old"]["gemm.16bit.peak_efficiency"] = {0.7, {}};
  const parameters::ParameterSet base({.name = "base"}, {{"gpu", gpu}, {"other", gpu}});
  const auto fit = FitCollectives(AllRows(), base);
  ASSERT_TRUE(fit.ok());
  const parameters::ParameterSet set = WithCollectives(base, *fit, {.name = "new"});
  EXPECT_EQ(set.provenance().name, "new");
  EXPECT_EQ(set.Find("gpu", "", "gemm.16bit.peak_efficiency"), 0.8);
  EXPECT_EQ(set.Find("gpu", "old", "gemm.16bit.peak_efficiency"), 0.7);
  EXPECT_EQ(set.accelerators().at("gpu").profiles.at("old").count(
                "collective.nvlink.all_reduce.host_seconds"),
            0u);
  EXPECT_EQ(set.accelerators().at("other"), gpu);
}

TEST(HoldOutGroups, PredictsGroupsThatWereNotFitted) {
  const auto errors = HoldOutGroups(AllRows(0.03), parameters::ParameterSet(), 3);
  ASSERT_TRUE(errors.ok()) << errors.status();
  // 3 sizes x 2 profiles in a node, one size across nodes.
  EXPECT_EQ(errors->mape_percent_by_group.size(), 7u);
  EXPECT_LT(errors->median_percent, 15);
}

}  // namespace
}  // namespace sextant::calibration
