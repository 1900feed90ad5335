// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_NUMBER_H_
#define SEXTANT_SERVICES_CLI_RENDER_NUMBER_H_

#include <string>

namespace sextant::cli {

// The shortest text that reads back to the same bits ("0.1", "1e+21"); empty for NaN and infinity.
std::string ShortestNumber(double number);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_NUMBER_H_
