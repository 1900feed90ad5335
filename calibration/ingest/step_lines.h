// SPDX-License-Identifier: Apache-2.0
// The line that each training framework prints for a step.
#ifndef SEXTANT_CALIBRATION_INGEST_STEP_LINES_H_
#define SEXTANT_CALIBRATION_INGEST_STEP_LINES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibration/ingest/json.h"
#include "calibration/ingest/training_log.h"

namespace sextant::ingest {

// Steps of one line. `broken` counts pieces that begin like a step and are cut or glued.
struct StepLine {
  std::vector<TrainingStep> steps;
  int64_t broken_count = 0;
};

// Each: nothing where the line is none of this framework's.
//
// Megatron: "iteration        1/       1 | consumed samples: 128 | elapsed time per iteration
// (ms): 20289.1 | ... |". Two iterations glued on one line are both read; a time that is not
// closed by '|' is not trusted.
std::optional<StepLine> MegatronSteps(absl::string_view line);
// nanotron: "iteration: 1 / 15 | consumed_tokens: 512 | elapsed_time_per_iteration_ms: 4.71K | ..."
std::optional<StepLine> NanotronSteps(absl::string_view line);
// torchtitan: "step: 1990  loss:  3.4370  memory: 68.57GiB(86.69%)  tps: 6,785  mfu: 39.73%"
std::optional<StepLine> TorchtitanSteps(absl::string_view line);
// NeMo: "... train_step_timing in s=11.20]" or "... | train_step_timing in s: 11.20 | ..."
std::optional<StepLine> NemoSteps(absl::string_view line);

// The JSON behind "DLLL" or ":::MLLOG" on a line; nothing where there is none or it is cut.
std::optional<JsonValue> TaggedJson(absl::string_view line, absl::string_view tag);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_STEP_LINES_H_
