// SPDX-License-Identifier: Apache-2.0
// The calibration loop with real processes: measurements in, drift, job, push, rollback, and what
// kill -9 leaves behind.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/catalog/catalog.h"
#include "common/wire/convert.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "services/client/client.h"
#include "services/parameter_store/parameter_calls.h"
#include "services/runtime/channel.h"
#include "services/runtime/grpc_status.h"
#include "services/runtime/metrics.h"
#include "services/runtime/server.h"
#include "sextant/calibration/v1/calibration_service.grpc.pb.h"
#include "sextant/operator_cost/v1/operator_cost_service.grpc.pb.h"
#include "tests/e2e/four_servers.h"
#include "tests/support/jobs.h"

namespace sextant {
namespace {

namespace v1 = calibration::v1;
using std::chrono::seconds;
using test_support::ReadJobText;
using test_support::ServerProcess;

bool Within(seconds limit, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// Calls of the calibration service; a test fails where one does.
class Calibration {
 public:
  explicit Calibration(const std::string& address)
      : stub_(v1::CalibrationService::NewStub(runtime::Connect(address))) {}

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::CalibrationService::Stub::*)(grpc::ClientContext*,
                                                                const Request&, Response*);
  template <typename Request, typename Response>
  Response Ask(Method<Request, Response> method, const Request& request = {}) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + seconds(60));
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::IngestMeasurementsResponse Ingest(const std::string& text) {
    v1::IngestMeasurementsRequest request;
    auto* file = request.add_files();
    file->set_file_name("measured.csv");
    file->set_content(text);
    return Ask(&v1::CalibrationService::Stub::IngestMeasurements, request);
  }
  std::vector<v1::CalibrationJob> Jobs() {
    const auto list = Ask(&v1::CalibrationService::Stub::ListCalibrationJobs);
    return {list.calibration_jobs().begin(), list.calibration_jobs().end()};
  }
  v1::CalibrationJob Job(const std::string& name) {
    v1::GetCalibrationJobRequest request;
    request.set_name(name);
    return Ask(&v1::CalibrationService::Stub::GetCalibrationJob, request);
  }
  v1::CalibrationJob Create(const std::string& csv, bool push) {
    v1::CreateCalibrationJobRequest request;
    if (!csv.empty()) request.add_measurements()->set_csv_text(csv);
    request.set_push(push);
    return Ask(&v1::CalibrationService::Stub::CreateCalibrationJob, request);
  }
  int64_t MeasurementCount() {
    return Ask(&v1::CalibrationService::Stub::ListMeasurements).total_count();
  }
  // The name of a job is known again after a restart; its end is waited for.
  v1::CalibrationJob Ended(const std::string& name) {
    v1::CalibrationJob job;
    EXPECT_TRUE(Within(seconds(120), [&] {
      job = Job(name);
      return job.has_end_time();
    })) << job.ShortDebugString();
    return job;
  }

  v1::CalibrationService::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1::CalibrationService::Stub> stub_;
};

// Collectives on DGX A100 as nccl-tests would report them, each `factor` times as long as the set
// that this project ships predicts, with a scatter of a percent.
std::string MeasuredCollectives(const std::string& prefix, double factor) {
  const auto catalog = catalog::Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  const auto cluster = catalog->FindCluster("dgx-a100");
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  auto set = catalog->FindParameterSet("default");
  EXPECT_TRUE(set.ok()) << set.status();
  orchestrator::LocalNetworkTime network(
      std::make_shared<const parameters::ParameterSet>(*std::move(set)));
  std::string csv =
      "id,suite,role,quality,source,accelerator,cluster,fabric_stated,software,gpus,nodes,"
      "collective,bytes,time_us,algbw_GBps,busbw_GBps,interconnect,notes\n";
  int row = 0;
  for (const int gpus : {2, 4, 8, 16, 32}) {
    const int nodes = gpus > 8 ? gpus / 8 : 1;
    for (const auto& [name, kind] :
         {std::pair{"all_reduce", collectives::CollectiveKind::kAllReduce},
          std::pair{"all_gather", collectives::CollectiveKind::kAllGather},
          std::pair{"reduce_scatter", collectives::CollectiveKind::kReduceScatter}}) {
      for (const double bytes : {1048576.0, 16777216.0, 67108864.0, 268435456.0, 1073741824.0}) {
        const collectives::Collective collective{
            .kind = kind, .bytes = bytes, .group_size = gpus, .ranks_per_node = gpus / nodes};
        const auto estimate = network.EstimateCollectives({collective}, *cluster, "nccl-2.27.3");
        EXPECT_TRUE(estimate.ok()) << estimate.status();
        const double scatter = 1 + 0.01 * (row % 3 - 1);
        absl::StrAppend(&csv, prefix, row++,
                        ",slow-network,fit,,nightly,a100-sxm4-80gb,dgx-a100,1,", "NCCL 2.27.3,",
                        gpus, ",", nodes, ",", name, ",", static_cast<int64_t>(bytes), ",",
                        estimate->front().seconds * 1e6 * factor * scatter, ",,,,\n");
      }
    }
  }
  return csv;
}

class LoopServers : public FourServers {
 protected:
  void SetUp() override {
    FourServers::SetUp();
    calibration_.reset();
    StartCalibration(kAnyPort);
  }
  void StartCalibration(const std::string& listen) {
    calibration_ = StartServer("calibration", listen,
                               {kDatasets, absl::StrCat("--state_directory=", Store()),
                                absl::StrCat("--push_target=", operator_cost_->address()),
                                absl::StrCat("--push_target=", network_sim_->address())});
  }
  std::string Store() const { return (calibration_folder_.path() / "store").string(); }
  client::Client Asked(const ServerProcess& process) {
    return client::Client(process.address(), seconds(20));
  }
  std::string VersionOf(const ServerProcess& process) {
    const auto versions = Asked(process).GetVersions();
    return versions.ok() ? versions->front().version : "";
  }

  const test_support::TemporaryFolder calibration_folder_;
};

TEST_F(LoopServers, ASlowerNetworkIsLearntWithoutAHandAndRolledBackBitForBit) {
  const auto job = ReadJobText(test_support::JobTexts()[0]);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto before = Asked(*orchestrator_).Predict(*job);
  ASSERT_TRUE(before.ok()) << before.status();
  Calibration calibration(calibration_->address());

  // A machine that does what the set says leaves everything alone.
  const auto good = calibration.Ingest(MeasuredCollectives("same-", 1.0));
  EXPECT_EQ(good.taken_count(), 75);
  ASSERT_TRUE(Within(seconds(30), [&] {
    return calibration.Ask(&v1::CalibrationService::Stub::GetWatchStatus).groups_size() == 1;
  }));
  EXPECT_FALSE(calibration.Ask(&v1::CalibrationService::Stub::GetWatchStatus).groups(0).drifted());
  EXPECT_TRUE(calibration.Jobs().empty());

  // The same machine 20 % slower on the network. Sent twice: an id is taken once.
  const std::string slow = MeasuredCollectives("slow-", 1.25);
  EXPECT_EQ(calibration.Ingest(slow).taken_count(), 75);
  const auto again = calibration.Ingest(slow);
  EXPECT_EQ(again.taken_count(), 0);
  EXPECT_EQ(again.files(0).known_count(), 75);

  std::vector<v1::CalibrationJob> jobs;
  ASSERT_TRUE(Within(seconds(60), [&] {
    jobs = calibration.Jobs();
    return !jobs.empty() && jobs[0].has_end_time();
  }));
  const v1::CalibrationJob ended = calibration.Job(jobs[0].name());
  EXPECT_EQ(ended.state(), v1::CalibrationJob::STATE_SUCCEEDED) << ended.ShortDebugString();
  EXPECT_EQ(ended.trigger(), "drift");
  EXPECT_NE(ended.trigger_detail().find("a100-sxm4-80gb collective"), std::string::npos);
  EXPECT_TRUE(ended.published()) << ended.report();
  EXPECT_LT(ended.held_out_mape_percent(), ended.initial_held_out_mape_percent());
  ASSERT_EQ(ended.push_results_size(), 2);
  for (const auto& result : ended.push_results()) {
    EXPECT_EQ(result.acknowledged_version(), ended.parameter_set_version()) << result.error();
  }
  const auto pushes = calibration.Ask(&v1::CalibrationService::Stub::ListPushes);
  ASSERT_EQ(pushes.pushes_size(), 2);  // and the baseline
  using google::protobuf::util::TimeUtil;
  std::cout << "published to acknowledged by both: "
            << TimeUtil::DurationToMicroseconds(pushes.pushes(0).end_time() -
                                                pushes.pushes(0).create_time())
            << " us\n";

  const auto after = Asked(*orchestrator_).Predict(*job);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->parameter_set, ended.parameter_set_version());
  EXPECT_GT(after->total_seconds, before->total_seconds);
  const collectives::Collective large{.kind = collectives::CollectiveKind::kAllReduce,
                                      .bytes = 268435456.0,
                                      .group_size = 16,
                                      .ranks_per_node = 8};
  const auto timed = Asked(*network_sim_).EstimateCollectives({large}, job->cluster, "nccl-2.27.3");
  ASSERT_TRUE(timed.ok()) << timed.status();

  const std::string metrics = test_support::HttpGet(calibration_->metrics_port(), "/metrics");
  for (const std::string& expected :
       {std::string("sextant_calibration_automatic_jobs_total{trigger=\"drift\"} 1"),
        std::string("sextant_calibration_measurements_total{result=\"taken\"} 150"),
        std::string("sextant_calibration_measurements_total{result=\"known\"} 75"),
        std::string("sextant_calibration_judged_measurements_total 150")}) {
    EXPECT_NE(metrics.find(expected), std::string::npos) << expected << "\n" << metrics;
  }
  EXPECT_TRUE(Within(seconds(10), [&] {
    const std::string now = test_support::HttpGet(calibration_->metrics_port(), "/metrics");
    return now.find(absl::StrCat("sextant_calibration_push_target_current{target=\"",
                                 network_sim_->address(), "\"} 1")) != std::string::npos;
  }));

  const auto back = calibration.Ask(&v1::CalibrationService::Stub::RollbackParameterSet);
  EXPECT_EQ(back.version(), before->parameter_set);
  const auto restored = Asked(*orchestrator_).Predict(*job);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, *before);
  const auto healthy =
      Asked(*network_sim_).EstimateCollectives({large}, job->cluster, "nccl-2.27.3");
  ASSERT_TRUE(healthy.ok()) << healthy.status();
  EXPECT_NEAR(timed->front().seconds / healthy->front().seconds, 1.25, 0.08);
}

TEST_F(LoopServers, TheCommandPushesAndRollsBackThroughTheCalibrationService) {
  const std::string before = VersionOf(*network_sim_);
  const auto set = test_support::SlowGemmSet(0.4);
  const std::string file = (calibration_folder_.path() / "slow.yaml").string();
  ASSERT_TRUE(catalog::SaveParameterSet(*set, file).ok());

  const auto pushed =
      test_support::RunSextant({"parameters", "push", file, calibration_->address()});
  ASSERT_EQ(pushed.exit_code, 0) << pushed.err;
  for (const auto* process : {operator_cost_.get(), network_sim_.get()}) {
    EXPECT_EQ(VersionOf(*process), set->version());
    EXPECT_NE(pushed.out.find(process->address()), std::string::npos) << pushed.out;
  }
  const auto back = test_support::RunSextant({"parameters", "rollback", calibration_->address()});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(VersionOf(*operator_cost_), before);
  EXPECT_EQ(VersionOf(*network_sim_), before);

  // One is away: the push goes through, and says who is to get it later.
  network_sim_->Stop(SIGKILL);
  const auto partial =
      test_support::RunSextant({"parameters", "push", file, calibration_->address()});
  EXPECT_EQ(partial.exit_code, 0) << partial.err;
  EXPECT_NE(
      partial.err.find(absl::StrCat(network_sim_->address(), " gets the set when it is back")),
      std::string::npos)
      << partial.err;
  EXPECT_EQ(VersionOf(*operator_cost_), set->version());
}

TEST_F(LoopServers, AServiceThatWasDownDuringAPushGetsTheSetWhenItComesBack) {
  Calibration calibration(calibration_->address());
  const std::string address = network_sim_->address();
  network_sim_->Stop(SIGKILL);
  v1::PushParameterSetRequest request;
  const auto slow = test_support::SlowGemmSet(0.3);
  *request.mutable_parameter_set() = wire::ToProto(*slow);
  const auto pushed = calibration.Ask(&v1::CalibrationService::Stub::PushParameterSet, request);
  int acknowledged = 0;
  for (const auto& result : pushed.results()) {
    acknowledged += result.acknowledged_version() == slow->version();
  }
  EXPECT_EQ(acknowledged, 1);
  EXPECT_EQ(VersionOf(*operator_cost_), slow->version());
  network_sim_ = StartServer("network_sim", address, {kDatasets, "--parameters=default"});
  EXPECT_TRUE(Within(seconds(30), [&] { return VersionOf(*network_sim_) == slow->version(); }));
  EXPECT_TRUE(Within(seconds(30), [&] {
    const auto targets = calibration.Ask(&v1::CalibrationService::Stub::ListPushTargets);
    return targets.targets(0).current() && targets.targets(1).current();
  }));
}

TEST_F(LoopServers, WhereOneServiceRefusesNoneChanges) {
  Calibration calibration(calibration_->address());
  const std::string before = VersionOf(*operator_cost_);
  // The folder of the cost server's sets is gone and cannot be made again: it cannot store.
  std::filesystem::remove_all(state_folder_.path());
  std::ofstream(state_folder_.path()) << "in the way";
  v1::PushParameterSetRequest request;
  *request.mutable_parameter_set() = wire::ToProto(*test_support::SlowGemmSet(0.3));
  grpc::ClientContext context;
  v1::PushParameterSetResponse response;
  // UNAVAILABLE would read as "away": a disk is named FAILED_PRECONDITION or the like.
  const grpc::Status status = calibration.stub().PushParameterSet(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
  EXPECT_NE(status.error_message().find(operator_cost_->address()), std::string::npos);
  EXPECT_EQ(VersionOf(*operator_cost_), before);
  EXPECT_EQ(VersionOf(*network_sim_), before);
  const auto pushes = calibration.Ask(&v1::CalibrationService::Stub::ListPushes);
  EXPECT_EQ(pushes.pushes(0).state(), "aborted");
}

// A target that waits at a gate in the middle of a push.
class GatedTarget final : public operator_cost::v1::OperatorCostService::Service {
 public:
  enum Gate { kOpen, kPrepare, kCommit };

  GatedTarget() : store_(*parameter_store::ParameterStore::Open(Initial(), "")) {
    server_ = *runtime::Server::Start({.listen = kAnyPort,
                                       .metrics_listen = "",
                                       .security = {.insecure = true},
                                       .drain = std::chrono::milliseconds(100)},
                                      {{this, "gated"}}, metrics_);
  }
  ~GatedTarget() override {
    gate_ = kOpen;
    server_->Shutdown();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", server_->port()); }
  std::string version() const { return store_->Active()->version(); }
  void Set(Gate gate) { gate_ = gate; }
  bool waits() const { return waits_; }

  grpc::Status GetParameterSet(grpc::ServerContext*,
                               const operator_cost::v1::GetParameterSetRequest* request,
                               operator_cost::v1::GetParameterSetResponse* response) override {
    return runtime::ToGrpcStatus(parameter_store::GetParameterSet(*store_, *request, response));
  }
  grpc::Status PushParameterSet(grpc::ServerContext*,
                                const operator_cost::v1::PushParameterSetRequest* request,
                                operator_cost::v1::PushParameterSetResponse* response) override {
    return runtime::ToGrpcStatus(parameter_store::PushParameterSet(*store_, *request, response));
  }
  grpc::Status PrepareParameterSet(
      grpc::ServerContext*, const operator_cost::v1::PrepareParameterSetRequest* request,
      operator_cost::v1::PrepareParameterSetResponse* response) override {
    Wait(kPrepare);
    return runtime::ToGrpcStatus(parameter_store::PrepareParameterSet(*store_, *request, response));
  }
  grpc::Status CommitParameterSet(
      grpc::ServerContext*, const operator_cost::v1::CommitParameterSetRequest* request,
      operator_cost::v1::CommitParameterSetResponse* response) override {
    if (gate_ == kCommit) {
      Wait(kCommit);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "its caller is gone");
    }
    return runtime::ToGrpcStatus(parameter_store::CommitParameterSet(*store_, *request, response));
  }

 private:
  static parameter_store::SharedSet Initial() {
    return std::make_shared<const parameters::ParameterSet>();
  }
  void Wait(Gate gate) {
    while (gate_ == gate) {
      waits_ = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    waits_ = false;
  }

  std::atomic<Gate> gate_ = kOpen;
  std::atomic<bool> waits_ = false;
  runtime::Metrics metrics_;
  std::unique_ptr<parameter_store::ParameterStore> store_;
  std::unique_ptr<runtime::Server> server_;
};

class KilledCalibration : public testing::Test {
 protected:
  void SetUp() override { Start(kAnyPort); }
  void Start(const std::string& listen) {
    process_ = StartServer("calibration", listen,
                           {kDatasets, "--automatic=false",
                            absl::StrCat("--state_directory=", folder_.path().string()),
                            absl::StrCat("--push_target=", target_.address())});
    calibration_ = std::make_unique<Calibration>(process_->address());
  }
  void KillAndRestart() {
    EXPECT_EQ(process_->Stop(SIGKILL), -SIGKILL);
    target_.Set(GatedTarget::kOpen);
    Start(kAnyPort);
  }
  void ExpectPublishedAndServed(const std::string& name, int attempts, int64_t count = 75) {
    const v1::CalibrationJob job = calibration_->Ended(name);
    EXPECT_EQ(job.state(), v1::CalibrationJob::STATE_SUCCEEDED) << job.ShortDebugString();
    EXPECT_TRUE(job.published()) << job.report();
    EXPECT_EQ(job.attempt_count(), attempts);
    EXPECT_EQ(calibration_->MeasurementCount(), count) << "no measurement is lost";
    EXPECT_EQ(target_.version(), job.parameter_set_version());
    EXPECT_EQ(calibration_->Ask(&v1::CalibrationService::Stub::ListPushTargets).version(),
              job.parameter_set_version());
  }

  const test_support::TemporaryFolder folder_;
  GatedTarget target_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<Calibration> calibration_;
};

TEST_F(KilledCalibration, WhileOneJobFitsAndAnotherWaitsBothEndAfterTheRestart) {
  // All shipped collectives, so that the fit is long enough to be met.
  const std::string first =
      calibration_
          ->Create(test_support::ReadWholeFile(SEXTANT_SOURCE_DIR
                                               "/datasets/measurements/collectives.csv"),
                   false)
          .name();
  const std::string second = calibration_->Create(MeasuredCollectives("slow-", 1.25), true).name();
  const int64_t count = calibration_->MeasurementCount();
  EXPECT_GT(count, 75);
  ASSERT_TRUE(Within(seconds(60), [&] { return calibration_->Job(first).phase() == "fitting"; }));
  EXPECT_EQ(calibration_->Job(second).state(), v1::CalibrationJob::STATE_QUEUED);
  KillAndRestart();
  const v1::CalibrationJob again = calibration_->Ended(first);
  EXPECT_EQ(again.state(), v1::CalibrationJob::STATE_SUCCEEDED) << again.ShortDebugString();
  EXPECT_EQ(again.attempt_count(), 2);
  ExpectPublishedAndServed(second, 1, count);
}

TEST_F(KilledCalibration, WhileATargetPreparesTheOldSetStaysUntilThePushIsRepeated) {
  target_.Set(GatedTarget::kPrepare);
  const std::string before = target_.version();
  const std::string name = calibration_->Create(MeasuredCollectives("slow-", 1.25), true).name();
  ASSERT_TRUE(Within(seconds(120), [&] { return target_.waits(); }));
  EXPECT_EQ(calibration_->Job(name).phase(), "pushing");
  EXPECT_EQ(target_.version(), before);
  KillAndRestart();
  ExpectPublishedAndServed(name, 2);
  const auto pushes = calibration_->Ask(&v1::CalibrationService::Stub::ListPushes);
  ASSERT_EQ(pushes.pushes_size(), 3);
  EXPECT_EQ(pushes.pushes(0).state(), "done");
  EXPECT_EQ(pushes.pushes(1).state(), "aborted");
}

TEST_F(KilledCalibration, WhileATargetCommitsTheDecisionIsCarriedOut) {
  target_.Set(GatedTarget::kCommit);
  const std::string name = calibration_->Create(MeasuredCollectives("slow-", 1.25), true).name();
  ASSERT_TRUE(Within(seconds(120), [&] { return target_.waits(); }));
  KillAndRestart();
  ExpectPublishedAndServed(name, 2);
}

TEST_F(KilledCalibration, AJobIsWatchedAndCancelled) {
  const std::string csv = MeasuredCollectives("slow-", 1.25);
  const std::string first = calibration_->Create(csv, false).name();
  const std::string second = calibration_->Create("", false).name();
  v1::CancelCalibrationJobRequest cancel;
  cancel.set_name(second);
  const auto cancelled =
      calibration_->Ask(&v1::CalibrationService::Stub::CancelCalibrationJob, cancel);
  EXPECT_EQ(cancelled.state(), v1::CalibrationJob::STATE_CANCELLED);

  v1::WatchCalibrationJobRequest watch;
  watch.set_name(first);
  grpc::ClientContext context;
  const auto reader = calibration_->stub().WatchCalibrationJob(&context, watch);
  std::vector<v1::CalibrationJob> seen;
  for (v1::CalibrationJob job; reader->Read(&job);) seen.push_back(job);
  EXPECT_TRUE(reader->Finish().ok());
  ASSERT_FALSE(seen.empty());  // a quick job may have ended before the watch began
  EXPECT_EQ(seen.back().state(), v1::CalibrationJob::STATE_SUCCEEDED);
  for (size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_FALSE(seen[i].has_end_time());

  v1::ListCalibrationJobsRequest list;
  list.set_page_size(1);
  const auto page = calibration_->Ask(&v1::CalibrationService::Stub::ListCalibrationJobs, list);
  ASSERT_EQ(page.calibration_jobs_size(), 1);
  EXPECT_EQ(page.calibration_jobs(0).name(), second);
  list.set_page_token(page.next_page_token());
  const auto rest = calibration_->Ask(&v1::CalibrationService::Stub::ListCalibrationJobs, list);
  ASSERT_EQ(rest.calibration_jobs_size(), 1);
  EXPECT_EQ(rest.calibration_jobs(0).name(), first);
  EXPECT_TRUE(rest.next_page_token().empty());
}

}  // namespace
}  // namespace sextant
