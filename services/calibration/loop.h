// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_LOOP_H_
#define SEXTANT_SERVICES_CALIBRATION_LOOP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/calibration/calibrator.h"
#include "services/calibration/fleet.h"
#include "services/calibration/job_runner.h"
#include "services/calibration/set_library.h"
#include "services/calibration/store/record_store.h"
#include "services/calibration/watch.h"
#include "services/runtime/metrics.h"
#include "sextant/calibration/v1/calibration_service.pb.h"

namespace sextant::calibration_service {

struct LoopOptions {
  std::string state_directory;  // holds the SQLite store; empty: in memory
  std::string database;         // PostgreSQL connection string or SQLite file instead; may be empty
  std::string datasets_directory;  // empty: the built-in one
  FleetOptions fleet;
  // Instead of the fleet's targets, where not empty.
  std::vector<client::Client> clients;
  WatchOptions watch;
  // Those of this suite where empty.
  Calibrator calibrator;
  Judge judge;
};

// Measurements in, parameter sets out: the store, the jobs, the fleet and the watch of one process,
// wired. Thread-safe.
class Loop {
 public:
  // Takes up what an earlier process left. Errors of RecordStore::Open.
  static absl::StatusOr<std::unique_ptr<Loop>> Start(LoopOptions options,
                                                     runtime::Metrics& metrics);

  ~Loop();

  // Takes files in, all or none: INVALID_ARGUMENT names every file that is of no known format.
  // `sequences` (may be null) receives the measurements of the files, the known ones too.
  absl::StatusOr<calibration::v1::IngestMeasurementsResponse> Ingest(
      const google::protobuf::RepeatedPtrField<calibration::v1::MeasurementFile>& files,
      std::vector<int64_t>* sequences);
  absl::StatusOr<PushOutcome> Rollback();

  RecordStore& store() { return *store_; }
  SetLibrary& sets() { return *library_; }
  Fleet& fleet() { return *fleet_; }
  JobRunner& jobs() { return *jobs_; }
  Watch& watch() { return *watch_; }

 private:
  struct Counters;
  explicit Loop(std::string datasets_directory);
  absl::Status TakeUpFiles(const std::string& directory);

  const std::string datasets_directory_;
  // Destroyed from the last to the first.
  std::unique_ptr<Counters> counters_;
  std::unique_ptr<RecordStore> store_;
  std::unique_ptr<SetLibrary> library_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<JobRunner> jobs_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_LOOP_H_
