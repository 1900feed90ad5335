// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/remote_ports.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/orchestrator/predict.h"
#include "common/wire/convert.h"
#include "grpcpp/client_context.h"
#include "services/runtime/grpc_status.h"

namespace sextant::orchestrator_service {

namespace {

constexpr size_t kMaxBatchCount = 10000;  // of both services

// A call below: it ends with the call above, by its deadline or its cancellation.
std::unique_ptr<grpc::ClientContext> ChildContext(runtime::Call& call) {
  auto context = grpc::ClientContext::FromServerContext(call.context());
  context->set_deadline(call.deadline());
  context->AddMetadata(runtime::kRequestIdKey, call.request_id());
  return context;
}

absl::Status FromService(absl::string_view service, const grpc::Status& status) {
  absl::Status result = runtime::FromGrpcStatus(status);
  if (absl::IsUnavailable(result)) {
    return absl::UnavailableError(
        absl::StrCat("the ", service, " service cannot be reached: ", result.message()));
  }
  return result;
}

template <typename Thing>
auto KeysOf(absl::Span<const Thing> things) {
  std::vector<decltype(KeyOf(things[0]))> keys;
  keys.reserve(things.size());
  for (const Thing& thing : things) keys.push_back(KeyOf(thing));
  return keys;
}

std::string CacheContext(const google::protobuf::MessageLite& hardware, absl::string_view profile,
                         absl::string_view version) {
  return absl::StrCat(version, "/", profile.size(), "/", profile, "/",
                      hardware.SerializeAsString());
}

// Answers `missing` in batches of what one message may carry. `ask(begin, end)` answers
// missing[begin, end).
template <typename Ask>
absl::Status InBatches(size_t count, const Ask& ask) {
  for (size_t begin = 0; begin < count; begin += kMaxBatchCount) {
    SEXTANT_RETURN_IF_ERROR(ask(begin, std::min(count, begin + kMaxBatchCount)));
  }
  return absl::OkStatus();
}

}  // namespace

// The port of one prediction. Thread-compatible.
class RemoteOperatorCost final : public orchestrator::OperatorCostPort {
 public:
  RemoteOperatorCost(RemoteServices& services, runtime::Call& call)
      : services_(services), call_(call) {}

  absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> CurrentParameters() override {
    if (set_ != nullptr) return set_;
    std::shared_ptr<const parameters::ParameterSet> known;
    {
      const std::lock_guard lock(services_.mutex_);
      known = services_.last_set_;
    }
    if (known != nullptr && services_.watch_->Version() == known->version()) return set_ = known;
    operator_cost::v1::GetParameterSetRequest request;
    if (known != nullptr) request.set_known_version(known->version());
    operator_cost::v1::GetParameterSetResponse response;
    const auto context = ChildContext(call_);
    SEXTANT_RETURN_IF_ERROR(FromService("operator_cost", services_.operator_cost_->GetParameterSet(
                                                             context.get(), request, &response)));
    if (!response.has_parameter_set()) {
      if (known == nullptr || known->version() != response.version()) {
        return absl::InternalError("the operator_cost service sent no parameter set");
      }
      return set_ = known;
    }
    SEXTANT_ASSIGN_OR_RETURN(auto fetched, wire::FromProto(response.parameter_set()));
    set_ = std::make_shared<const parameters::ParameterSet>(std::move(fetched));
    const std::lock_guard lock(services_.mutex_);
    services_.last_set_ = set_;
    return set_;
  }

  absl::StatusOr<std::vector<operator_cost::OperatorEstimate>> EstimateOperators(
      absl::Span<const operator_cost::Operator> operators, const hardware::Accelerator& accelerator,
      absl::string_view profile) override {
    SEXTANT_ASSIGN_OR_RETURN(const auto set, CurrentParameters());
    const types::v1::Accelerator accelerator_proto = wire::ToProto(accelerator);
    const std::string context = CacheContext(accelerator_proto, profile, set->version());
    const std::vector<OperatorKey> keys = KeysOf(operators);
    std::vector<operator_cost::OperatorEstimate> estimates;
    const std::vector<size_t> missing = services_.operators_.Find(context, keys, &estimates);
    services_.hits_.Increment(static_cast<double>(keys.size() - missing.size()));
    services_.misses_.Increment(static_cast<double>(missing.size()));
    const auto ask = [&](size_t begin, size_t end) -> absl::Status {
      operator_cost::v1::EstimateOperatorsRequest request;
      *request.mutable_accelerator() = accelerator_proto;
      request.set_profile(std::string(profile));
      request.set_preferred_parameter_set_version(set->version());
      for (size_t i = begin; i < end; ++i) {
        *request.add_operators() = wire::ToProto(operators[missing[i]]);
      }
      operator_cost::v1::EstimateOperatorsResponse response;
      const auto child = ChildContext(call_);
      SEXTANT_RETURN_IF_ERROR(FromService(
          "operator_cost",
          services_.operator_cost_->EstimateOperators(child.get(), request, &response)));
      if (response.estimates_size() != request.operators_size()) {
        return absl::InternalError("the operator_cost service left operators unanswered");
      }
      if (response.parameter_set_version() != set->version()) {
        return absl::UnavailableError("the parameter set changed meanwhile; try again");
      }
      for (size_t i = begin; i < end; ++i) {
        SEXTANT_ASSIGN_OR_RETURN(estimates[missing[i]],
                                 wire::FromProto(response.estimates(static_cast<int>(i - begin))));
        services_.operators_.Insert(context, keys[missing[i]], estimates[missing[i]]);
      }
      return absl::OkStatus();
    };
    SEXTANT_RETURN_IF_ERROR(InBatches(missing.size(), ask));
    return estimates;
  }

 private:
  RemoteServices& services_;
  runtime::Call& call_;
  std::shared_ptr<const parameters::ParameterSet> set_;
};

// The port of one prediction. Thread-compatible.
class RemoteNetworkTime final : public orchestrator::NetworkTimePort {
 public:
  RemoteNetworkTime(RemoteServices& services, runtime::Call& call, RemoteOperatorCost& parameters)
      : services_(services), call_(call), parameters_(parameters) {}

  absl::StatusOr<std::vector<collectives::CollectiveEstimate>> EstimateCollectives(
      absl::Span<const collectives::Collective> collectives, const hardware::Cluster& cluster,
      absl::string_view profile) override {
    SEXTANT_ASSIGN_OR_RETURN(const auto set, parameters_.CurrentParameters());
    const types::v1::Cluster cluster_proto = wire::ToProto(cluster);
    const std::string context = CacheContext(cluster_proto, profile, set->version());
    const std::vector<CollectiveKey> keys = KeysOf(collectives);
    std::vector<collectives::CollectiveEstimate> estimates;
    const std::vector<size_t> missing = services_.collectives_.Find(context, keys, &estimates);
    services_.hits_.Increment(static_cast<double>(keys.size() - missing.size()));
    services_.misses_.Increment(static_cast<double>(missing.size()));
    const auto ask = [&](size_t begin, size_t end) -> absl::Status {
      network_sim::v1::EstimateCollectivesRequest request;
      *request.mutable_cluster() = cluster_proto;
      request.set_profile(std::string(profile));
      request.set_preferred_parameter_set_version(set->version());
      for (size_t i = begin; i < end; ++i) {
        *request.add_collectives() = wire::ToProto(collectives[missing[i]]);
      }
      network_sim::v1::EstimateCollectivesResponse response;
      const auto child = ChildContext(call_);
      SEXTANT_RETURN_IF_ERROR(FromService(
          "network_sim",
          services_.network_sim_->EstimateCollectives(child.get(), request, &response)));
      if (response.estimates_size() != request.collectives_size()) {
        return absl::InternalError("the network_sim service left collectives unanswered");
      }
      const bool same_set = response.parameter_set_version() == set->version();
      if (!same_set) other_version_ = response.parameter_set_version();
      for (size_t i = begin; i < end; ++i) {
        SEXTANT_ASSIGN_OR_RETURN(estimates[missing[i]],
                                 wire::FromProto(response.estimates(static_cast<int>(i - begin))));
        if (same_set) {
          services_.collectives_.Insert(context, keys[missing[i]], estimates[missing[i]]);
        }
      }
      return absl::OkStatus();
    };
    SEXTANT_RETURN_IF_ERROR(InBatches(missing.size(), ask));
    return estimates;
  }

  // Version of the set that timed collectives, where it is not the prediction's; else empty.
  const std::string& other_version() const { return other_version_; }

 private:
  RemoteServices& services_;
  runtime::Call& call_;
  RemoteOperatorCost& parameters_;
  std::string other_version_;
};

namespace {

std::array<runtime::CounterMetric, 3> PredictionCounters(runtime::Metrics& metrics,
                                                         const std::string& kind) {
  const auto counter = [&](const std::string& result) {
    return runtime::CounterMetric(metrics, "sextant_orchestrator_predictions_total",
                                  "Predictions of valid jobs, by what was predicted and whether "
                                  "the parameters were fitted there.",
                                  {{"kind", kind}, {"result", result}});
  };
  return {counter("inside_domain"), counter("extrapolated"), counter("failed")};
}

}  // namespace

RemoteServices::RemoteServices(const std::shared_ptr<grpc::Channel>& operator_cost,
                               const std::shared_ptr<grpc::Channel>& network_sim,
                               runtime::Metrics& metrics, size_t cache_capacity)
    : operator_cost_(operator_cost::v1::OperatorCostService::NewStub(operator_cost)),
      network_sim_(network_sim::v1::NetworkSimService::NewStub(network_sim)),
      hits_(metrics, "sextant_orchestrator_cache_requests_total",
            "Operators and collectives asked for, by whether the answer was known.",
            {{"result", "hit"}}),
      misses_(metrics, "sextant_orchestrator_cache_requests_total",
              "Operators and collectives asked for, by whether the answer was known.",
              {{"result", "miss"}}),
      predictions_{PredictionCounters(metrics, "training"),
                   PredictionCounters(metrics, "inference"),
                   PredictionCounters(metrics, "serving")},
      operators_(cache_capacity),
      collectives_(cache_capacity),
      watch_(std::make_unique<ParameterWatch>(
          operator_cost, [this](const std::string& version) { DropStale(version); })) {}

absl::StatusOr<std::shared_ptr<const parameters::ParameterSet>> RemoteServices::CurrentSet(
    runtime::Call& call) {
  return RemoteOperatorCost(*this, call).CurrentParameters();
}

void RemoteServices::DropStale(const std::string& version) {
  std::string before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(watched_version_, version);
  }
  // The set before may still be asked for: by predictions in progress, and after a rollback.
  const auto stale = [&](const std::string& context) {
    return !absl::StartsWith(context, version) &&
           (before.empty() || !absl::StartsWith(context, before));
  };
  operators_.Drop(stale);
  collectives_.Drop(stale);
}

void RemoteServices::Count(const workload::Job& job,
                           const absl::StatusOr<orchestrator::Prediction>& prediction) {
  const size_t kind = job.serving.has_value() ? 2 : job.IsTraining() ? 0 : 1;
  const size_t result = !prediction.ok() ? 2 : prediction->extrapolated ? 1 : 0;
  predictions_[kind][result].Increment();
}

absl::StatusOr<orchestrator::Prediction> RemoteServices::Predict(
    const workload::Job& job, const orchestrator::PredictOptions& options, runtime::Call& call) {
  RemoteOperatorCost operator_cost(*this, call);
  RemoteNetworkTime network_time(*this, call, operator_cost);
  auto prediction = orchestrator::Predict(job, operator_cost, network_time, options);
  Count(job, prediction);
  if (!prediction.ok()) return prediction;
  if (!network_time.other_version().empty()) {
    prediction->warnings.push_back(
        absl::StrCat("communication was timed with parameter set ", network_time.other_version(),
                     ", which the network_sim service has instead of ", prediction->parameter_set));
  }
  return prediction;
}

}  // namespace sextant::orchestrator_service
