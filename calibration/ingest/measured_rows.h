// SPDX-License-Identifier: Apache-2.0
// What a reading is worth as rows of our own measurement tables.
#ifndef SEXTANT_CALIBRATION_INGEST_MEASURED_ROWS_H_
#define SEXTANT_CALIBRATION_INGEST_MEASURED_ROWS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibration/ingest/kineto.h"
#include "calibration/ingest/nccl_tests.h"
#include "calibration/ingest/nsys.h"
#include "calibration/ingest/refusals.h"
#include "calibration/ingest/serving.h"
#include "calibration/ingest/training_log.h"
#include "common/workload/job.h"

namespace sextant::ingest {

// What a file does not say about its measurements. Empty and absent: not known either.
struct IngestContext {
  std::string accelerator;  // id of the catalog; else what the file's device name or the job says
  std::string cluster;      // likewise
  std::string software;     // library, framework or engine with its version
  std::string collective;   // of an nccl-tests table that does not tell
  std::optional<int64_t> gpu_count;
  std::optional<int64_t> node_count;
  std::optional<workload::Job> job;  // model, batch and plan of a training or serving run
  std::string suite = "ingested";
  std::string role = "fit";
  std::string source;  // empty: the file's name
};

enum class RowKind : int { kOperators, kCollectives, kTraining, kInference };

// One row; an absent column is unknown. `id` is a fingerprint of what the file says, not of its
// name nor of the context, so that a second ingest of the same content gives the same ids.
struct MeasuredRow {
  RowKind kind = RowKind::kOperators;
  std::map<std::string, std::string> columns;
};

// Each: the rows that are complete with the context. Where the context contradicts the file, or
// something stays unknown, `refusals` says what.
std::vector<MeasuredRow> RowsOf(const NcclTestsReading& reading, const IngestContext& context,
                                Refusals* refusals);
std::vector<MeasuredRow> RowsOf(const KinetoReading& reading, const IngestContext& context,
                                Refusals* refusals);
std::vector<MeasuredRow> RowsOf(const TrainingLogReading& reading, const IngestContext& context,
                                Refusals* refusals);
std::vector<MeasuredRow> RowsOf(const ServingReading& reading, const IngestContext& context,
                                Refusals* refusals);
// Always none: names of kernels say no shapes.
std::vector<MeasuredRow> RowsOf(const NsysReading& reading, const IngestContext& context,
                                Refusals* refusals);

// The rows of one kind as CSV with the columns that calibration/measurements reads; empty where
// there are none.
std::string RowsCsv(RowKind kind, absl::Span<const MeasuredRow> rows);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_MEASURED_ROWS_H_
