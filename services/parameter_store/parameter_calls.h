// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_CALLS_H_
#define SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_CALLS_H_

#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/wire/convert.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "services/parameter_store/parameter_store.h"

// The calls about parameter sets as the operator_cost and network_sim
// services answer them. Their messages are equal but live in two packages; hence templates.
namespace sextant::parameter_store {

template <typename Request, typename Response>
absl::Status GetParameterSet(const ParameterStore& store, const Request& request,
                             Response* response) {
  const SharedSet active = store.Active();
  response->set_version(active->version());
  if (request.known_version() != active->version()) {
    *response->mutable_parameter_set() = wire::ToProto(*active);
  }
  if (const SharedSet previous = store.Previous(); previous != nullptr) {
    response->set_previous_version(previous->version());
  }
  response->set_instance(store.instance());
  return absl::OkStatus();
}

template <typename Request, typename Response>
absl::Status PushParameterSet(ParameterStore& store, const Request& request, Response* response) {
  if (!request.has_parameter_set()) {
    base::Violations violations;
    violations.Add("parameter_set", "is missing but required");
    return violations.ToStatus();
  }
  SEXTANT_ASSIGN_OR_RETURN(auto set, wire::FromProto(request.parameter_set()));
  const auto shared = std::make_shared<const parameters::ParameterSet>(std::move(set));
  response->set_previous_version(store.Active()->version());
  SEXTANT_RETURN_IF_ERROR(store.Push(shared, request.validate_only()));
  response->set_version(shared->version());
  return absl::OkStatus();
}

template <typename Request, typename Response>
absl::Status PrepareParameterSet(ParameterStore& store, const Request& request,
                                 Response* response) {
  if (!request.has_parameter_set()) {
    base::Violations violations;
    violations.Add("parameter_set", "is missing but required");
    return violations.ToStatus();
  }
  SEXTANT_ASSIGN_OR_RETURN(auto set, wire::FromProto(request.parameter_set()));
  const auto shared = std::make_shared<const parameters::ParameterSet>(std::move(set));
  SEXTANT_RETURN_IF_ERROR(store.Prepare(shared));
  response->set_version(shared->version());
  return absl::OkStatus();
}

template <typename Request, typename Response>
absl::Status CommitParameterSet(ParameterStore& store, const Request& request, Response* response) {
  SEXTANT_RETURN_IF_ERROR(store.Commit(request.version()));
  response->set_version(request.version());
  if (const SharedSet previous = store.Previous(); previous != nullptr) {
    response->set_previous_version(previous->version());
  }
  return absl::OkStatus();
}

// Until the caller goes or the server shuts down.
template <typename Request, typename Response>
grpc::Status WatchParameters(ParameterStore& store, grpc::ServerContext& context,
                             grpc::ServerReaderWriter<Response, Request>& stream) {
  Watchers& watchers = store.watchers();
  const int64_t watcher = watchers.Join();
  // One thread reads and one writes: a change must not wait for the caller's next message.
  std::thread writer([&] {
    while (const auto message = watchers.Next(watcher, [&] { return store.Active()->version(); })) {
      Response response;
      response.set_version(message->version);
      response.set_sequence(message->sequence);
      if (!stream.Write(response)) break;
    }
    context.TryCancel();  // the server shuts down: the reader below ends
  });
  Request request;
  while (stream.Read(&request)) {
    watchers.Renew(watcher, request.version(), request.sequence());
  }
  watchers.Leave(watcher);
  writer.join();
  return grpc::Status::OK;
}

template <typename Response>
absl::Status RollbackParameterSet(ParameterStore& store, Response* response) {
  SEXTANT_RETURN_IF_ERROR(store.Rollback());
  response->set_version(store.Active()->version());
  return absl::OkStatus();
}

}  // namespace sextant::parameter_store

#endif  // SEXTANT_SERVICES_PARAMETER_STORE_PARAMETER_CALLS_H_
