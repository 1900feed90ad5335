// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_ADVICE_H_
#define SEXTANT_SERVICES_CLI_RENDER_ADVICE_H_

#include <string>

#include "common/advise/advise.h"

namespace sextant::cli {

// Advice on `job`, for people.
std::string AdviceText(const workload::Job& job, const advise::Advice& advice);

// KEY=VALUE lines for shells and job environments, one fact each, no line breaks in values:
// SEXTANT_FEASIBLE (1 or 0), SEXTANT_REASON, SEXTANT_GPU_COUNT, SEXTANT_TIME_LIMIT_MINUTES and
// SEXTANT_RUN_SECONDS (0 where the length of the run is unknown), SEXTANT_STEP_SECONDS, the sizes and
// words of the plan, SEXTANT_PARAMETER_SET, and SEXTANT_JOB, the advised job as one line of JSON.
std::string AdviceEnvironment(const workload::Job& job, const advise::Advice& advice);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_ADVICE_H_
