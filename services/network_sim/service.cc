// SPDX-License-Identifier: Apache-2.0
#include "services/network_sim/service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/collectives/collective.h"
#include "common/network_sim/case_reader.h"
#include "common/network_sim/simulate.h"
#include "common/wire/convert.h"
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
    item->set_start_seconds(job.start_seconds);
    item->set_finish_seconds(job.finish_seconds);
    item->set_total_seconds(job.total_seconds);
  }
  response->set_limiting_link(result.limiting_link);
  response->set_limiting_link_seconds(result.limiting_link_seconds);
  response->set_event_count(result.event_count);
}

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
  store_.OnChange([this](const std::string& version) { parameter_set_.Set(version); });
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

grpc::Status Service::SimulateCase(grpc::ServerContext* context,
                                   const v1::SimulateCaseRequest* request,
                                   v1::SimulateCaseResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    base::Violations violations;
    auto fidelity = request->fidelity().empty()
                        ? absl::StatusOr<network_sim::Fidelity>(network_sim::Fidelity::kFlow)
                        : network_sim::ParseFidelity(request->fidelity());
    if (!fidelity.ok()) violations.Add("fidelity", fidelity.status().message());
    auto network_case = network_sim::ParseNetworkCase(request->case_json(), "case_json");
    if (!network_case.ok()) violations.AddStatus("case_json", network_case.status());
    if (!violations.empty()) return violations.ToStatus();
    SEXTANT_ASSIGN_OR_RETURN(const auto result,
                             network_sim::SimulateNetworkCase(*network_case, *fidelity));
    ToResponse(result, response);
    events_total_.Increment(static_cast<double>(result.event_count));
    return call.Check();
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

grpc::Status Service::RollbackParameterSet(grpc::ServerContext* context,
                                           const v1::RollbackParameterSetRequest*,
                                           v1::RollbackParameterSetResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call&) {
    return parameter_store::RollbackParameterSet(store_, response);
  });
}

}  // namespace sextant::network_sim_service
