// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_MEASUREMENTS_ROWS_H_
#define SEXTANT_CALIBRATION_MEASUREMENTS_ROWS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/collectives/collective.h"
#include "common/hardware/accelerator.h"
#include "common/hardware/cluster.h"
#include "common/operator_cost/operator.h"
#include "common/workload/job.h"

namespace sextant::calibration {

// What all measured rows share.
struct RowFacts {
  std::string id;  // the file's, unchanged
  std::string suite;
  std::string source;
  std::string family;       // operators: the file's; collectives: the collective's name
  std::string accelerator;  // as the row gives it
  std::string profile;      // ProfileId of software, framework or engine; may be empty
  bool may_fit = false;     // role is "fit"
  std::string quality;      // empty is good
  // False for suspect rows and for times over a fabric that the source does not state: these are
  // predicted and listed, but neither fitted nor counted in a mean.
  bool counted = true;
  std::string refusal;      // why the row cannot be predicted, field by field; empty: it can
  std::string skip_reason;  // why nothing measured is comparable; empty: something is
  std::vector<std::string> warnings;  // defaults taken, readings of the row

  bool Usable() const { return refusal.empty() && skip_reason.empty(); }
};

// Members below `facts` are meaningful only where facts.Usable().
struct OperatorRow {
  RowFacts facts;
  std::shared_ptr<const hardware::Accelerator> accelerator;  // at the clock of the measurement
  operator_cost::Operator op;
  double measured_seconds = 0;
};

struct CollectiveRow {
  RowFacts facts;
  std::shared_ptr<const hardware::Cluster> cluster;
  collectives::Collective collective;
  double measured_seconds = 0;
};

// Settings that a row leaves open and that have no default: whoever predicts it must choose.
struct UnstatedPlan {
  bool tensor_parallel_size = false;
  bool pipeline_parallel_size = false;
  bool context_parallel_size = false;
  bool micro_batch_size = false;
  bool sequence_parallel = false;
  bool zero_stage = false;
  bool recompute = false;

  // Of the sizes; sequence parallelism, ZeRO stage and recompute have a lightest value to start from.
  bool AnySize() const {
    return tensor_parallel_size || pipeline_parallel_size || micro_batch_size;
  }
};

struct TrainingRow {
  RowFacts facts;
  workload::Job job;
  UnstatedPlan unstated;
  std::string status;                            // the file's word
  std::optional<double> measured_seconds;        // one optimizer step; absent for runs that failed
  std::optional<int64_t> measured_memory_bytes;  // allocated where given, else as reported
  std::optional<int64_t> measured_reserved_bytes;  // by the caching allocator, where both are given
  bool memory_is_allocated = false;
  // The framework resets its statistics before the optimizer step: no activations are in them.
  bool memory_is_resident = false;
  std::optional<bool> measured_fits;  // absent where the status says nothing about memory
};

enum class InferenceMetric : int { kTimeToFirstToken, kInterTokenLatency, kEndToEnd, kThroughput };
absl::string_view InferenceMetricName(InferenceMetric metric);  // "ttft", "itl", "e2e", ...

struct InferenceMeasurement {
  InferenceMetric metric = InferenceMetric::kEndToEnd;
  double seconds = 0;       // throughput: seconds per counted token, as the source counts GPUs
  std::string skip_reason;  // why this number is not comparable; empty: it is
};

struct InferenceRow {
  RowFacts facts;
  workload::Job job;
  std::vector<InferenceMeasurement> measured;
  bool throughput_counts_prompt = false;
  bool throughput_per_gpu = false;  // of one GPU, not of the instance
};

// All rows of some files, in file order. Large: pass by reference.
struct Measurements {
  std::vector<OperatorRow> operators;
  std::vector<CollectiveRow> collectives;
  std::vector<TrainingRow> training;
  std::vector<InferenceRow> inference;

  size_t size() const {
    return operators.size() + collectives.size() + training.size() + inference.size();
  }
};

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_MEASUREMENTS_ROWS_H_
