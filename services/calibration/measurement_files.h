// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_MEASUREMENT_FILES_H_
#define SEXTANT_SERVICES_CALIBRATION_MEASUREMENT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibration/measurements/rows.h"
#include "common/catalog/catalog.h"
#include "services/calibration/store/record_store.h"
#include "sextant/calibration/v1/calibration_service.pb.h"

namespace sextant::calibration_service {

struct RefusedMeasurement {
  std::string id;
  int64_t line = 0;  // 0: not known
  std::string reason;
};

// What one file holds.
struct FileContent {
  std::string format;
  std::string summary;
  std::vector<MeasurementRecord> rows;  // not stored yet
  std::vector<RefusedMeasurement> refused;
  int64_t refused_count = 0;
};

// Reads a table of measurements or a file of any format of calibration/ingest, with the context
// that its sender gives. Rows that no model could predict are refused with the reason.
// INVALID_ARGUMENT for a file that is of no known format. Thread-safe.
absl::StatusOr<FileContent> ReadMeasurementFile(const calibration::v1::MeasurementFile& file,
                                                const catalog::Catalog& catalog);

// The stored rows as the fitting core takes them.
absl::StatusOr<sextant::calibration::Measurements> TypedMeasurements(
    absl::Span<const MeasurementRecord> records, const catalog::Catalog& catalog);

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_MEASUREMENT_FILES_H_
