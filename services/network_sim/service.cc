// SPDX-License-Identifier: Apache-2.0
#include "services/network_sim/service.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/collectives/collective.h"
#include "common/collectives/concurrent.h"
#include "common/network_sim/case_reader.h"
#include "common/network_sim/simulate.h"
#include "common/wire/convert.h"
#include "common/wire/convert_concurrent.h"
#include "services/parameter_store/parameter_calls.h"
#include "services/runtime/nested.h"

namespace sextant::network_sim_service {

namespace v1 = network_sim::v1;

namespace {

struct Batch {
  hardware::Cluster cluster;
  std::vector<collectives::Collective> collectives;
};

absl::StatusOr<Batch> FromRequest(const v1::EstimateCollectivesRequest& request) {
  base::Violations violations;
  const int count = request.collectives_size();
  if (count < 1 || count > kMaxBatchCount) {
    violations.Add("collectives", absl::StrCat("has ", count, " entries but must have 1 to ",
                                               kMaxBatchCount, "; send several batches"));
    return violations.ToStatus();
  }
  Batch batch;
  auto cluster = wire::FromProto(request.cluster());
  if (cluster.ok()) {
    batch.cluster = *std::move(cluster);
    const absl::Status valid = hardware::ValidateCluster(batch.cluster);
    if (!valid.ok()) runtime::AddNested(violations, "cluster", valid);
  } else {
    runtime::AddNested(violations, "cluster", cluster.status());
  }
  batch.collectives.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto collective = wire::FromProto(request.collectives(i));
    if (collective.ok()) {
      batch.collectives.push_back(*std::move(collective));
    } else {
      runtime::AddNested(violations, absl::StrCat("collectives[", i, "]"), collective.status());
    }
  }
  if (!violations.empty()) return violations.ToStatus();
  return batch;
}

void ToResponse(const network_sim::NetworkResult& result, v1::SimulateCaseResponse* response) {
  response->set_case_id(result.case_id);
  response->set_fidelity(std::string(network_sim::FidelityName(result.fidelity)));
  response->set_status(std::string(network_sim::NetworkStatusName(result.status)));
  response->set_reason(result.reason);
  response->set_total_seconds(result.total_seconds);
  for (const network_sim::NetworkJobResult& job : result.jobs) {
    auto* item = response->add_jobs();
    item->set_name(job.name);
    item->set_algorithm(job.algorithm);
    item->set_start_seconds(job.start_seconds);
    item->set_finish_seconds(job.finish_seconds);
    item->set_total_seconds(job.total_seconds);
  }
  response->set_limiting_link(result.limiting_link);
  response->set_limiting_link_seconds(result.limiting_link_seconds);
  response->set_event_count(result.event_count);
  response->set_healthy_seconds(result.healthy_seconds);
  response->set_slowdown(result.slowdown);
  response->set_faulty_link_count(result.faulty_link_count);
  response->set_rerouted_count(result.rerouted_count);
  response->set_reembedded_count(result.reembedded_count);
  response->mutable_unreachable_ranks()->Assign(result.unreachable_ranks.begin(),
                                                result.unreachable_ranks.end());
  response->mutable_mapping()->Assign(result.mapping.begin(), result.mapping.end());
  response->set_mapping_gain(result.mapping_gain);
}

// A case and how to simulate it.
struct CaseToTime {
  network_sim::NetworkCase network_case;
  network_sim::Fidelity fidelity = network_sim::Fidelity::kFlow;
  network_sim::SimulationOptions options;
};

absl::StatusOr<CaseToTime> FromRequest(const v1::SimulateCaseRequest& request) {
  base::Violations violations;
  CaseToTime result;
  if (!request.fidelity().empty()) {
    const auto fidelity = network_sim::ParseFidelity(request.fidelity());
    if (fidelity.ok()) {
      result.fidelity = *fidelity;
    } else {
      violations.Add("fidelity", fidelity.status().message());
    }
  }
  network_sim::SimulationOptions& options = result.options;
  if (request.max_events() != 0) {
    if (request.max_events() < 0 || request.max_events() > options.max_events) {
      violations.Add("max_events", absl::StrCat("is ", request.max_events(),
                                                " but must be between 1 and ", options.max_events));
    }
    options.max_events = request.max_events();
  }
  if (request.max_simulated_seconds() != 0) {
    if (!(request.max_simulated_seconds() > 0 &&
          request.max_simulated_seconds() <= options.max_simulated_seconds)) {
      violations.Add("max_simulated_seconds", absl::StrCat("is ", request.max_simulated_seconds(),
                                                           " but must be above 0 and at most ",
                                                           options.max_simulated_seconds));
    }
    options.max_simulated_seconds = request.max_simulated_seconds();
  }
  auto network_case = network_sim::ParseNetworkCase(request.case_json(), "case_json");
  if (network_case.ok()) {
    result.network_case = *std::move(network_case);
  } else {
    violations.AddStatus("case_json", network_case.status());
  }
  if (!violations.empty()) return violations.ToStatus();
  return result;
}

// The status with its violations under the request's path.
absl::Status OfQuestion(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  base::Violations violations;
  runtime::AddNested(violations, "question", status);
  return violations.ToStatus();
}

// Progress goes out about so often.
constexpr std::chrono::milliseconds kProgressInterval{100};

}  // namespace

Service::Service(parameter_store::ParameterStore& store, runtime::Metrics& metrics,
                 std::chrono::milliseconds default_deadline)
    : store_(store),
      default_deadline_(default_deadline),
      collectives_total_(metrics, "sextant_network_sim_estimated_collectives_total",
                         "Collectives that were timed in closed form."),
      events_total_(metrics, "sextant_network_sim_simulated_events_total",
                    "Events of flow simulations."),
      parameter_set_(metrics, "network_sim") {
  store_.OnChange([this](const std::string& version) {
    parameter_set_.Set(version, store_.InServiceSinceSeconds());
  });
}

grpc::Status Service::EstimateCollectives(grpc::ServerContext* context,
                                          const v1::EstimateCollectivesRequest* request,
                                          v1::EstimateCollectivesResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const Batch batch, FromRequest(*request));
    const auto set = store_.Preferred(request->preferred_parameter_set_version());
    const auto parameters =
        collectives::ResolveCollectiveParameters(*set, batch.cluster, request->profile());
    SEXTANT_RETURN_IF_ERROR(call.Check());
    SEXTANT_ASSIGN_OR_RETURN(
        const auto estimates,
        collectives::EstimateCollectives(batch.collectives, batch.cluster, parameters));
    response->mutable_estimates()->Reserve(static_cast<int>(estimates.size()));
    for (const auto& estimate : estimates) *response->add_estimates() = wire::ToProto(estimate);
    response->set_parameter_set_version(set->version());
    collectives_total_.Increment(static_cast<double>(estimates.size()));
    return call.Check();
  });
}

grpc::Status Service::EstimateConcurrent(grpc::ServerContext* context,
                                         const v1::EstimateConcurrentRequest* request,
                                         v1::EstimateConcurrentResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    const auto question = wire::FromProto(request->question());
    if (!question.ok()) return OfQuestion(question.status());
    const absl::Status cluster = hardware::ValidateCluster(question->cluster);
    if (!cluster.ok()) {
      base::Violations violations;
      runtime::AddNested(violations, "question.cluster", cluster);
      return violations.ToStatus();
    }
    const auto set = store_.Active();
    const auto parameters =
        collectives::ResolveCollectiveParameters(*set, question->cluster, question->profile);
    const auto times = collectives::TimeConcurrent(
        *question, parameters,
        {.check = [&](const network_sim::Progress&) { return call.Check(); }});
    if (!times.ok()) return OfQuestion(times.status());
    *response->mutable_times() = wire::ToProto(*times);
    response->set_parameter_set_version(set->version());
    collectives_total_.Increment(static_cast<double>(times->collectives.size()));
    return call.Check();
  });
}

grpc::Status Service::SimulateCase(grpc::ServerContext* context,
                                   const v1::SimulateCaseRequest* request,
                                   v1::SimulateCaseResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(CaseToTime wanted, FromRequest(*request));
    wanted.options.check = [&](const network_sim::Progress&) { return call.Check(); };
    SEXTANT_ASSIGN_OR_RETURN(
        const auto result,
        network_sim::SimulateNetworkCase(wanted.network_case, wanted.fidelity, wanted.options));
    ToResponse(result, response);
    events_total_.Increment(static_cast<double>(result.event_count));
    return call.Check();
  });
}

grpc::Status Service::SimulateCases(grpc::ServerContext* context,
                                    const v1::SimulateCasesRequest* request,
                                    v1::SimulateCasesResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    base::Violations violations;
    const int count = request->cases_size();
    if (count < 1 || count > kMaxCaseCount) {
      violations.Add("cases", absl::StrCat("has ", count, " entries but must have 1 to ",
                                           kMaxCaseCount, "; send several batches"));
      return violations.ToStatus();
    }
    std::vector<CaseToTime> wanted;
    for (int i = 0; i < count; ++i) {
      auto one = FromRequest(request->cases(i));
      if (one.ok()) {
        wanted.push_back(*std::move(one));
      } else {
        runtime::AddNested(violations, absl::StrCat("cases[", i, "]"), one.status());
      }
    }
    if (!violations.empty()) return violations.ToStatus();
    for (CaseToTime& one : wanted) {
      one.options.check = [&](const network_sim::Progress&) { return call.Check(); };
      SEXTANT_RETURN_IF_ERROR(call.Check());
      SEXTANT_ASSIGN_OR_RETURN(const auto result, network_sim::SimulateNetworkCase(
                                                      one.network_case, one.fidelity, one.options));
      ToResponse(result, response->add_answers());
      events_total_.Increment(static_cast<double>(result.event_count));
    }
    return call.Check();
  });
}

grpc::Status Service::WatchCase(grpc::ServerContext* context,
                                const v1::SimulateCaseRequest* request,
                                grpc::ServerWriter<v1::WatchCaseResponse>* writer) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(CaseToTime wanted, FromRequest(*request));
    const auto send = [&](const v1::WatchCaseResponse& update) {
      return writer->Write(update) ? absl::OkStatus()
                                   : absl::CancelledError("the caller went away");
    };
    auto last = std::chrono::steady_clock::now();
    wanted.options.check = [&](const network_sim::Progress& progress) -> absl::Status {
      SEXTANT_RETURN_IF_ERROR(call.Check());
      const auto now = std::chrono::steady_clock::now();
      if (now - last < kProgressInterval) return absl::OkStatus();
      last = now;
      v1::WatchCaseResponse update;
      update.mutable_progress()->set_simulated_seconds(progress.simulated_seconds);
      update.mutable_progress()->set_event_count(progress.event_count);
      update.mutable_progress()->set_arrived_count(progress.arrived_count);
      update.mutable_progress()->set_message_count(progress.message_count);
      return send(update);
    };
    SEXTANT_ASSIGN_OR_RETURN(
        const auto result,
        network_sim::SimulateNetworkCase(wanted.network_case, wanted.fidelity, wanted.options));
    v1::WatchCaseResponse update;
    ToResponse(result, update.mutable_answer());
    events_total_.Increment(static_cast<double>(result.event_count));
    return send(update);
  });
}

grpc::Status Service::GetParameterSet(grpc::ServerContext* context,
                                      const v1::GetParameterSetRequest* request,
                                      v1::GetParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::GetParameterSet(store_, *request, response);
  });
}

grpc::Status Service::PushParameterSet(grpc::ServerContext* context,
                                       const v1::PushParameterSetRequest* request,
                                       v1::PushParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::PushParameterSet(store_, *request, response);
  });
}

grpc::Status Service::PrepareParameterSet(grpc::ServerContext* context,
                                          const v1::PrepareParameterSetRequest* request,
                                          v1::PrepareParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::PrepareParameterSet(store_, *request, response);
  });
}

grpc::Status Service::CommitParameterSet(grpc::ServerContext* context,
                                         const v1::CommitParameterSetRequest* request,
                                         v1::CommitParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::CommitParameterSet(store_, *request, response);
  });
}

grpc::Status Service::WatchParameters(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::WatchParametersResponse, v1::WatchParametersRequest>* stream) {
  return parameter_store::WatchParameters(store_, *context, *stream);
}

grpc::Status Service::RollbackParameterSet(grpc::ServerContext* context,
                                           const v1::RollbackParameterSetRequest*,
                                           v1::RollbackParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::RollbackParameterSet(store_, response);
  });
}

}  // namespace sextant::network_sim_service
