// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_VALIDATION_H_
#define SEXTANT_SERVICES_CLI_RENDER_VALIDATION_H_

#include <string>

#include "calibration/evaluate/validate.h"

namespace sextant::cli {

// {"parameter_set": ..., "rows": [...], "groups": [...]}; keys in README.md.
std::string ValidationJson(const calibration::ValidationReport& report);

// Errors per group and per suite, and with `with_rows` every row before them.
std::string ValidationText(const calibration::ValidationReport& report, bool with_rows);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_VALIDATION_H_
