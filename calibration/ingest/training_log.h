// SPDX-License-Identifier: Apache-2.0
// How long do the steps of a training run take, by its log?
#ifndef SEXTANT_CALIBRATION_INGEST_TRAINING_LOG_H_
#define SEXTANT_CALIBRATION_INGEST_TRAINING_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibration/ingest/origin.h"
#include "calibration/ingest/refusals.h"
#include "calibration/ingest/training_facts.h"

namespace sextant::ingest {

enum class TrainingLogKind : int {
  kMegatron,  // Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed
  kNanotron,
  kTorchtitan,
  kNemo,      // progress bar of NeMo 1, "Training epoch" lines of NeMo 2
  kDllogger,  // NeMo through DLLogger: "DLLL {...}" lines
  kMllog,     // MLPerf training: ":::MLLOG {...}" lines
};
absl::string_view TrainingLogKindName(TrainingLogKind kind);

// What a log says of one step. A framework that averages over a log interval prints one line for
// several steps; its times are per step all the same.
struct TrainingStep {
  int64_t line = 0;
  int64_t iteration = 0;  // as the log counts, from 0 or 1; mllog: samples over the batch size
  std::optional<double> seconds;  // as printed; absent for torchtitan, which prints none
  std::optional<double> tokens_per_second;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> samples_per_second;
  std::optional<double> teraflop_per_second_per_gpu;
  std::optional<double> model_flops_utilization_percent;
  std::optional<double> loss;
  std::optional<double> consumed_tokens;
  std::optional<double> consumed_samples;
  std::optional<double> memory_bytes;          // reserved by the allocator, at most
  std::optional<double> memory_share_percent;  // of the device
  std::optional<double> stamp_seconds;         // when the line was written, of any epoch
  std::optional<int64_t> global_batch_size;    // sequences
  int64_t skipped_count = 0;  // steps without an optimizer update (loss scale overflow)
  bool consumed_tokens_rounded = false;
};

struct TrainingLogReading {
  TrainingLogKind kind = TrainingLogKind::kMegatron;
  std::string framework;  // "Megatron-LM", "nanotron", ...
  Origin origin;
  TrainingFacts facts;                           // sizes and plan, as far as the log states them
  std::vector<TrainingStep> steps;               // one per iteration, in file order
  std::optional<double> allocated_memory_bytes;  // peak of the heaviest rank that reports
  std::optional<double> reserved_memory_bytes;

  // The time of one step: the median without the first, which includes start-up. For DLLogger the
  // median of the differences of time stamps, because it prints running means. Absent with the
  // reason in `step_refusal`.
  std::optional<double> step_seconds;
  std::string step_note;     // how step_seconds came about
  std::string step_refusal;  // why there is none
  Refusals refusals;         // copies from other ranks, cut and glued lines
};

// Text with at least one step line of one of the kinds; the first that matches decides. Labels,
// colours, blanks and glued messages do not matter. At most kTrainingStepLimit steps are kept.
// Linear in the text; never fails.
TrainingLogReading ReadTrainingLog(absl::string_view text);
inline constexpr size_t kTrainingStepLimit = 1'000'000;

// The kind whose step line this is; for the detector.
std::optional<TrainingLogKind> TrainingLogKindOfLine(absl::string_view line);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_TRAINING_LOG_H_
