// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLIENT_CLIENT_H_
#define SEXTANT_SERVICES_CLIENT_CLIENT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/advise/advise.h"
#include "common/collectives/collective.h"
#include "common/collectives/concurrent.h"
#include "common/hardware/cluster.h"
#include "common/network_sim/simulate.h"
#include "common/operator_cost/operator.h"
#include "common/orchestrator/prediction.h"
#include "common/parameters/parameter_set.h"
#include "common/sweep/report.h"
#include "common/workload/job.h"
#include "sextant/calibration/v1/calibration_service.pb.h"

namespace grpc {
class Channel;
class ChannelCredentials;
}  // namespace grpc

namespace sextant::client {

// A service's answer about the parameter set it uses.
struct ServiceVersion {
  std::string service;           // "operator_cost" or "network_sim"
  std::string version;           // now in service
  std::string previous_version;  // what a rollback would put back; empty: nothing
  std::string instance;          // differs between any two lives of the server; may be empty
};

// What one server of a calibration service's fleet did with a set.
struct FleetMember {
  std::string target;   // as the calibration service knows it
  std::string version;  // acknowledged; empty: not yet
  std::string error;    // why not; it gets the set when it comes back
};

// Asks one Sextant server, which may run one service or all, in domain values. Every call ends
// within the timeout. Errors carry the violations that the server named (base::ViolationsOf);
// UNIMPLEMENTED says that the server does not run the service; UNAVAILABLE, after three tries, that
// it cannot be reached. Thread-safe.
class Client {
 public:
  // Plaintext without `credentials` (runtime::MakeChannelCredentials).
  Client(const std::string& target, std::chrono::milliseconds timeout,
         const std::shared_ptr<grpc::ChannelCredentials>& credentials = nullptr);
  Client(std::shared_ptr<grpc::Channel> channel, std::string target,
         std::chrono::milliseconds timeout);

  const std::string& target() const { return target_; }
  // The same connection with another timeout.
  Client WithTimeout(std::chrono::milliseconds timeout) const {
    return Client(channel_, target_, timeout);
  }

  // OK where grpc.health.v1 says SERVING; UNAVAILABLE where it says otherwise. `service` is a full
  // name; empty: the server as a whole. NOT_FOUND for a service it does not run.
  absl::Status CheckHealth(const std::string& service = "") const;

  // Orchestrator.
  absl::StatusOr<orchestrator::Prediction> Predict(const workload::Job& job,
                                                   bool sensitivities = false) const;
  // The same, told how far the run of a serving load is; a status that is not OK cancels it and is
  // returned.
  absl::StatusOr<orchestrator::Prediction> PredictStream(
      const workload::Job& job, bool sensitivities, const serving::ProgressCheck& progress) const;
  // One result for each job, in order; split into messages of what one may carry.
  absl::StatusOr<std::vector<absl::StatusOr<orchestrator::Prediction>>> PredictBatch(
      absl::Span<const workload::Job> jobs) const;

  // `request_id` as AdviseJobRequest; empty: none.
  absl::StatusOr<advise::Advice> Advise(const workload::Job& job,
                                        const advise::AdviceOptions& options,
                                        const std::string& request_id = "") const;

  // `progress` is told how far it is (improved: the best point so far, where it is a new one); false
  // cancels: CANCELLED.
  absl::StatusOr<sweep::SweepReport> Sweep(
      const sweep::SweepSpec& spec, const sweep::Shard& shard,
      const std::function<bool(const sweep::Progress&)>& progress = {}) const;

  // Operator cost; any number of operators.
  absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> EstimateOperators(
      absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
      absl::string_view profile) const;

  // Network.
  absl::StatusOr<std::vector<collectives::CollectiveEstimate>> EstimateCollectives(
      absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
      absl::string_view profile) const;
  // Collectives beside each other; `version` (may be null) is the set that answered.
  absl::StatusOr<collectives::ConcurrentTimes> EstimateConcurrent(
      const collectives::ConcurrentCollectives& question, std::string* version) const;
  // Watches one case, and says about ten times a second how far it is.
  absl::StatusOr<network_sim::NetworkResult> SimulateCase(
      absl::string_view case_json, network_sim::Fidelity fidelity,
      const std::function<void(const network_sim::Progress&)>& progress = {}) const;
  // In batches, each within the timeout. One case that is not valid fails them all.
  absl::StatusOr<std::vector<network_sim::NetworkResult>> SimulateCases(
      absl::Span<const std::string> case_jsons, network_sim::Fidelity fidelity) const;

  // The set in service: operator_cost's, or network_sim's where the server runs only that.
  absl::StatusOr<parameters::ParameterSet> GetParameterSet() const;
  // Of each service that the server runs and that has parameters. Quicker where `expected_version`
  // is in service: the set itself is then not sent.
  absl::StatusOr<std::vector<ServiceVersion>> GetVersions(
      const std::string& expected_version = "") const;
  // Puts `set` into every such service; returns what each acknowledged.
  absl::StatusOr<std::vector<ServiceVersion>> PushParameterSet(const parameters::ParameterSet& set,
                                                               bool validate_only = false) const;
  // The two halves of a push: checked and stored by every such service, then put into service.
  absl::StatusOr<std::vector<ServiceVersion>> PrepareParameterSet(
      const parameters::ParameterSet& set) const;
  absl::StatusOr<std::vector<ServiceVersion>> CommitParameterSet(const std::string& version) const;
  absl::StatusOr<std::vector<ServiceVersion>> RollbackParameterSet() const;

  // The same through the calibration service, which changes its whole fleet together and records
  // the push; nothing changes where a member refuses (FAILED_PRECONDITION). UNIMPLEMENTED where the
  // server runs no calibration service.
  absl::StatusOr<std::vector<FleetMember>> PushToFleet(const parameters::ParameterSet& set) const;
  absl::StatusOr<std::vector<FleetMember>> RollBackFleet() const;

  // Calibration. What is no measurement is part of the answer.
  absl::StatusOr<calibration::v1::IngestMeasurementsResponse> IngestMeasurements(
      const google::protobuf::RepeatedPtrField<calibration::v1::MeasurementFile>& files) const;

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::string target_;
  std::chrono::milliseconds timeout_;
};

}  // namespace sextant::client

#endif  // SEXTANT_SERVICES_CLIENT_CLIENT_H_
