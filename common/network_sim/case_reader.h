// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_NETWORK_SIM_CASE_READER_H_
#define SEXTANT_COMMON_NETWORK_SIM_CASE_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/network_sim/network_case.h"

namespace sextant::network_sim {

// Reads a network case from JSON (schema in README.md) and validates it. INVALID_ARGUMENT with all
// violations by field path; text that is not JSON is reported with line and column. `file_name`
// only appears in messages. Fields that only describe (category, description) are not read. Any
// text is safe.
absl::StatusOr<NetworkCase> ParseNetworkCase(absl::string_view json_text,
                                             absl::string_view file_name);

}  // namespace sextant::network_sim

#endif  // SEXTANT_COMMON_NETWORK_SIM_CASE_READER_H_
