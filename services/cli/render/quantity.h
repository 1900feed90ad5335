// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_QUANTITY_H_
#define SEXTANT_SERVICES_CLI_RENDER_QUANTITY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sextant::cli {

// Numbers for people: four significant digits and a unit. JSON never uses these.
std::string FormatSeconds(double seconds);  // "18.13 s", "26.20 ms", "5.310 us"
std::string FormatBytes(int64_t bytes);     // "72.40 GiB", "512 B"
std::string FormatRate(double per_second, absl::string_view unit);  // "1.234 M tokens/s"
std::string FormatShare(double fraction);                           // "45.3 %"
std::string FormatPercent(double percent);                          // "+4.2 %": signed
std::string FormatNumber(double number);  // four significant digits, no exponent in 1e-4..1e6

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_QUANTITY_H_
