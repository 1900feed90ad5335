// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/violations.h"
#include "common/sweep/report.h"
#include "common/wire/convert.h"
#include "common/wire/convert_sweep.h"

namespace sextant::orchestrator_service {

namespace v1 = orchestrator::v1;

namespace {

constexpr std::chrono::milliseconds kProgressInterval{100};

// A run of requests ends with its call.
absl::StatusOr<types::v1::Prediction> PredictProto(RemoteServices& services,
                                                   const types::v1::Job& proto,
                                                   orchestrator::PredictOptions options,
                                                   runtime::Call& call) {
  if (!options.serving_progress) {
    options.serving_progress = [&call](const serving::Progress&) { return call.Check(); };
  }
  // Paths of violations are those of the job, the same as without a server.
  SEXTANT_ASSIGN_OR_RETURN(const workload::Job job, wire::FromProto(proto));
  SEXTANT_ASSIGN_OR_RETURN(const auto prediction, services.Predict(job, options, call));
  return wire::ToProto(prediction);
}

}  // namespace

absl::Status CheckBatch(absl::string_view field, int count) {
  base::Violations violations;
  if (count < 1 || count > kMaxBatchCount) {
    violations.Add(field, absl::StrCat("has ", count, " entries but must have 1 to ",
                                       kMaxBatchCount, "; send several batches"));
  }
  return violations.ToStatus();
}

grpc::Status Service::Predict(grpc::ServerContext* context, const v1::PredictRequest* request,
                              v1::PredictResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(
        *response->mutable_prediction(),
        PredictProto(services_, request->job(), {.sensitivities = request->sensitivities()}, call));
    return call.Check();
  });
}

grpc::Status Service::PredictStream(grpc::ServerContext* context, const v1::PredictRequest* request,
                                    grpc::ServerWriter<v1::PredictStreamResponse>* writer) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    const auto send = [&](const v1::PredictStreamResponse& piece) {
      return writer->Write(piece) ? absl::OkStatus() : absl::CancelledError("the caller went away");
    };
    auto last = std::chrono::steady_clock::now();
    const auto progress = [&](const serving::Progress& p) -> absl::Status {
      SEXTANT_RETURN_IF_ERROR(call.Check());
      const auto now = std::chrono::steady_clock::now();
      if (now - last < kProgressInterval) return absl::OkStatus();
      last = now;
      v1::PredictStreamResponse piece;
      piece.mutable_progress()->set_simulated_seconds(p.simulated_seconds);
      piece.mutable_progress()->set_completed_request_count(p.completed_request_count);
      piece.mutable_progress()->set_offered_request_count(p.offered_request_count);
      piece.mutable_progress()->set_step_count(p.step_count);
      return send(piece);
    };
    v1::PredictStreamResponse answer;
    SEXTANT_ASSIGN_OR_RETURN(
        *answer.mutable_prediction(),
        PredictProto(services_, request->job(),
                     {.sensitivities = request->sensitivities(), .serving_progress = progress},
                     call));
    SEXTANT_RETURN_IF_ERROR(call.Check());
    return send(answer);
  });
}

grpc::Status Service::PredictBatch(grpc::ServerContext* context,
                                   const v1::PredictBatchRequest* request,
                                   v1::PredictBatchResponse* response) {
  return runtime::Answer(context, default_deadline_, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_RETURN_IF_ERROR(CheckBatch("jobs", request->jobs_size()));
    for (const types::v1::Job& job : request->jobs()) {
      SEXTANT_RETURN_IF_ERROR(call.Check());
      auto prediction = PredictProto(services_, job, {}, call);
      v1::PredictResult* result = response->add_results();
      if (prediction.ok()) {
        *result->mutable_prediction() = *std::move(prediction);
        continue;
      }
      result->mutable_error()->set_code(
          static_cast<int>(runtime::ToGrpcStatus(prediction.status()).error_code()));
      result->mutable_error()->set_message(std::string(prediction.status().message()));
    }
    return call.Check();
  });
}

grpc::Status Service::Sweep(grpc::ServerContext* context, const v1::SweepRequest* request,
                            grpc::ServerWriter<v1::SweepResponse>* writer) {
  return runtime::Answer(context, kSweepDeadline, [&](runtime::Call& call) -> absl::Status {
    SEXTANT_ASSIGN_OR_RETURN(const sweep::SweepSpec spec, wire::FromProto(request->spec()));
    const sweep::Shard shard{.index = request->shard_index(),
                             .count = request->has_shard_count() ? request->shard_count() : 1};
    SEXTANT_ASSIGN_OR_RETURN(const auto set, services_.CurrentSet(call));
    std::chrono::steady_clock::time_point last;
    v1::SweepResponse update;
    const auto on_progress = [&](const sweep::Progress& p) {
      if (!call.Check().ok()) return false;
      v1::SweepProgress& progress = *update.mutable_progress();
      if (p.improved != nullptr) {
        sweep::ReportRow row;
        row.point = *p.improved;
        row.settings = spec.scenarios[p.improved->scenario].settings;
        *progress.mutable_best() = wire::ToProto(row);
      }
      const auto now = std::chrono::steady_clock::now();
      if (now - last < kProgressInterval) return true;
      last = now;
      progress.set_done_count(p.done_count);
      progress.set_candidate_count(p.candidate_count);
      progress.set_predicted_count(p.predicted_count);
      const bool sent = writer->Write(update);
      update.Clear();
      return sent;
    };
    SEXTANT_ASSIGN_OR_RETURN(
        const sweep::SweepResult result,
        sweep::RunSweep(spec, set, {.shard = shard, .on_progress = on_progress}));
    SEXTANT_RETURN_IF_ERROR(call.Check());
    SEXTANT_ASSIGN_OR_RETURN(const sweep::SweepReport report,
                             sweep::ReportOf(spec, result, shard, set));
    v1::SweepResponse answer;
    *answer.mutable_report() = wire::ToProto(report);
    return writer->Write(answer) ? absl::OkStatus() : absl::CancelledError("the caller went away");
  });
}

}  // namespace sextant::orchestrator_service
