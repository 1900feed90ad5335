// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_RENDER_PREDICTION_H_
#define SEXTANT_SERVICES_CLI_RENDER_PREDICTION_H_

#include <string>

#include "common/orchestrator/prediction.h"
#include "common/workload/job.h"

namespace sextant::cli {

// The answer to `job` as one JSON document; the keys are listed in README.md and always all there.
std::string PredictionJson(const workload::Job& job, const orchestrator::Prediction& prediction);

// The same for people: what was asked, the verdict, where time and memory go (parts that
// are not zero), what limits.
std::string PredictionText(const workload::Job& job, const orchestrator::Prediction& prediction);

// One sentence for stderr where the job does not fit: how many bytes are lacking, and where.
std::string ShortfallMessage(const orchestrator::Prediction& prediction);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_RENDER_PREDICTION_H_
