// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_NETWORK_H_
#define SEXTANT_SERVICES_CLI_RENDER_NETWORK_H_

#include <string>
#include <vector>

#include "common/network_sim/simulate.h"

namespace sextant::cli {

// {"cases": [...]}; times of a case that was not timed are null.
std::string NetworkJson(const std::vector<network_sim::NetworkResult>& results);
// Columns case_id,seconds; seconds are empty for a case that was not timed.
std::string NetworkCsv(const std::vector<network_sim::NetworkResult>& results);
std::string NetworkText(const std::vector<network_sim::NetworkResult>& results);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_NETWORK_H_
