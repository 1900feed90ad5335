// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_SWEEP_HTML_H_
#define SEXTANT_SERVICES_CLI_RENDER_SWEEP_HTML_H_

#include <string>

#include "common/sweep/report.h"

namespace sextant::cli {

// The report as one page that needs nothing else: a table to sort by any column, the points over
// any two metrics with the Pareto front, speed-up over GPU counts where these vary, and the
// breakdown of the row that is clicked. The page holds the report's JSON (SweepJson) and draws it
// itself; texts of files are never markup.
std::string SweepHtml(const sweep::SweepReport& report);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_SWEEP_HTML_H_
