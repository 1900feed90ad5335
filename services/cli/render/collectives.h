// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_COLLECTIVES_H_
#define SEXTANT_SERVICES_CLI_RENDER_COLLECTIVES_H_

#include <string>

#include "common/collectives/concurrent.h"

namespace sextant::cli {

struct CollectivesAnswer {
  collectives::ConcurrentTimes times;
  std::string parameter_set;
};

// {"cluster": ..., "gpu_count": ..., "parameter_set": ..., "limiting_link": ..., "collectives":
// [...]}
std::string CollectivesJson(const collectives::ConcurrentCollectives& question,
                            const CollectivesAnswer& answer);
// One line per collective; the columns are those of the JSON.
std::string CollectivesCsv(const collectives::ConcurrentCollectives& question,
                           const CollectivesAnswer& answer);
std::string CollectivesText(const collectives::ConcurrentCollectives& question,
                            const CollectivesAnswer& answer);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_COLLECTIVES_H_
