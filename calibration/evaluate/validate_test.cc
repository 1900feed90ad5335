// SPDX-License-Identifier: Apache-2.0
#include "calibration/evaluate/validate.h"

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "calibration/measurements/read_measurements.h"
#include "common/orchestrator/local_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sextant::calibration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const catalog::Catalog& Catalog() {
  static const auto& catalog =
      *new auto(catalog::Catalog::Open(absl::StrCat(SEXTANT_SOURCE_DIR, "/datasets")));
  return catalog.value();
}

std::shared_ptr<const parameters::ParameterSet> Uncalibrated() {
  return std::make_shared<const parameters::ParameterSet>();
}

// A kernel port that answers every operator with the same time, or fails as a whole.
class FixedCost : public orchestrator::OperatorCostPort {
 public:
  explicit FixedCost(absl::Status status) : status_(std::move(status)) {}
  absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> EstimateOperators(
      absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator&,
      absl::string_view) override {
    ++calls;
    if (!status_.ok()) return status_;
    return std::vector<operator_cost::OperatorEstimate>(
        operators.size(), operator_cost::OperatorEstimate{.seconds = 11e-6});
  }
  absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> CurrentParameters() override {
    return Uncalibrated();
  }
  int calls = 0;

 private:
  absl::Status status_;
};

Measurements ThreeKernels() {
  Measurements measurements;
  const absl::Status status = ParseMeasurements(
      "id,suite,role,quality,source,accelerator,software,family,op,dtype,m,k,n,batch,heads,"
      "kv_heads,head_dim,seq_q,seq_kv,causal,kv_dtype,experts,topk,moe_tp,moe_ep,"
      "expert_distribution,groups,layout,latency_us,notes\n"
      "a,s,fit,,src,a100-sxm4-80gb,,gemm,gemm,bf16,8,64,32,,,,,,,,,,,,,,,,10,\n"
      "b,s,fit,,src,a100-sxm4-80gb,,gemm,gemm,bf16,8,64,32,,,,,,,,,,,,,,,,20,\n"
      "c,s,fit,suspect: odd,src,a100-sxm4-80gb,,gemm,gemm,bf16,8,64,32,,,,,,,,,,,,,,,,1,\n"
      "d,s,fit,,src,a100-sxm4-80gb,,gemm,gemm,bf16,,64,32,,,,,,,,,,,,,,,,1,\n",
      "t.csv", Catalog(), &measurements);
  EXPECT_TRUE(status.ok()) << status;
  return measurements;
}

TEST(Validate, GroupsCountGoodRowsAlone) {
  FixedCost cost((absl::OkStatus()));
  orchestrator::LocalNetworkTime network(Uncalibrated());
  const auto report = Validate(ThreeKernels(), cost, network);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->rows.size(), 4u);
  EXPECT_NEAR(*report->rows[0].error_percent, 10, 1e-9);   // 11 over 10 us
  EXPECT_NEAR(*report->rows[1].error_percent, -45, 1e-9);  // 11 over 20 us
  EXPECT_EQ(report->rows[3].status, RowStatus::kRefused);
  EXPECT_THAT(report->rows[3].reason, HasSubstr("m is not stated"));
  ASSERT_EQ(report->groups.size(), 1u);
  const ValidationGroup& group = report->groups[0];
  EXPECT_EQ(group.count, 2);
  EXPECT_EQ(group.suspect, 1);
  EXPECT_EQ(group.refused, 1);
  EXPECT_NEAR(*group.mape_percent, 27.5, 1e-9);
  EXPECT_NEAR(*group.median_ape_percent, 27.5, 1e-9);
  EXPECT_NEAR(*group.bias_percent, -17.5, 1e-9);
  EXPECT_NEAR(*group.p90_ape_percent, 45, 1e-9);
  EXPECT_EQ(cost.calls, 1);  // one batch per accelerator and profile
}

TEST(Validate, EndsWhereAPortIsUnavailable) {
  FixedCost cost(absl::UnavailableError("gone"));
  orchestrator::LocalNetworkTime network(Uncalibrated());
  EXPECT_TRUE(absl::IsUnavailable(Validate(ThreeKernels(), cost, network).status()));
}

TEST(Validate, NothingGivesAnEmptyReport) {
  const auto report = Validate(Measurements(), Uncalibrated());
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->rows.empty());
  EXPECT_TRUE(report->groups.empty());
}

// Llama 2 70B leaves four A100s of 40 GB less than 7 GB for 320 KiB a token: some ten requests of
// 2048 tokens. 64 of them need several turns, each at least as long as the eight that fit.
TEST(Validate, ABatchThatTheCacheDoesNotHoldIsServedInTurns) {
  Measurements rows;
  const absl::Status status = ParseMeasurements(
      "id,suite,role,quality,source,accelerator,cluster,load,disaggregated,gpus,framework,model,"
      "precision,tp,pp,ep,dp,batch_or_concurrency,input_len,output_len,ttft_ms,itl_ms,e2e_s,"
      "throughput_tok_s,metric_notes\n"
      "a,s,validate,,src,a100-sxm4-40gb,,static,,4,vLLM,Llama-2-70B,fp16,4,1,,,8,1024,1024,,,40,,\n"
      "b,s,validate,,src,a100-sxm4-40gb,,static,,4,vLLM,Llama-2-70B,fp16,4,1,,,64,1024,1024,,,200,,"
      "\n",
      "t.csv", Catalog(), &rows);
  ASSERT_TRUE(status.ok()) << status;
  const auto report = Validate(rows, Uncalibrated());
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->rows.size(), 2u);
  const auto in_turns = Contains(HasSubstr("served in turns"));
  EXPECT_THAT(report->rows[0].warnings, Not(in_turns));
  EXPECT_THAT(report->rows[1].warnings, in_turns);
  EXPECT_GT(*report->rows[1].predicted_seconds, 3 * *report->rows[0].predicted_seconds);
}

void ExpectContract(const ValidationReport& report) {
  int64_t grouped = 0;
  for (const ValidationGroup& group : report.groups) {
    grouped += group.count + group.refused + group.skipped + group.suspect;
  }
  EXPECT_EQ(grouped, static_cast<int64_t>(report.rows.size()));
  for (const ValidationRow& row : report.rows) {
    if (row.status == RowStatus::kOk) {
      ASSERT_TRUE(row.predicted_seconds.has_value()) << row.id;
      EXPECT_TRUE(std::isfinite(*row.predicted_seconds) && *row.predicted_seconds > 0) << row.id;
      EXPECT_LE(row.interval_low_seconds.value_or(0), *row.predicted_seconds) << row.id;
    } else {
      EXPECT_NE(row.reason, "") << row.id;
    }
  }
}

std::vector<std::string> Tables(absl::string_view folder) {
  std::vector<std::string> paths;
  for (const char* kind : {"operators", "collectives", "training", "inference"}) {
    paths.push_back(absl::StrCat(folder, "/", kind, ".csv"));
  }
  return paths;
}

TEST(Validate, AnswersEveryRowOfTheShippedMeasurements) {
  const auto rows = ReadMeasurements(
      Tables(absl::StrCat(SEXTANT_SOURCE_DIR, "/datasets/measurements")), Catalog());
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto set = Catalog().FindParameterSet("default");
  ASSERT_TRUE(set.ok()) << set.status();
  const auto report = Validate(*rows, std::make_shared<const parameters::ParameterSet>(*set));
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectContract(*report);
  for (const ValidationGroup& group : report->groups) {
    // Calculon, a closed-form model, reaches 3.7 % on these eight; the project asks below 5 %.
    if (group.suite != "korthikanti-2022") continue;
    EXPECT_EQ(group.count, 8);
    EXPECT_LT(*group.mape_percent, 5);
  }
}

TEST(Validate, AnswersEveryRowOfTheReferenceTables) {
  const char* reference = std::getenv("SEXTANT_REFERENCE_DIR");
  if (reference == nullptr) {
    GTEST_SKIP() << "SEXTANT_REFERENCE_DIR does not name the reference tables";
  }
  const auto rows = ReadMeasurements(Tables(absl::StrCat(reference, "/measurements")), Catalog());
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto report = Validate(*rows, Uncalibrated());
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectContract(*report);
}

}  // namespace
}  // namespace sextant::calibration
