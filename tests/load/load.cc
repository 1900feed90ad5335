// SPDX-License-Identifier: Apache-2.0
// Bounded mixed load on a running suite: predictions, batches of operators and collectives, and
// measurements, checked against the embedded library. Prints one JSON object.
//   load ORCHESTRATOR OPERATOR_COST NETWORK_SIM CALIBRATION SECONDS THREADS
//   load malformed ADDRESS METHOD COUNT      random messages to one method; counts by status code
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/catalog/catalog.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"
#include "services/client/client.h"
#include "services/runtime/channel.h"
#include "tests/support/jobs.h"

namespace sextant {
namespace {

using Clock = std::chrono::steady_clock;

// What one second of the run saw.
struct Second {
  std::vector<double> predict_seconds;
  int64_t calls = 0;
  std::map<std::string, int64_t> errors;  // by status code
};

class Record {
 public:
  explicit Record(Clock::time_point start) : start_(start) {}

  // Times `ask`; counts its outcome in the second in which it began.
  absl::Status Run(bool predict, const std::function<absl::Status()>& ask) {
    const auto begin = Clock::now();
    const absl::Status status = ask();
    const std::chrono::duration<double> took = Clock::now() - begin;
    const std::lock_guard lock(mutex_);
    Second& second =
        seconds_[std::chrono::duration_cast<std::chrono::seconds>(begin - start_).count()];
    ++second.calls;
    if (predict && status.ok()) second.predict_seconds.push_back(took.count());
    if (!status.ok()) ++second.errors[absl::StatusCodeToString(status.code())];
    return status;
  }
  void Wrong(const std::string& what) {
    const std::lock_guard lock(mutex_);
    wrong_.push_back(what);
  }

  nlohmann::json ToJson() {
    const std::lock_guard lock(mutex_);
    nlohmann::json seconds = nlohmann::json::array();
    for (auto& [index, second] : seconds_) {
      std::sort(second.predict_seconds.begin(), second.predict_seconds.end());
      const auto percentile = [&](double share) -> nlohmann::json {
        if (second.predict_seconds.empty()) return nullptr;
        const auto last = static_cast<double>(second.predict_seconds.size() - 1);
        return second.predict_seconds[static_cast<size_t>(share * last)];
      };
      seconds.push_back({{"second", index},
                         {"calls", second.calls},
                         {"errors", second.errors},
                         {"predictions", second.predict_seconds.size()},
                         {"predict_p50_seconds", percentile(0.5)},
                         {"predict_p99_seconds", percentile(0.99)}});
    }
    return {{"seconds", seconds}, {"wrong", wrong_}};
  }

 private:
  const Clock::time_point start_;
  std::mutex mutex_;
  std::map<int64_t, Second> seconds_;
  std::vector<std::string> wrong_;
};

struct Known {
  workload::Job job;
  double total_seconds = 0;
};

std::vector<Known> KnownJobs(const std::shared_ptr<const parameters::ParameterSet>& set) {
  std::vector<Known> known;
  for (const std::string& text : test_support::JobTexts()) {
    workload::Job job = *test_support::ReadJobText(text);
    for (int64_t scale = 1; scale <= 16; scale *= 2) {
      workload::Job scaled = job;
      if (auto* training = std::get_if<workload::TrainingWorkload>(&scaled.workload)) {
        training->global_batch_size *= scale;
      } else {
        std::get<workload::InferenceWorkload>(scaled.workload).prompt_tokens *= scale;
      }
      const auto prediction = test_support::PredictEmbedded(scaled, set);
      if (prediction.ok()) known.push_back({scaled, prediction->total_seconds});
    }
  }
  return known;
}

// One measured collective with an id of its own.
std::string Measurement(int64_t thread, int64_t number) {
  return absl::StrCat(
      "id,suite,role,quality,source,accelerator,cluster,fabric_stated,software,gpus,nodes,"
      "collective,bytes,time_us,algbw_GBps,busbw_GBps,interconnect,notes\nload-",
      thread, "-", number, ",load,fit,,load,a100-sxm4-80gb,dgx-a100,1,NCCL 2.27.3,8,1,all_reduce,",
      1048576 + number, ",100,,,,\n");
}

int RunLoad(char** argv) {
  const std::chrono::seconds length(std::min(std::atoi(argv[5]), 3600));
  const int threads = std::clamp(std::atoi(argv[6]), 1, 64);
  const auto catalog = catalog::Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  auto set = catalog->FindParameterSet("default");
  if (!set.ok()) {
    std::cerr << set.status() << "\n";
    return 1;
  }
  const auto shared = std::make_shared<const parameters::ParameterSet>(*std::move(set));
  const std::vector<Known> known = KnownJobs(shared);
  orchestrator::LocalOperatorCost local(shared);
  const auto start = Clock::now();
  Record record(start);
  std::atomic<int64_t> acknowledged = 0;

  std::vector<std::thread> callers;
  for (int thread = 0; thread < threads; ++thread) {
    callers.emplace_back([&, thread] {
      constexpr std::chrono::seconds kTimeout{5};
      const client::Client orchestrator(argv[1], kTimeout), operator_cost(argv[2], kTimeout),
          network_sim(argv[3], kTimeout), calibration(argv[4], kTimeout);
      const auto& [job, first_seconds] = known.front();
      std::vector<operator_cost::Operator> operators;
      for (int64_t i = 0; i < 100; ++i) {
        operators.push_back({operator_cost::GemmShape{.m = 128 + i, .n = 4096, .k = 4096},
                             hardware::Precision::kBf16});
      }
      const auto expected = local.EstimateOperators(operators, job.cluster.accelerator, "");
      const collectives::Collective collective{.kind = collectives::CollectiveKind::kAllReduce,
                                               .bytes = 268435456.0,
                                               .group_size = 8,
                                               .ranks_per_node = 8};
      for (int64_t number = 0; Clock::now() - start < length; ++number) {
        const Known& asked = known[static_cast<size_t>(number + thread) % known.size()];
        (void)record.Run(true, [&]() -> absl::Status {
          const auto prediction = orchestrator.Predict(asked.job);
          if (prediction.ok() && (prediction->total_seconds != asked.total_seconds ||
                                  prediction->parameter_set != shared->version())) {
            record.Wrong(absl::StrCat(asked.job.model.name, ": ", prediction->total_seconds,
                                      " instead of ", asked.total_seconds));
          }
          return prediction.status();
        });
        if (number % 10 == 1) {
          (void)record.Run(false, [&]() -> absl::Status {
            const auto estimates =
                operator_cost.EstimateOperators(operators, job.cluster.accelerator, "");
            if (estimates.ok() && !(*estimates == *expected)) record.Wrong("operators");
            return estimates.status();
          });
        }
        if (number % 10 == 2) {
          (void)record.Run(false, [&] {
            return network_sim.EstimateCollectives({collective}, job.cluster, "").status();
          });
        }
        if (number % 50 == 3) {
          google::protobuf::RepeatedPtrField<calibration::v1::MeasurementFile> files;
          files.Add()->set_file_name("load.csv");
          files[0].set_content(Measurement(thread, number));
          (void)record.Run(false, [&]() -> absl::Status {
            const auto taken = calibration.IngestMeasurements(files);
            // A repeated call finds its row known: taken once all the same.
            if (taken.ok()) ++acknowledged;
            return taken.status();
          });
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  nlohmann::json result = record.ToJson();
  result["acknowledged_measurements"] = acknowledged.load();
  std::cout << result.dump() << std::endl;
  return 0;
}

// Random bytes and cut-off messages, one call after another.
int SendMalformed(const std::string& address, const std::string& method, int count) {
  grpc::GenericStub stub(runtime::Connect(address));
  std::mt19937_64 random(17);
  std::map<int, int64_t> codes;
  for (int i = 0; i < std::min(count, 100'000); ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    std::mutex mutex;
    std::condition_variable done;
    bool ended = false;
    grpc::Status status;
    stub.UnaryCall(&context, method, {}, &request, &response, [&](grpc::Status result) {
      const std::lock_guard lock(mutex);
      status = std::move(result);
      ended = true;
      done.notify_one();
    });
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return ended; });
    ++codes[status.error_code()];
  }
  nlohmann::json result;
  for (const auto& [code, number] : codes) result[absl::StrCat(code)] = number;
  std::cout << result.dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace sextant

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "malformed") {
    return sextant::SendMalformed(argv[2], argv[3], std::atoi(argv[4]));
  }
  if (argc != 7) {
    std::cerr << "usage: load ORCHESTRATOR OPERATOR_COST NETWORK_SIM CALIBRATION SECONDS THREADS\n"
                 "       load malformed ADDRESS METHOD COUNT\n";
    return 2;
  }
  return sextant::RunLoad(argv);
}
