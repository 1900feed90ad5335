// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_ADVICE_H_
#define SEXTANT_SERVICES_CLI_RENDER_ADVICE_H_

#include <string>

#include "common/advise/advise.h"

namespace sextant::cli {

// Advice on `job`, for people.
std::string AdviceText(const workload::Job& job, const advise::Advice& advice);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_ADVICE_H_
