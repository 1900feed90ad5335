// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_OPERATORS_H_
#define SEXTANT_SERVICES_CLI_RENDER_OPERATORS_H_

#include <optional>
#include <string>
#include <vector>

#include "common/operator_cost/operator.h"

namespace sextant::cli {

// One row of an operator table and its answer.
struct OperatorAnswer {
  std::string id;  // the file's, unchanged
  std::string accelerator;
  std::string profile;
  std::string family;
  std::optional<double> measured_seconds;
  std::optional<operator_cost::OperatorEstimate> estimate;  // absent: refused
  std::string reason;                                       // why refused
  std::vector<std::string> warnings;
};

// {"parameter_set": ..., "operators": [...]}
std::string OperatorsJson(const std::vector<OperatorAnswer>& answers,
                          const std::string& parameter_set);
// One line per row, in order; the columns are those of the JSON.
std::string OperatorsCsv(const std::vector<OperatorAnswer>& answers);
std::string OperatorsText(const std::vector<OperatorAnswer>& answers,
                          const std::string& parameter_set);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_OPERATORS_H_
