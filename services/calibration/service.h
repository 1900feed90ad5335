// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_SERVICE_H_
#define SEXTANT_SERVICES_CALIBRATION_SERVICE_H_

#include <chrono>

#include "services/calibration/job_runner.h"
#include "services/calibration/push_targets.h"
#include "services/calibration/set_library.h"
#include "services/runtime/call.h"
#include "sextant/calibration/v1/calibration_service.grpc.pb.h"

namespace sextant::calibration_service {

inline constexpr char kFullName[] = "sextant.calibration.v1.CalibrationService";

// sextant.calibration.v1.CalibrationService over a calibrator. Thread-safe.
class Service final : public calibration::v1::CalibrationService::Service {
 public:
  // Everything must outlive this.
  Service(JobRunner& jobs, SetLibrary& library, const PushTargets& targets,
          std::chrono::milliseconds default_deadline = runtime::kDefaultDeadline)
      : jobs_(jobs), library_(library), targets_(targets), default_deadline_(default_deadline) {}

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
  JobRunner& jobs_;
  SetLibrary& library_;
  const PushTargets& targets_;
  std::chrono::milliseconds default_deadline_;
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_SERVICE_H_
