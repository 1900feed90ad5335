// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_SERVICE_H_
#define SEXTANT_SERVICES_CALIBRATION_SERVICE_H_

#include <chrono>

#include "services/calibration/loop.h"
#include "services/runtime/call.h"
#include "sextant/calibration/v1/calibration_service.grpc.pb.h"

namespace sextant::calibration_service {

inline constexpr char kFullName[] = "sextant.calibration.v1.CalibrationService";

// sextant.calibration.v1.CalibrationService over a loop. Thread-safe.
class Service final : public calibration::v1::CalibrationService::Service {
 public:
  // `loop` must outlive this.
  explicit Service(Loop& loop,
                   std::chrono::milliseconds default_deadline = runtime::kDefaultDeadline)
      : loop_(loop), default_deadline_(default_deadline) {}

  grpc::Status IngestMeasurements(grpc::ServerContext* context,
                                  const calibration::v1::IngestMeasurementsRequest* request,
                                  calibration::v1::IngestMeasurementsResponse* response) override;
  grpc::Status ListMeasurements(grpc::ServerContext* context,
                                const calibration::v1::ListMeasurementsRequest* request,
                                calibration::v1::ListMeasurementsResponse* response) override;
  grpc::Status CancelCalibrationJob(grpc::ServerContext* context,
                                    const calibration::v1::CancelCalibrationJobRequest* request,
                                    calibration::v1::CalibrationJob* response) override;
  grpc::Status WatchCalibrationJob(
      grpc::ServerContext* context, const calibration::v1::WatchCalibrationJobRequest* request,
      grpc::ServerWriter<calibration::v1::CalibrationJob>* writer) override;
  grpc::Status ListPushTargets(grpc::ServerContext* context,
                               const calibration::v1::ListPushTargetsRequest* request,
                               calibration::v1::ListPushTargetsResponse* response) override;
  grpc::Status ListPushes(grpc::ServerContext* context,
                          const calibration::v1::ListPushesRequest* request,
                          calibration::v1::ListPushesResponse* response) override;
  grpc::Status GetWatchStatus(grpc::ServerContext* context,
                              const calibration::v1::GetWatchStatusRequest* request,
                              calibration::v1::GetWatchStatusResponse* response) override;
  grpc::Status CreateCalibrationJob(grpc::ServerContext* context,
                                    const calibration::v1::CreateCalibrationJobRequest* request,
                                    calibration::v1::CalibrationJob* response) override;
  grpc::Status GetCalibrationJob(grpc::ServerContext* context,
                                 const calibration::v1::GetCalibrationJobRequest* request,
                                 calibration::v1::CalibrationJob* response) override;
  grpc::Status ListCalibrationJobs(grpc::ServerContext* context,
                                   const calibration::v1::ListCalibrationJobsRequest* request,
                                   calibration::v1::ListCalibrationJobsResponse* response) override;
  grpc::Status GetParameterSet(grpc::ServerContext* context,
                               const calibration::v1::GetParameterSetRequest* request,
                               types::v1::ParameterSet* response) override;
  grpc::Status ListParameterSets(grpc::ServerContext* context,
                                 const calibration::v1::ListParameterSetsRequest* request,
                                 calibration::v1::ListParameterSetsResponse* response) override;
  grpc::Status PushParameterSet(grpc::ServerContext* context,
                                const calibration::v1::PushParameterSetRequest* request,
                                calibration::v1::PushParameterSetResponse* response) override;
  grpc::Status RollbackParameterSet(
      grpc::ServerContext* context, const calibration::v1::RollbackParameterSetRequest* request,
      calibration::v1::RollbackParameterSetResponse* response) override;

 private:
  Loop& loop_;
  std::chrono::milliseconds default_deadline_;
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_SERVICE_H_
