// SPDX-License-Identifier: Apache-2.0
// Real servers on free ports in this process.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/advise/advise.h"
#include "common/base/violations.h"
#include "common/catalog/sweep_reader.h"
#include "common/sweep/report.h"
#include "common/wire/convert.h"
#include "common/wire/convert_sweep.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "services/calibration/service.h"
#include "services/client/client.h"
#include "services/network_sim/service.h"
#include "services/operator_cost/service.h"
#include "services/orchestrator/service.h"
#include "services/runtime/admission.h"
#include "services/runtime/channel.h"
#include "services/runtime/grpc_status.h"
#include "services/runtime/request_id.h"
#include "services/runtime/server.h"
#include "services/serve/serve.h"
#include "tests/support/jobs.h"

namespace sextant {
namespace {

using parameters::ParameterSet;
using std::chrono::milliseconds;
using test_support::JobTexts;
using test_support::PredictEmbedded;
using test_support::ReadJobText;
using test_support::SlowGemmSet;

constexpr char kCollectivesCsv[] =
    "id,suite,role,quality,source,accelerator,cluster,fabric_stated,software,gpus,nodes,collective,"
    "bytes,time_us,algbw_GBps,busbw_GBps,interconnect,notes\n"
    "c1,test,fit,,test,a100-sxm4-80gb,,,NCCL 2.27.3,8,1,all_reduce,1048576,60,,,,\n";

std::shared_ptr<const ParameterSet> Uncalibrated() {
  return std::make_shared<const ParameterSet>();
}

runtime::ServerOptions AnyPort() {
  return {.listen = "127.0.0.1:0", .metrics_listen = "", .security = {.insecure = true}};
}

std::string Address(const runtime::Server& server) {
  return absl::StrCat("127.0.0.1:", server.port());
}

// The three services of a prediction, each behind its own socket.
class Suite {
 public:
  Suite()
      : operator_cost_store_(*parameter_store::ParameterStore::Open(Uncalibrated(), "")),
        network_sim_store_(*parameter_store::ParameterStore::Open(Uncalibrated(), "")),
        operator_cost_(*operator_cost_store_, operator_cost_metrics_),
        network_sim_(*network_sim_store_, network_sim_metrics_),
        operator_cost_server_(*runtime::Server::Start(
            AnyPort(), {{&operator_cost_, operator_cost_service::kFullName}},
            operator_cost_metrics_)),
        network_sim_server_(*runtime::Server::Start(
            AnyPort(), {{&network_sim_, network_sim_service::kFullName}}, network_sim_metrics_)),
        lower_(runtime::Connect(Address(*operator_cost_server_)),
               runtime::Connect(Address(*network_sim_server_)), orchestrator_metrics_),
        orchestrator_(lower_),
        orchestrator_server_(
            *runtime::Server::Start(AnyPort(), {{&orchestrator_, orchestrator_service::kFullName}},
                                    orchestrator_metrics_)) {}

  client::Client OperatorCost() { return Client(*operator_cost_server_); }
  client::Client NetworkSim() { return Client(*network_sim_server_); }
  client::Client Orchestrator() { return Client(*orchestrator_server_); }
  std::unique_ptr<network_sim::v1::NetworkSimService::Stub> NetworkSimStub() {
    return network_sim::v1::NetworkSimService::NewStub(
        runtime::Connect(Address(*network_sim_server_)));
  }
  std::unique_ptr<orchestrator::v1::OrchestratorService::Stub> OrchestratorStub() {
    return orchestrator::v1::OrchestratorService::NewStub(
        runtime::Connect(Address(*orchestrator_server_)));
  }
  std::string OrchestratorMetrics() const { return orchestrator_metrics_.Text(); }

 private:
  static client::Client Client(const runtime::Server& server) {
    return client::Client(Address(server), milliseconds(20000));
  }

  runtime::Metrics operator_cost_metrics_, network_sim_metrics_, orchestrator_metrics_;
  std::unique_ptr<parameter_store::ParameterStore> operator_cost_store_, network_sim_store_;
  operator_cost_service::Service operator_cost_;
  network_sim_service::Service network_sim_;
  std::unique_ptr<runtime::Server> operator_cost_server_, network_sim_server_;
  orchestrator_service::RemoteServices lower_;
  orchestrator_service::Service orchestrator_;
  std::unique_ptr<runtime::Server> orchestrator_server_;
};

// Llama-2-7B on 16 and 24 GPUs: every plan.
sweep::SweepSpec SmallSweep() {
  const auto spec = catalog::ReadSweep(
      "job: {model: llama-2-7b, cluster: dgx-a100, gpu_count: 16,\n"
      "      training: {global_batch_size: 96, sequence_length: 2048}}\n"
      "vary: {plan: all, gpu_count: [16, 24]}\n"
      "limits: {total_seconds: 10}\nsample: 20\n",
      "test.yaml", {}, *catalog::Catalog::Open(std::string(SEXTANT_SOURCE_DIR) + "/datasets"));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

TEST(Services, AServedSweepEqualsTheEmbeddedOneAndNamesTheBestSoFar) {
  Suite suite;
  const sweep::SweepSpec spec = SmallSweep();
  int improved = 0;
  for (const sweep::Shard& shard : {sweep::Shard{}, sweep::Shard{.index = 1, .count = 3}}) {
    const auto served =
        suite.Orchestrator().Sweep(spec, shard, [&](const sweep::Progress& progress) {
          improved += progress.improved != nullptr ? 1 : 0;
          return true;
        });
    ASSERT_TRUE(served.ok()) << served.status();
    const auto result = sweep::RunSweep(spec, Uncalibrated(), {.shard = shard, .thread_count = 1});
    const auto embedded = sweep::ReportOf(spec, *result, shard, Uncalibrated());
    ASSERT_TRUE(embedded.ok()) << embedded.status();
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(wire::ToProto(*served),
                                                                   wire::ToProto(*embedded)));
    EXPECT_FALSE(served->top.empty());
  }
  EXPECT_GT(improved, 0);
}

TEST(Services, ACancelledSweepEndsAndWrongSpecsAreRefusedWithEverything) {
  Suite suite;
  sweep::SweepSpec spec = SmallSweep();
  // Long enough that it cannot be done before the cancellation arrives.
  for (int i = 0; i < 200; ++i) spec.scenarios.push_back(spec.scenarios[1]);
  const auto cancelled =
      suite.Orchestrator().Sweep(spec, {}, [](const sweep::Progress&) { return false; });
  EXPECT_TRUE(absl::IsCancelled(cancelled.status())) << cancelled.status();
  spec.plan.tensor_parallel_size = {.values = {0}};
  spec.summary.pareto = {sweep::Metric::kTotalSeconds};
  spec.scenarios[0].job.model.layer_count = 0;
  const auto refused = suite.Orchestrator().Sweep(spec, {});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  for (const char* field : {"tensor_parallel_size", "pareto", "scenarios[0].job.model"}) {
    EXPECT_NE(refused.status().message().find(field), std::string::npos) << refused.status();
  }
}

TEST(Services, ServedAdviceEqualsTheEmbeddedOneAndKeepsItsIds) {
  Suite suite;
  const auto job = ReadJobText(JobTexts().front());
  ASSERT_TRUE(job.ok()) << job.status();
  const advise::AdviceOptions options{.max_gpu_count = 16, .step_count = 100};
  const auto embedded = advise::Advise(*job, options, Uncalibrated());
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  EXPECT_TRUE(embedded->feasible);
  // Searched, known, and known by its id.
  for (const char* id : {"", "", "job-1", "job-1"}) {
    const auto served = suite.Orchestrator().Advise(*job, options, id);
    ASSERT_TRUE(served.ok()) << served.status();
    EXPECT_EQ(*served, *embedded);
  }
  const auto other = suite.Orchestrator().Advise(*job, {.max_gpu_count = 8}, "job-1");
  EXPECT_TRUE(absl::IsInvalidArgument(other.status())) << other.status();
  const auto wrong = suite.Orchestrator().Advise(*job, {.max_gpu_count = -1, .step_count = -1});
  EXPECT_EQ(base::ViolationsOf(wrong.status()).size(), 2u) << wrong.status();
}

TEST(Services, AdviceInBatchesAndStreamsAnswersEachRequestInOrder) {
  Suite suite;
  const auto job = ReadJobText(JobTexts().front());
  ASSERT_TRUE(job.ok()) << job.status();
  orchestrator::v1::AdviseJobBatchRequest batch;
  for (const int64_t most : {8, -1, 16}) {
    auto& request = *batch.add_requests();
    request.set_request_id(absl::StrCat("most ", most));
    *request.mutable_job() = wire::ToProto(*job);
    request.mutable_options()->set_max_gpu_count(most);
  }
  const auto stub = suite.OrchestratorStub();
  orchestrator::v1::AdviseJobBatchResponse response;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->AdviseJobBatch(&context, batch, &response).ok());
  }
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).response().request_id(), "most 8");
  EXPECT_EQ(response.results(0).response().parameter_set(), Uncalibrated()->version());
  EXPECT_EQ(response.results(1).error().request_id(), "most -1");
  EXPECT_EQ(response.results(1).error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(response.results(1).error().message(), testing::HasSubstr("max_gpu_count"));
  EXPECT_TRUE(response.results(2).response().advice().feasible());

  grpc::ClientContext context;
  const auto stream = stub->AdviseJobStream(&context);
  for (int i = 0; i < batch.requests_size(); ++i) {
    orchestrator::v1::AdviseJobResult result;
    ASSERT_TRUE(stream->Write(batch.requests(i)));
    ASSERT_TRUE(stream->Read(&result));
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(result, response.results(i)));
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  // Empty and too large.
  orchestrator::v1::AdviseJobBatchResponse none;
  grpc::ClientContext empty;
  EXPECT_EQ(stub->AdviseJobBatch(&empty, {}, &none).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(Services, ServedPredictionsEqualEmbeddedOnesBitForBit) {
  Suite suite;
  const auto orchestrator = suite.Orchestrator();
  for (const std::string& text : JobTexts()) {
    const auto job = ReadJobText(text);
    ASSERT_TRUE(job.ok()) << job.status();
    const auto embedded = PredictEmbedded(*job, Uncalibrated());
    ASSERT_TRUE(embedded.ok()) << embedded.status();
    // Twice: asked over the wire, then known to the cache.
    for (int round = 0; round < 2; ++round) {
      const auto served = orchestrator.Predict(*job);
      ASSERT_TRUE(served.ok()) << served.status();
      EXPECT_EQ(*served, *embedded) << text;
    }
  }
  const std::string metrics = suite.OrchestratorMetrics();
  EXPECT_EQ(metrics.find("sextant_orchestrator_cache_requests_total{result=\"hit\"} 0\n"),
            std::string::npos)
      << metrics;
}

// A run of requests over a stream: the answer of the library, progress on the way, an end with its
// call.
TEST(Services, AServedRunStreamsItsProgressAndEqualsTheEmbeddedOne) {
  Suite suite;
  auto job = ReadJobText(
      "model: llama-2-7b\ncluster: dgx-a100\ngpu_count: 2\n"
      "inference: {prompt_tokens: 300, output_tokens: 100}\nplan: {data_parallel_size: 2}\n"
      "serving: {arrival: poisson, requests_per_second: 4, request_count: 3000}\n");
  ASSERT_TRUE(job.ok()) << job.status();
  int64_t updates = 0;
  const auto count = [&](const serving::Progress& p) {
    EXPECT_EQ(p.offered_request_count, job->serving->request_count);
    ++updates;
    return absl::OkStatus();
  };
  const auto served = suite.Orchestrator().PredictStream(*job, false, count);
  ASSERT_TRUE(served.ok()) << served.status();
  orchestrator::LocalOperatorCost operators(Uncalibrated());
  orchestrator::LocalNetworkTime network(Uncalibrated());
  const auto embedded = orchestrator::Predict(*job, operators, network);
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  EXPECT_EQ(*served, *embedded);
  EXPECT_EQ(*suite.Orchestrator().Predict(*job), *embedded);

  // So long that only its cancellation ends it.
  job->serving->request_count = 1'000'000;
  const auto cancelled =
      suite.Orchestrator().PredictStream(*job, false, [&](const serving::Progress&) {
        ++updates;
        return absl::CancelledError("enough");
      });
  EXPECT_TRUE(absl::IsCancelled(cancelled.status())) << cancelled.status();
  EXPECT_GT(updates, 0);
  job->serving->requests_per_second = -1;
  EXPECT_TRUE(
      absl::IsInvalidArgument(suite.Orchestrator().PredictStream(*job, false, count).status()));
}

TEST(Services, APushIsAcknowledgedByVersionAndSeenByTheNextPrediction) {
  Suite suite;
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto slow = SlowGemmSet(0.2);
  ASSERT_TRUE(suite.Orchestrator().Predict(*job).ok());
  for (const auto& target : {suite.OperatorCost(), suite.NetworkSim()}) {
    const auto acknowledged = target.PushParameterSet(*slow);
    ASSERT_TRUE(acknowledged.ok()) << acknowledged.status();
    ASSERT_EQ(acknowledged->size(), 1u);
    EXPECT_EQ(acknowledged->front().version, slow->version());
  }
  const auto served = suite.Orchestrator().Predict(*job);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->parameter_set, slow->version());
  const auto embedded = PredictEmbedded(*job, slow);
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  EXPECT_EQ(*served, *embedded);

  ASSERT_TRUE(suite.OperatorCost().RollbackParameterSet().ok());
  ASSERT_TRUE(suite.NetworkSim().RollbackParameterSet().ok());
  EXPECT_EQ(suite.Orchestrator().Predict(*job)->parameter_set, Uncalibrated()->version());
  EXPECT_EQ(suite.OperatorCost().RollbackParameterSet().status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Services, APredictionWithTwoSetsSaysSo) {
  Suite suite;
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(suite.OperatorCost().PushParameterSet(*SlowGemmSet(0.2)).ok());
  const auto served = suite.Orchestrator().Predict(*job);
  ASSERT_TRUE(served.ok()) << served.status();
  ASSERT_FALSE(served->warnings.empty());
  EXPECT_NE(served->warnings.back().find(Uncalibrated()->version()), std::string::npos)
      << served->warnings.back();
}

TEST(Services, PredictionsDuringPushesAreEachMadeWithOneSet) {
  Suite suite;
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  std::map<std::string, orchestrator::Prediction> expected;
  std::vector<std::shared_ptr<const ParameterSet>> sets;
  for (const double efficiency : {0.2, 0.3, 0.4}) {
    sets.push_back(SlowGemmSet(efficiency));
    expected[sets.back()->version()] = *PredictEmbedded(*job, sets.back());
  }
  expected[Uncalibrated()->version()] = *PredictEmbedded(*job, Uncalibrated());
  std::atomic<bool> done = false;
  std::atomic<int> matched = 0;
  const auto predict = [&] {
    const auto orchestrator = suite.Orchestrator();
    while (!done) {
      const auto served = orchestrator.Predict(*job);
      if (!served.ok()) {
        // Two pushes fell into one prediction.
        EXPECT_EQ(served.status().code(), absl::StatusCode::kUnavailable) << served.status();
        continue;
      }
      const orchestrator::Prediction& wanted = expected.at(served->parameter_set);
      // Between the two pushes the network service may lack the set, and the answer says so.
      if (served->warnings.size() > wanted.warnings.size()) continue;
      EXPECT_EQ(*served, wanted);
      ++matched;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(predict);
  for (int round = 0; round < 30; ++round) {
    const auto& set = sets[static_cast<size_t>(round) % sets.size()];
    EXPECT_TRUE(suite.OperatorCost().PushParameterSet(*set).ok());
    EXPECT_TRUE(suite.NetworkSim().PushParameterSet(*set).ok());
  }
  while (matched == 0 && !testing::Test::HasFailure()) std::this_thread::yield();
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Services, ABadSetIsRefusedByName) {
  Suite suite;
  const auto refused = suite.OperatorCost().PushParameterSet(*SlowGemmSet(1.5));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  const auto violations = base::ViolationsOf(refused.status());
  ASSERT_EQ(violations.size(), 2u) << refused.status();
  EXPECT_NE(violations[0].field.find("gemm.16bit.peak_efficiency"), std::string::npos);
  EXPECT_EQ(suite.OperatorCost().GetVersions()->front().version, Uncalibrated()->version());
}

TEST(Services, AWrongJobIsRefusedWithEveryViolationAsWithoutAServer) {
  Suite suite;
  auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  job->plan.tensor_parallel_size = 3;
  job->plan.micro_batch_size = 0;
  job->model.vocabulary_size = 0;
  const auto embedded = PredictEmbedded(*job, Uncalibrated());
  const auto served = suite.Orchestrator().Predict(*job);
  EXPECT_EQ(served.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_GE(base::ViolationsOf(served.status()).size(), 3u);
  EXPECT_EQ(base::ViolationsOf(served.status()), base::ViolationsOf(embedded.status()));
}

TEST(Services, ABatchOfOperatorsNamesEachWrongOne) {
  Suite suite;
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<operator_cost::Operator> operators(
      3, {operator_cost::GemmShape{.m = 16, .n = 16, .k = 16}, hardware::Precision::kBf16});
  std::get<operator_cost::GemmShape>(operators[1].shape).m = 0;
  std::get<operator_cost::GemmShape>(operators[2].shape).k = -5;
  const auto refused =
      suite.OperatorCost().EstimateOperators(operators, job->cluster.accelerator, "");
  const auto violations = base::ViolationsOf(refused.status());
  ASSERT_EQ(violations.size(), 2u) << refused.status();
  EXPECT_EQ(violations[0].field, "operators[1].gemm.m");
  EXPECT_EQ(violations[1].field, "operators[2].gemm.k");
}

TEST(Services, ABatchOfJobsKeepsGoodOnesBesideWrongOnes) {
  Suite suite;
  const auto good = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(good.ok()) << good.status();
  workload::Job wrong = *good;
  wrong.gpu_count = 5;
  const auto results = suite.Orchestrator().PredictBatch({wrong, *good});
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ((*results)[0].status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*(*results)[1], *PredictEmbedded(*good, Uncalibrated()));
}

// An orchestrator over services at `operator_cost`.
absl::Status PredictOver(const std::string& operator_cost, milliseconds timeout,
                         milliseconds default_deadline = runtime::kDefaultDeadline) {
  runtime::Metrics metrics;
  orchestrator_service::RemoteServices lower(runtime::Connect(operator_cost),
                                             runtime::Connect(operator_cost), metrics);
  orchestrator_service::Service service(lower, default_deadline);
  auto server =
      *runtime::Server::Start(AnyPort(), {{&service, orchestrator_service::kFullName}}, metrics);
  const auto job = ReadJobText(JobTexts()[0]);
  if (!job.ok()) return job.status();
  return client::Client(Address(*server), timeout).Predict(*job).status();
}

TEST(Services, AMissingServiceIsUnavailableByNameAndNotAHang) {
  const absl::Status status = PredictOver("127.0.0.1:1", milliseconds(20000));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("operator_cost"), absl::string_view::npos) << status;
}

// Accepts connections and never says a word.
class SilentServer {
 public:
  SilentServer() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentServer() { close(socket_); }
  const std::string& address() const { return address_; }

 private:
  int socket_;
  std::string address_;
};

TEST(Services, AServiceThatNeverAnswersEndsAtTheDeadlineOfTheCaller) {
  const SilentServer silent;
  const absl::Status status = PredictOver(silent.address(), milliseconds(300));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST(Services, ACallMayNotTakeLongerThanTheServerAllows) {
  const SilentServer silent;
  // The client would wait for an hour.
  const absl::Status status =
      PredictOver(silent.address(), milliseconds(3600 * 1000), milliseconds(300));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST(Services, EachServerIsServingUnderItsFullNameOnly) {
  Suite suite;
  EXPECT_TRUE(suite.OperatorCost().CheckHealth().ok());
  EXPECT_TRUE(suite.OperatorCost().CheckHealth(operator_cost_service::kFullName).ok());
  EXPECT_TRUE(suite.NetworkSim().CheckHealth(network_sim_service::kFullName).ok());
  EXPECT_TRUE(suite.Orchestrator().CheckHealth(orchestrator_service::kFullName).ok());
  EXPECT_EQ(suite.OperatorCost().CheckHealth(orchestrator_service::kFullName).code(),
            absl::StatusCode::kNotFound);
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(suite.OperatorCost().Predict(*job).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Services, OneProcessCanRunThemAll) {
  serve::ServeOptions options;
  options.server = AnyPort();
  options.parameters = "uncalibrated";
  options.datasets_directory = SEXTANT_SOURCE_DIR "/datasets";
  auto all = serve::AllServices::Start(options);
  ASSERT_TRUE(all.ok()) << all.status();
  const client::Client client(Address((*all)->server()), milliseconds(20000));
  for (const char* name : {"", operator_cost_service::kFullName, network_sim_service::kFullName,
                           orchestrator_service::kFullName, calibration_service::kFullName}) {
    EXPECT_TRUE(client.CheckHealth(name).ok()) << name;
  }
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto served = client.Predict(*job);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(*served, *PredictEmbedded(*job, Uncalibrated()));
  const auto slow = SlowGemmSet(0.2);
  const auto acknowledged = client.PushParameterSet(*slow);
  ASSERT_TRUE(acknowledged.ok()) << acknowledged.status();
  ASSERT_EQ(acknowledged->size(), 2u);
  EXPECT_EQ(client.Predict(*job)->parameter_set, slow->version());
  EXPECT_EQ(client.GetParameterSet()->version(), slow->version());
}

TEST(Services, ACalibrationJobPublishesAndPushesItsSet) {
  Suite suite;
  const auto fitted = SlowGemmSet(0.4);
  const calibration_service::Calibrator fake =
      [&](const calibration_service::CalibrationInput& input)
      -> absl::StatusOr<calibration_service::CalibrationOutcome> {
    calibration_service::CalibrationOutcome outcome;
    outcome.set = fitted;
    outcome.publish = true;
    outcome.held_out_mape_percent = 12.5;
    outcome.used_row_count = static_cast<int64_t>(input.rows.size());
    return outcome;
  };
  runtime::Metrics metrics;
  calibration_service::LoopOptions options;
  options.datasets_directory = SEXTANT_SOURCE_DIR "/datasets";
  options.calibrator = fake;
  options.clients = {suite.OperatorCost(), suite.NetworkSim()};
  auto loop = calibration_service::Loop::Start(std::move(options), metrics);
  ASSERT_TRUE(loop.ok()) << loop.status();
  calibration_service::Service service(**loop);
  auto server =
      *runtime::Server::Start(AnyPort(), {{&service, calibration_service::kFullName}}, metrics);
  const auto stub =
      calibration::v1::CalibrationService::NewStub(runtime::Connect(Address(*server)));

  calibration::v1::CreateCalibrationJobRequest request;
  auto* file = request.add_measurements();
  file->set_csv_text(kCollectivesCsv);
  request.set_initial_parameter_set("uncalibrated");
  request.set_push(true);
  calibration::v1::CalibrationJob job;
  {
    grpc::ClientContext context;
    const grpc::Status status = stub->CreateCalibrationJob(&context, request, &job);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  calibration::v1::GetCalibrationJobRequest get;
  get.set_name(job.name());
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!job.has_end_time() && std::chrono::steady_clock::now() < limit) {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->GetCalibrationJob(&context, get, &job).ok());
  }
  EXPECT_EQ(job.state(), calibration::v1::CalibrationJob::STATE_SUCCEEDED) << job.error();
  EXPECT_EQ(job.parameter_set_version(), fitted->version());
  ASSERT_EQ(job.push_results_size(), 2);
  EXPECT_EQ(job.push_results(0).acknowledged_version(), fitted->version());
  EXPECT_EQ(suite.OperatorCost().GetVersions()->front().version, fitted->version());
  EXPECT_EQ(suite.NetworkSim().GetVersions()->front().version, fitted->version());

  grpc::ClientContext context;
  request.set_initial_parameter_set("nonsense");
  request.mutable_measurements(0)->clear_csv_text();
  EXPECT_EQ(base::ViolationsOf(
                runtime::FromGrpcStatus(stub->CreateCalibrationJob(&context, request, &job)))
                .size(),
            2u);
}

// A direct all-to-all over a torus: long enough to be watched.
std::string LongCase() {
  return R"({"case_id": "long", "topology": {"kind": "torus", "dims": [20, 20],
             "link_bandwidth_GBps": 50, "link_latency_ns": 500},
             "jobs": [{"pattern": "direct_all_to_all", "message_bytes": 400000000,
             "groups": [[)" +
         [] {
           std::string ranks = "0";
           for (int r = 1; r < 400; ++r) absl::StrAppend(&ranks, ",", r);
           return ranks;
         }() +
         "]]}]}";
}

TEST(NetworkSim, ABatchAnswersInOrderAndAWatchedCaseEndsWithItsAnswer) {
  Suite suite;
  const auto stub = suite.NetworkSimStub();
  const std::string small =
      R"({"case_id": "small", "topology": {"kind": "switch", "endpoints": 4,
          "link_bandwidth_GBps": 50, "link_latency_ns": 500}, "jobs": [{"pattern": "all_reduce",
          "message_bytes": 1048576, "groups": [[0, 1, 2, 3]]}]})";
  network_sim::v1::SimulateCasesRequest batch;
  for (const char* fidelity : {"flow", "analytic"}) {
    batch.add_cases()->set_case_json(small);
    batch.mutable_cases()->rbegin()->set_fidelity(fidelity);
  }
  network_sim::v1::SimulateCasesResponse answers;
  grpc::ClientContext batch_context;
  ASSERT_TRUE(stub->SimulateCases(&batch_context, batch, &answers).ok());
  ASSERT_EQ(answers.answers_size(), 2);
  EXPECT_EQ(answers.answers(0).fidelity(), "flow");
  EXPECT_EQ(answers.answers(1).fidelity(), "analytic");
  EXPECT_FALSE(answers.answers(0).jobs(0).algorithm().empty());

  grpc::ClientContext watch_context;
  const auto reader = stub->WatchCase(&watch_context, batch.cases(0));
  network_sim::v1::WatchCaseResponse update;
  double total_seconds = 0;
  while (reader->Read(&update)) {
    EXPECT_EQ(total_seconds, 0) << "the answer is the last message";
    if (update.has_answer()) total_seconds = update.answer().total_seconds();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(total_seconds, answers.answers(0).total_seconds());
}

TEST(NetworkSim, AClientAsksForBatchesOfAnySize) {
  Suite suite;
  const client::Client client = suite.NetworkSim();
  const std::string text = R"({"case_id": "small",
      "topology": {"kind": "ring", "dims": [4], "link_bandwidth_GBps": 50, "link_latency_ns": 500},
      "transport": {"payload_bytes": 4096, "header_bytes": 64},
      "jobs": [{"name": "main", "pattern": "ring_all_reduce", "groups": [[0, 1, 2, 3]],
                "message_bytes": 65536}]})";
  const auto one = client.SimulateCase(text, network_sim::Fidelity::kFlow);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_GT(one->total_seconds, 0);
  const std::vector<std::string> texts(250, text);
  const auto many = client.SimulateCases(texts, network_sim::Fidelity::kFlow);
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(many->size(), texts.size());
  for (const network_sim::NetworkResult& result : *many) EXPECT_EQ(result, *one);
  EXPECT_EQ(client.SimulateCase("{", network_sim::Fidelity::kFlow).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(NetworkSim, CollectivesBesideEachOtherAreTimedAsEmbedded) {
  Suite suite;
  const client::Client client = suite.NetworkSim();
  const auto job = ReadJobText(JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  collectives::ConcurrentCollectives question{.cluster = job->cluster, .gpu_count = 32};
  question.collectives = {{.name = "data",
                           .kind = collectives::CollectiveKind::kAllGather,
                           .bytes = 1e8,
                           .groups = collectives::StridedGroups(32, 4, 8)},
                          {.name = "experts",
                           .kind = collectives::CollectiveKind::kAllToAll,
                           .bytes = 1e7,
                           .groups = collectives::StridedGroups(32, 32, 1),
                           .start_seconds = 1e-4}};
  question.faults.patterns = {{"rail3", 0.5, 0}};
  std::string version;
  const auto served = client.EstimateConcurrent(question, &version);
  ASSERT_TRUE(served.ok()) << served.status();
  const auto set = client.GetParameterSet();
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(version, set->version());
  const auto embedded = collectives::TimeConcurrent(
      question, collectives::ResolveCollectiveParameters(*set, question.cluster, ""));
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  EXPECT_EQ(*served, *embedded);

  question.faults.patterns = {{"ep9", 0, 0}};
  EXPECT_EQ(client.EstimateConcurrent(question, nullptr).status().code(),
            absl::StatusCode::kFailedPrecondition);
  question.collectives[1].groups[0][3] = 77;
  const absl::Status wrong = client.EstimateConcurrent(question, nullptr).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(wrong.message().find("question.collectives[1].groups[0]"), std::string::npos) << wrong;
  question.cluster.gpus_per_node = 0;
  EXPECT_NE(client.EstimateConcurrent(question, nullptr).status().message().find(
                "question.cluster.gpus_per_node"),
            std::string::npos);
}

TEST(Services, ACallTooManyIsToldWhenToTryAgain) {
  Suite suite;
  const auto stub = suite.NetworkSimStub();
  runtime::SetMaxCallsInProgress(1);
  network_sim::v1::SimulateCaseRequest request;
  request.set_case_json(LongCase());
  grpc::ClientContext context;
  const auto reader = stub->WatchCase(&context, request);
  network_sim::v1::WatchCaseResponse update;
  ASSERT_TRUE(reader->Read(&update));  // it has its place
  const absl::Status refused = suite.NetworkSim().GetParameterSet().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(runtime::RetryDelay(refused), absl::Milliseconds(100));
  context.TryCancel();
  while (reader->Read(&update)) {
  }
  reader->Finish();
  runtime::SetMaxCallsInProgress(192);
  EXPECT_TRUE(suite.NetworkSim().GetParameterSet().ok());
}

TEST(Services, ARequestIdTravelsToEveryServiceAndBack) {
  Suite suite;
  const auto stub = suite.NetworkSimStub();
  network_sim::v1::GetParameterSetResponse response;
  const auto id_of = [&](const std::string& sent) {
    grpc::ClientContext context;
    if (!sent.empty()) context.AddMetadata(runtime::kRequestIdKey, sent);
    EXPECT_TRUE(stub->GetParameterSet(&context, {}, &response).ok());
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto found = trailers.find(runtime::kRequestIdKey);
    if (found == trailers.end()) return std::string("none");
    return std::string(found->second.data(), found->second.size());
  };
  EXPECT_EQ(id_of("job-42"), "job-42");
  EXPECT_EQ(id_of("").size(), 16u);
  EXPECT_EQ(id_of("not an id").size(), 16u);
}

TEST(NetworkSim, AWatchedCaseIsLimitedAndCancelled) {
  Suite suite;
  const auto stub = suite.NetworkSimStub();
  network_sim::v1::SimulateCaseRequest request;
  request.set_case_json(LongCase());
  request.set_max_events(1000);
  network_sim::v1::SimulateCaseResponse limited;
  grpc::ClientContext limited_context;
  ASSERT_TRUE(stub->SimulateCase(&limited_context, request, &limited).ok());
  EXPECT_EQ(limited.status(), "unsupported");
  request.clear_max_events();
  grpc::ClientContext context;
  const auto reader = stub->WatchCase(&context, request);
  context.TryCancel();
  network_sim::v1::WatchCaseResponse update;
  while (reader->Read(&update)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace sextant
