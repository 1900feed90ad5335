// SPDX-License-Identifier: Apache-2.0
#include "services/client/client.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/convert.h"
#include "common/wire/convert_advice.h"
#include "common/wire/convert_concurrent.h"
#include "common/wire/convert_sweep.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/client_context.h"
#include "services/runtime/channel.h"
#include "services/runtime/grpc_status.h"
#include "services/runtime/request_id.h"
#include "sextant/calibration/v1/calibration_service.grpc.pb.h"
#include "sextant/network_sim/v1/network_sim_service.grpc.pb.h"
#include "sextant/operator_cost/v1/operator_cost_service.grpc.pb.h"
#include "sextant/orchestrator/v1/orchestrator_service.grpc.pb.h"

namespace sextant::client {

using network_sim::v1::NetworkSimService;
using operator_cost::v1::OperatorCostService;
using orchestrator::v1::OrchestratorService;

namespace {

constexpr size_t kEstimateBatchCount = 10000;
constexpr size_t kPredictBatchCount = 1000;
// Few enough that a batch of long cases ends within one timeout.
constexpr int kCaseBatchCount = 100;
constexpr size_t kCaseBatchBytes = size_t{2} << 20;

// One call: its context with the timeout, and what its status means to a person.
class Ask {
 public:
  Ask(const std::string& target, std::chrono::milliseconds timeout) : target_(target) {
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    context_.AddMetadata(runtime::kRequestIdKey, request_id_);
  }

  grpc::ClientContext* context() { return &context_; }

  absl::Status Result(const grpc::Status& status) const {
    absl::Status result = runtime::FromGrpcStatus(status);
    switch (result.code()) {
      case absl::StatusCode::kUnavailable:
        return absl::UnavailableError(absl::StrCat("no answer from ", target_, ": ",
                                                   result.message(),
                                                   "; check that a server listens there"));
      case absl::StatusCode::kUnimplemented:
        return absl::UnimplementedError(
            absl::StrCat("the server at ", target_, " does not run this service"));
      case absl::StatusCode::kDeadlineExceeded:
        return absl::DeadlineExceededError(
            absl::StrCat("no answer from ", target_, " in time; allow more time"));
      case absl::StatusCode::kInternal:
      case absl::StatusCode::kUnknown:
        return absl::Status(result.code(),
                            absl::StrCat(result.message(), "; the logs at ", target_,
                                         " name this call ", request_id_));
      default:
        return result;
    }
  }

 private:
  const std::string& target_;
  const std::string request_id_ = runtime::NewRequestId();
  grpc::ClientContext context_;
};

absl::Status BadCount(const std::string& target) {
  return absl::InternalError(absl::StrCat("the server at ", target, " left questions unanswered"));
}

// The parameter messages of the two services are equal but live in two packages.
struct OperatorCostParameters {
  static constexpr char kName[] = "operator_cost";
  using Service = OperatorCostService;
  using GetRequest = operator_cost::v1::GetParameterSetRequest;
  using GetResponse = operator_cost::v1::GetParameterSetResponse;
  using PushRequest = operator_cost::v1::PushParameterSetRequest;
  using PushResponse = operator_cost::v1::PushParameterSetResponse;
  using PrepareRequest = operator_cost::v1::PrepareParameterSetRequest;
  using PrepareResponse = operator_cost::v1::PrepareParameterSetResponse;
  using CommitRequest = operator_cost::v1::CommitParameterSetRequest;
  using CommitResponse = operator_cost::v1::CommitParameterSetResponse;
  using RollbackRequest = operator_cost::v1::RollbackParameterSetRequest;
  using RollbackResponse = operator_cost::v1::RollbackParameterSetResponse;
};
struct NetworkSimParameters {
  static constexpr char kName[] = "network_sim";
  using Service = NetworkSimService;
  using GetRequest = network_sim::v1::GetParameterSetRequest;
  using GetResponse = network_sim::v1::GetParameterSetResponse;
  using PushRequest = network_sim::v1::PushParameterSetRequest;
  using PushResponse = network_sim::v1::PushParameterSetResponse;
  using PrepareRequest = network_sim::v1::PrepareParameterSetRequest;
  using PrepareResponse = network_sim::v1::PrepareParameterSetResponse;
  using CommitRequest = network_sim::v1::CommitParameterSetRequest;
  using CommitResponse = network_sim::v1::CommitParameterSetResponse;
  using RollbackRequest = network_sim::v1::RollbackParameterSetRequest;
  using RollbackResponse = network_sim::v1::RollbackParameterSetResponse;
};

// What `ask(traits)` says for each service that has parameters; those that the server does not run
// are left out. UNIMPLEMENTED where it runs none.
template <typename AskOne>
absl::StatusOr<std::vector<ServiceVersion>> AskEach(const AskOne& ask) {
  std::vector<ServiceVersion> versions;
  absl::Status absent;
  for (auto&& answer : {ask(OperatorCostParameters{}), ask(NetworkSimParameters{})}) {
    if (answer.ok()) {
      versions.push_back(*answer);
    } else if (absl::IsUnimplemented(answer.status())) {
      absent = answer.status();
    } else {
      return answer.status();
    }
  }
  if (versions.empty()) return absent;
  return versions;
}

template <typename Response>
std::vector<FleetMember> MembersOf(const Response& response) {
  std::vector<FleetMember> members;
  for (const calibration::v1::PushResult& result : response.results()) {
    members.push_back({result.target(), result.acknowledged_version(), result.error()});
  }
  return members;
}

absl::StatusOr<network_sim::NetworkResult> ResultOf(
    const network_sim::v1::SimulateCaseResponse& response) {
  network_sim::NetworkResult result;
  result.case_id = response.case_id();
  SEXTANT_ASSIGN_OR_RETURN(result.fidelity, network_sim::ParseFidelity(response.fidelity()));
  result.status = network_sim::NetworkStatus::kUnsupported;
  for (const auto status :
       {network_sim::NetworkStatus::kOk, network_sim::NetworkStatus::kUnreachable}) {
    if (network_sim::NetworkStatusName(status) == response.status()) result.status = status;
  }
  result.reason = response.reason();
  result.total_seconds = response.total_seconds();
  for (const auto& job : response.jobs()) {
    result.jobs.push_back({job.name(), job.algorithm(), job.start_seconds(), job.finish_seconds(),
                           job.total_seconds()});
  }
  result.limiting_link = response.limiting_link();
  result.limiting_link_seconds = response.limiting_link_seconds();
  result.event_count = response.event_count();
  result.healthy_seconds = response.healthy_seconds();
  result.slowdown = response.slowdown();
  result.faulty_link_count = response.faulty_link_count();
  result.rerouted_count = response.rerouted_count();
  result.reembedded_count = response.reembedded_count();
  result.unreachable_ranks.assign(response.unreachable_ranks().begin(),
                                  response.unreachable_ranks().end());
  result.mapping.assign(response.mapping().begin(), response.mapping().end());
  result.mapping_gain = response.mapping_gain();
  return result;
}

network_sim::v1::SimulateCaseRequest RequestOf(absl::string_view case_json,
                                               network_sim::Fidelity fidelity) {
  network_sim::v1::SimulateCaseRequest request;
  request.set_case_json(std::string(case_json));
  request.set_fidelity(std::string(network_sim::FidelityName(fidelity)));
  return request;
}

}  // namespace

Client::Client(const std::string& target, std::chrono::milliseconds timeout,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : Client(runtime::Connect(target, credentials), target, timeout) {}

Client::Client(std::shared_ptr<grpc::Channel> channel, std::string target,
               std::chrono::milliseconds timeout)
    : channel_(std::move(channel)), target_(std::move(target)), timeout_(timeout) {}

absl::Status Client::CheckHealth(const std::string& service) const {
  Ask ask(target_, timeout_);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  SEXTANT_RETURN_IF_ERROR(ask.Result(
      grpc::health::v1::Health::NewStub(channel_)->Check(ask.context(), request, &response)));
  if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(target_, " is ",
                   grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status())));
}

absl::StatusOr<orchestrator::Prediction> Client::Predict(const workload::Job& job,
                                                         bool sensitivities) const {
  Ask ask(target_, timeout_);
  orchestrator::v1::PredictRequest request;
  request.set_sensitivities(sensitivities);
  *request.mutable_job() = wire::ToProto(job);
  orchestrator::v1::PredictResponse response;
  SEXTANT_RETURN_IF_ERROR(ask.Result(
      OrchestratorService::NewStub(channel_)->Predict(ask.context(), request, &response)));
  return wire::FromProto(response.prediction());
}

absl::StatusOr<orchestrator::Prediction> Client::PredictStream(
    const workload::Job& job, bool sensitivities, const serving::ProgressCheck& progress) const {
  Ask ask(target_, timeout_);
  orchestrator::v1::PredictRequest request;
  request.set_sensitivities(sensitivities);
  *request.mutable_job() = wire::ToProto(job);
  const auto stub = OrchestratorService::NewStub(channel_);
  const auto reader = stub->PredictStream(ask.context(), request);
  absl::StatusOr<orchestrator::Prediction> prediction =
      absl::InternalError(absl::StrCat(target_, " ended its stream without an answer"));
  absl::Status wish;
  orchestrator::v1::PredictStreamResponse piece;
  while (reader->Read(&piece)) {
    if (piece.has_prediction()) {
      prediction = wire::FromProto(piece.prediction());
    } else if (progress && wish.ok()) {
      const auto& p = piece.progress();
      wish = progress({.simulated_seconds = p.simulated_seconds(),
                       .completed_request_count = p.completed_request_count(),
                       .offered_request_count = p.offered_request_count(),
                       .step_count = p.step_count()});
      if (!wish.ok()) ask.context()->TryCancel();
    }
  }
  const absl::Status ended = ask.Result(reader->Finish());
  SEXTANT_RETURN_IF_ERROR(wish);
  SEXTANT_RETURN_IF_ERROR(ended);
  return prediction;
}

absl::StatusOr<std::vector<absl::StatusOr<orchestrator::Prediction>>> Client::PredictBatch(
    absl::Span<const workload::Job> jobs) const {
  std::vector<absl::StatusOr<orchestrator::Prediction>> predictions;
  const auto stub = OrchestratorService::NewStub(channel_);
  for (size_t begin = 0; begin < jobs.size(); begin += kPredictBatchCount) {
    Ask ask(target_, timeout_);
    orchestrator::v1::PredictBatchRequest request;
    for (const auto& job : jobs.subspan(begin, kPredictBatchCount)) {
      *request.add_jobs() = wire::ToProto(job);
    }
    orchestrator::v1::PredictBatchResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(stub->PredictBatch(ask.context(), request, &response)));
    if (response.results_size() != request.jobs_size()) return BadCount(target_);
    for (const auto& result : response.results()) {
      if (result.has_prediction()) {
        predictions.push_back(wire::FromProto(result.prediction()));
      } else {
        predictions.push_back(runtime::FromGrpcStatus(grpc::Status(
            static_cast<grpc::StatusCode>(result.error().code()), result.error().message())));
      }
    }
  }
  return predictions;
}

absl::StatusOr<advise::Advice> Client::Advise(const workload::Job& job,
                                              const advise::AdviceOptions& options,
                                              const std::string& request_id) const {
  Ask ask(target_, timeout_);
  orchestrator::v1::AdviseJobRequest request;
  request.set_request_id(request_id);
  *request.mutable_job() = wire::ToProto(job);
  *request.mutable_options() = wire::ToProto(options);
  orchestrator::v1::AdviseJobResponse response;
  SEXTANT_RETURN_IF_ERROR(ask.Result(
      OrchestratorService::NewStub(channel_)->AdviseJob(ask.context(), request, &response)));
  return wire::FromProto(response.advice());
}

absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> Client::EstimateOperators(
    absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
    absl::string_view profile) const {
  std::vector<operator_cost::OperatorEstimate> estimates;
  estimates.reserve(operators.size());
  const auto stub = OperatorCostService::NewStub(channel_);
  for (size_t begin = 0; begin < operators.size(); begin += kEstimateBatchCount) {
    Ask ask(target_, timeout_);
    operator_cost::v1::EstimateOperatorsRequest request;
    *request.mutable_accelerator() = wire::ToProto(accelerator);
    request.set_profile(std::string(profile));
    for (const auto& op : operators.subspan(begin, kEstimateBatchCount)) {
      *request.add_operators() = wire::ToProto(op);
    }
    operator_cost::v1::EstimateOperatorsResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(stub->EstimateOperators(ask.context(), request, &response)));
    if (response.estimates_size() != request.operators_size()) return BadCount(target_);
    for (const auto& estimate : response.estimates()) {
      SEXTANT_ASSIGN_OR_RETURN(estimates.emplace_back(), wire::FromProto(estimate));
    }
  }
  return estimates;
}

absl::StatusOr<std::vector<collectives::CollectiveEstimate>> Client::EstimateCollectives(
    absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
    absl::string_view profile) const {
  std::vector<collectives::CollectiveEstimate> estimates;
  estimates.reserve(collectives.size());
  const auto stub = NetworkSimService::NewStub(channel_);
  for (size_t begin = 0; begin < collectives.size(); begin += kEstimateBatchCount) {
    Ask ask(target_, timeout_);
    network_sim::v1::EstimateCollectivesRequest request;
    *request.mutable_cluster() = wire::ToProto(cluster);
    request.set_profile(std::string(profile));
    for (const auto& collective : collectives.subspan(begin, kEstimateBatchCount)) {
      *request.add_collectives() = wire::ToProto(collective);
    }
    network_sim::v1::EstimateCollectivesResponse response;
    SEXTANT_RETURN_IF_ERROR(
        ask.Result(stub->EstimateCollectives(ask.context(), request, &response)));
    if (response.estimates_size() != request.collectives_size()) return BadCount(target_);
    for (const auto& estimate : response.estimates()) {
      SEXTANT_ASSIGN_OR_RETURN(estimates.emplace_back(), wire::FromProto(estimate));
    }
  }
  return estimates;
}

absl::StatusOr<collectives::ConcurrentTimes> Client::EstimateConcurrent(
    const collectives::ConcurrentCollectives& question, std::string* version) const {
  Ask ask(target_, timeout_);
  network_sim::v1::EstimateConcurrentRequest request;
  *request.mutable_question() = wire::ToProto(question);
  network_sim::v1::EstimateConcurrentResponse response;
  const auto stub = NetworkSimService::NewStub(channel_);
  SEXTANT_RETURN_IF_ERROR(ask.Result(stub->EstimateConcurrent(ask.context(), request, &response)));
  if (version != nullptr) *version = response.parameter_set_version();
  return wire::FromProto(response.times());
}

absl::StatusOr<sweep::SweepReport> Client::Sweep(
    const sweep::SweepSpec& spec, const sweep::Shard& shard,
    const std::function<bool(const sweep::Progress&)>& progress) const {
  Ask ask(target_, timeout_);
  orchestrator::v1::SweepRequest request;
  *request.mutable_spec() = wire::ToProto(spec);
  request.set_shard_index(shard.index);
  request.set_shard_count(shard.count);
  const auto stub = OrchestratorService::NewStub(channel_);
  const auto reader = stub->Sweep(ask.context(), request);
  absl::StatusOr<sweep::SweepReport> report =
      absl::InternalError(absl::StrCat(target_, " ended its stream without an answer"));
  orchestrator::v1::SweepResponse piece;
  while (reader->Read(&piece)) {
    if (piece.has_report()) {
      report = wire::FromProto(piece.report());
      continue;
    }
    const auto& p = piece.progress();
    sweep::ReportRow best;
    if (p.has_best()) {
      if (auto row = wire::FromProto(p.best()); row.ok()) best = *std::move(row);
    }
    if (progress && !progress({.done_count = p.done_count(),
                               .candidate_count = p.candidate_count(),
                               .predicted_count = p.predicted_count(),
                               .improved = p.has_best() ? &best.point : nullptr})) {
      ask.context()->TryCancel();
    }
  }
  SEXTANT_RETURN_IF_ERROR(ask.Result(reader->Finish()));
  return report;
}

absl::StatusOr<network_sim::NetworkResult> Client::SimulateCase(
    absl::string_view case_json, network_sim::Fidelity fidelity,
    const std::function<void(const network_sim::Progress&)>& progress) const {
  Ask ask(target_, timeout_);
  const auto stub = NetworkSimService::NewStub(channel_);
  const auto reader = stub->WatchCase(ask.context(), RequestOf(case_json, fidelity));
  absl::StatusOr<network_sim::NetworkResult> result =
      absl::InternalError(absl::StrCat(target_, " ended its stream without an answer"));
  network_sim::v1::WatchCaseResponse update;
  while (reader->Read(&update)) {
    if (update.has_answer()) {
      result = ResultOf(update.answer());
    } else if (progress) {
      const auto& p = update.progress();
      progress({p.simulated_seconds(), p.event_count(), p.arrived_count(), p.message_count()});
    }
  }
  SEXTANT_RETURN_IF_ERROR(ask.Result(reader->Finish()));
  return result;
}

absl::StatusOr<std::vector<network_sim::NetworkResult>> Client::SimulateCases(
    absl::Span<const std::string> case_jsons, network_sim::Fidelity fidelity) const {
  std::vector<network_sim::NetworkResult> results;
  const auto stub = NetworkSimService::NewStub(channel_);
  for (size_t next = 0; next < case_jsons.size();) {
    Ask ask(target_, timeout_);
    network_sim::v1::SimulateCasesRequest request;
    size_t bytes = 0;
    do {
      bytes += case_jsons[next].size();
      *request.add_cases() = RequestOf(case_jsons[next++], fidelity);
    } while (next < case_jsons.size() && request.cases_size() < kCaseBatchCount &&
             bytes + case_jsons[next].size() <= kCaseBatchBytes);
    network_sim::v1::SimulateCasesResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(stub->SimulateCases(ask.context(), request, &response)));
    if (response.answers_size() != request.cases_size()) return BadCount(target_);
    for (const auto& answer : response.answers()) {
      SEXTANT_ASSIGN_OR_RETURN(results.emplace_back(), ResultOf(answer));
    }
  }
  return results;
}

absl::StatusOr<parameters::ParameterSet> Client::GetParameterSet() const {
  std::optional<types::v1::ParameterSet> first;
  const auto answers = AskEach([&](auto traits) -> absl::StatusOr<ServiceVersion> {
    using Traits = decltype(traits);
    if (first.has_value()) return ServiceVersion{};
    Ask ask(target_, timeout_);
    typename Traits::GetResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(Traits::Service::NewStub(channel_)->GetParameterSet(
        ask.context(), typename Traits::GetRequest(), &response)));
    first = response.parameter_set();
    return ServiceVersion{Traits::kName, response.version(), response.previous_version()};
  });
  if (!answers.ok()) return answers.status();
  return wire::FromProto(*first);
}

absl::StatusOr<std::vector<ServiceVersion>> Client::GetVersions(
    const std::string& expected_version) const {
  return AskEach([&](auto traits) -> absl::StatusOr<ServiceVersion> {
    using Traits = decltype(traits);
    Ask ask(target_, timeout_);
    typename Traits::GetRequest request;
    request.set_known_version(expected_version);
    typename Traits::GetResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(
        Traits::Service::NewStub(channel_)->GetParameterSet(ask.context(), request, &response)));
    return ServiceVersion{Traits::kName, response.version(), response.previous_version(),
                          response.instance()};
  });
}

absl::StatusOr<std::vector<ServiceVersion>> Client::PushParameterSet(
    const parameters::ParameterSet& set, bool validate_only) const {
  return AskEach([&](auto traits) -> absl::StatusOr<ServiceVersion> {
    using Traits = decltype(traits);
    Ask ask(target_, timeout_);
    typename Traits::PushRequest request;
    *request.mutable_parameter_set() = wire::ToProto(set);
    request.set_validate_only(validate_only);
    typename Traits::PushResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(
        Traits::Service::NewStub(channel_)->PushParameterSet(ask.context(), request, &response)));
    return ServiceVersion{Traits::kName, response.version(), response.previous_version()};
  });
}

absl::StatusOr<std::vector<ServiceVersion>> Client::PrepareParameterSet(
    const parameters::ParameterSet& set) const {
  return AskEach([&](auto traits) -> absl::StatusOr<ServiceVersion> {
    using Traits = decltype(traits);
    Ask ask(target_, timeout_);
    typename Traits::PrepareRequest request;
    *request.mutable_parameter_set() = wire::ToProto(set);
    typename Traits::PrepareResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(Traits::Service::NewStub(channel_)->PrepareParameterSet(
        ask.context(), request, &response)));
    return ServiceVersion{Traits::kName, response.version(), ""};
  });
}

absl::StatusOr<std::vector<ServiceVersion>> Client::CommitParameterSet(
    const std::string& version) const {
  return AskEach([&](auto traits) -> absl::StatusOr<ServiceVersion> {
    using Traits = decltype(traits);
    Ask ask(target_, timeout_);
    typename Traits::CommitRequest request;
    request.set_version(version);
    typename Traits::CommitResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(
        Traits::Service::NewStub(channel_)->CommitParameterSet(ask.context(), request, &response)));
    return ServiceVersion{Traits::kName, response.version(), response.previous_version()};
  });
}

absl::StatusOr<std::vector<ServiceVersion>> Client::RollbackParameterSet() const {
  return AskEach([&](auto traits) -> absl::StatusOr<ServiceVersion> {
    using Traits = decltype(traits);
    Ask ask(target_, timeout_);
    typename Traits::RollbackResponse response;
    SEXTANT_RETURN_IF_ERROR(ask.Result(Traits::Service::NewStub(channel_)->RollbackParameterSet(
        ask.context(), typename Traits::RollbackRequest(), &response)));
    return ServiceVersion{Traits::kName, response.version(), ""};
  });
}

absl::StatusOr<std::vector<FleetMember>> Client::PushToFleet(
    const parameters::ParameterSet& set) const {
  Ask ask(target_, timeout_);
  calibration::v1::PushParameterSetRequest request;
  *request.mutable_parameter_set() = wire::ToProto(set);
  calibration::v1::PushParameterSetResponse response;
  SEXTANT_RETURN_IF_ERROR(
      ask.Result(calibration::v1::CalibrationService::NewStub(channel_)->PushParameterSet(
          ask.context(), request, &response)));
  return MembersOf(response);
}

absl::StatusOr<std::vector<FleetMember>> Client::RollBackFleet() const {
  Ask ask(target_, timeout_);
  calibration::v1::RollbackParameterSetResponse response;
  SEXTANT_RETURN_IF_ERROR(
      ask.Result(calibration::v1::CalibrationService::NewStub(channel_)->RollbackParameterSet(
          ask.context(), calibration::v1::RollbackParameterSetRequest(), &response)));
  return MembersOf(response);
}

absl::StatusOr<calibration::v1::IngestMeasurementsResponse> Client::IngestMeasurements(
    const google::protobuf::RepeatedPtrField<calibration::v1::MeasurementFile>& files) const {
  Ask ask(target_, timeout_);
  calibration::v1::IngestMeasurementsRequest request;
  *request.mutable_files() = files;
  calibration::v1::IngestMeasurementsResponse response;
  SEXTANT_RETURN_IF_ERROR(
      ask.Result(calibration::v1::CalibrationService::NewStub(channel_)->IngestMeasurements(
          ask.context(), request, &response)));
  return response;
}

}  // namespace sextant::client
