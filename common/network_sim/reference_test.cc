// SPDX-License-Identifier: Apache-2.0
// Compares with the packet-level reference; see reference_cases/SOURCES.md.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/network_sim/case_reader.h"
#include "common/network_sim/simulate.h"
#include "gtest/gtest.h"

namespace sextant::network_sim {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Expected {
  std::string id;
  double fair_seconds = 0;
  double seconds = 0;  // 0: not run
  double no_window_seconds = 0;
  bool sensitive = false;
  double ns3_runtime_seconds = 0;
};

std::string Directory() { return SEXTANT_SOURCE_DIR "/common/network_sim/reference_cases"; }

std::vector<Expected> ReadExpected() {
  std::vector<Expected> all;
  std::ifstream in(Directory() + "/expected.csv");
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line,
            "case_id,seconds_fair,seconds,seconds_inf_window,transport_sensitive,ns3_runtime_s");
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    Expected& e = all.emplace_back();
    e.id = fields.at(0);
    const auto number = [&](size_t i) {
      double value = 0;
      return absl::SimpleAtod(fields.at(i), &value) ? value : 0.0;
    };
    e.fair_seconds = number(1);
    e.seconds = number(2);
    e.no_window_seconds = number(3);
    e.sensitive = fields.at(4) == "1";
    e.ns3_runtime_seconds = number(5);
  }
  return all;
}

// Seconds of a case; nothing where the fidelity has no answer.
std::optional<double> Seconds(const std::string& id, Fidelity fidelity) {
  const std::string path = absl::StrCat(Directory(), "/", id, ".json");
  const absl::StatusOr<NetworkCase> network_case = ParseNetworkCase(ReadFile(path), path);
  EXPECT_TRUE(network_case.ok()) << network_case.status();
  if (!network_case.ok()) return std::nullopt;
  const absl::StatusOr<NetworkResult> result = SimulateNetworkCase(*network_case, fidelity);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return std::nullopt;
  if (result->status == NetworkStatus::kOk) return result->total_seconds;
  EXPECT_EQ(fidelity, Fidelity::kAnalytic) << id << ": " << result->reason;
  EXPECT_FALSE(result->reason.empty());
  return std::nullopt;
}

double PercentError(double predicted, double reference) {
  return 100 * std::abs(predicted / reference - 1);
}

TEST(ReferenceCases, FlowsAgreeWithFairPackets) {
  double sum = 0;
  int count = 0;
  for (const Expected& e : ReadExpected()) {
    const std::optional<double> seconds = Seconds(e.id, Fidelity::kFlow);
    ASSERT_TRUE(seconds.has_value());
    const double error = PercentError(*seconds, e.fair_seconds);
    EXPECT_LT(error, 1) << e.id << ": " << *seconds << " against " << e.fair_seconds;
    sum += error;
    ++count;
  }
  EXPECT_EQ(count, 84);
  EXPECT_LT(sum / count, 0.1);
}

TEST(ReferenceCases, FlowsAgreeWithEveryTransportWhereThatIsDefined) {
  for (const Expected& e : ReadExpected()) {
    if (e.seconds == 0) continue;
    const double seconds = Seconds(e.id, Fidelity::kFlow).value_or(0);
    if (!e.sensitive) {
      EXPECT_LT(PercentError(seconds, e.seconds), 5) << e.id;
      continue;
    }
    const auto [least, most] = std::minmax({e.fair_seconds, e.seconds, e.no_window_seconds});
    EXPECT_GE(seconds, least * 0.95) << e.id;
    EXPECT_LE(seconds, most * 1.05) << e.id;
  }
}

std::string Percent(double predicted, double reference) {
  return absl::StrFormat("%+.2f", 100 * (predicted / reference - 1));
}

// "1.234e-03 | +0.12", or dashes where there is no answer.
std::string Compared(const std::optional<double>& seconds, double reference) {
  if (!seconds.has_value()) return "- | -";
  return absl::StrCat(absl::StrFormat("%.4e", *seconds), " | ", Percent(*seconds, reference));
}

// reference_cases/ACCURACY.md, which SEXTANT_UPDATE_TABLES=1 writes anew.
TEST(ReferenceCases, TheTableOfAccuracyIsWhatIsMeasured) {
  std::string rows;
  double sum = 0;
  double largest = 0;
  const std::vector<Expected> all = ReadExpected();
  for (const Expected& e : all) {
    const std::optional<double> flow = Seconds(e.id, Fidelity::kFlow);
    ASSERT_TRUE(flow.has_value()) << e.id;
    const double error = PercentError(*flow, e.fair_seconds);
    sum += error;
    largest = std::max(largest, error);
    absl::StrAppend(&rows, "| ", e.id, e.sensitive ? " *" : "", " | ",
                    absl::StrFormat("%.4e", e.fair_seconds), " | ", Compared(flow, e.fair_seconds),
                    " | ", e.seconds > 0 ? Percent(*flow, e.seconds) : "-", " | ",
                    Compared(Seconds(e.id, Fidelity::kAnalytic), e.fair_seconds), " |\n");
  }
  const std::string table = absl::StrCat(
      "# Accuracy against the packet-level reference\n\n"
      "Written by `SEXTANT_UPDATE_TABLES=1 reference_test`; a test holds it to what is measured.\n"
      "Errors in percent: of `flow` against packets with fair queues and against queues in order "
      "of\n"
      "arrival, of `analytic` against fair queues where it applies. * the time depends on the "
      "transport.\n\n",
      absl::StrFormat(
          "%d cases; mean error of `flow` against fair queues %.2f %%, largest %.2f %%.",
          all.size(), sum / static_cast<double>(all.size()), largest),
      "\n\n| case | fair, s | flow, s | error % | against fifo % | analytic, s | error % |\n"
      "|---|---:|---:|---:|---:|---:|---:|\n",
      rows);
  const std::string path = Directory() + "/ACCURACY.md";
  if (std::getenv("SEXTANT_UPDATE_TABLES") != nullptr) std::ofstream(path) << table;
  EXPECT_EQ(ReadFile(path), table) << "run with SEXTANT_UPDATE_TABLES=1";
}

TEST(ReferenceCases, ClosedFormsAgreeWithPacketsWhereTheyApply) {
  int count = 0;
  for (const Expected& e : ReadExpected()) {
    const std::optional<double> seconds = Seconds(e.id, Fidelity::kAnalytic);
    if (!seconds.has_value()) continue;
    ++count;
    EXPECT_LT(PercentError(*seconds, e.fair_seconds), 2) << e.id;
  }
  EXPECT_GE(count, 30);
}

}  // namespace
}  // namespace sextant::network_sim
