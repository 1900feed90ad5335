// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_SWEEP_H_
#define SEXTANT_SERVICES_CLI_RENDER_SWEEP_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/sweep/report.h"

namespace sextant::cli {

std::string SweepJson(const sweep::SweepReport& report);
absl::StatusOr<sweep::SweepReport> ParseSweepJson(const std::string& text);
// One line per row of top, pareto and nearest; the column `list` says which.
std::string SweepCsv(const sweep::SweepReport& report);
std::string SweepText(const sweep::SweepReport& report);

// "tp 8 pp 4 dp 16, micro-batch 2, ZeRO 1, ...", with what the scenario sets before it.
std::string RowText(const sweep::ReportRow& row);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_SWEEP_H_
