// SPDX-License-Identifier: Apache-2.0
#include "common/hardware/accelerator.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::hardware {

absl::Status ValidateAccelerator(const Accelerator& accelerator) {
  base::Violations violations;
  const auto require_positive = [&](absl::string_view field, double value) {
    if (!(value > 0) || !std::isfinite(value)) {
      violations.Add(field, absl::StrCat("is ", value, " but must be positive and finite"));
    }
  };
  const auto require_not_negative = [&](absl::string_view field, double value) {
    if (!(value >= 0) || !std::isfinite(value)) {
      violations.Add(field, absl::StrCat("is ", value, " but must be zero or more, and finite"));
    }
  };
  if (accelerator.name.empty()) violations.Add("name", "is missing; give the accelerator a name");
  require_positive("sm_count", accelerator.sm_count);
  require_positive("boost_clock_hz", accelerator.boost_clock_hz);
  require_positive("vector_flop_per_second", accelerator.vector_flop_per_second);
  require_positive("shared_memory_bytes_per_sm",
                   static_cast<double>(accelerator.shared_memory_bytes_per_sm));
  require_positive("l2_bytes", static_cast<double>(accelerator.l2_bytes));
  require_positive("l2_bandwidth_bytes_per_second", accelerator.l2_bandwidth_bytes_per_second);
  require_positive("hbm_bytes", static_cast<double>(accelerator.hbm_bytes));
  require_positive("hbm_bandwidth_bytes_per_second", accelerator.hbm_bandwidth_bytes_per_second);
  require_positive("pcie_bandwidth_bytes_per_second", accelerator.pcie_bandwidth_bytes_per_second);
  require_not_negative("nvlink_bandwidth_bytes_per_second",
                       accelerator.nvlink_bandwidth_bytes_per_second);
  require_not_negative("power_watts", accelerator.power_watts);
  const auto& rates = accelerator.matrix_flop_per_second;
  for (int i = 0; i < kPrecisionCount; ++i) {
    require_not_negative(absl::StrCat("matrix_flop_per_second.",
                                      std::string(PrecisionName(static_cast<Precision>(i)))),
                         rates[static_cast<size_t>(i)]);
  }
  if (std::none_of(rates.begin(), rates.end(), [](double rate) { return rate > 0; })) {
    violations.Add("matrix_flop_per_second", "is empty; give at least one precision's dense rate");
  }
  return violations.ToStatus();
}

}  // namespace sextant::hardware
