// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_FLEET_H_
#define SEXTANT_SERVICES_CALIBRATION_FLEET_H_

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/calibration/set_library.h"
#include "services/calibration/store/record_store.h"
#include "services/client/client.h"

namespace grpc {
class ChannelCredentials;
}

namespace sextant::calibration_service {

// What one target said.
struct PushResult {
  std::string target;
  std::string acknowledged_version;  // empty where it failed
  absl::Status status;
};

struct PushOutcome {
  std::string version;
  std::vector<PushResult> results;  // by target
};

struct TargetState {
  std::string target;
  std::string acknowledged_version;
  std::string foreign_version;
  bool current = false;
  absl::Status status;
};

struct FleetOptions {
  // "host:port", or "dns:host:port": every address that the name has, asked anew every 5 s.
  std::vector<std::string> targets;
  std::shared_ptr<grpc::ChannelCredentials> credentials;  // null: plaintext
  std::chrono::milliseconds timeout{30'000};              // of one call
  std::chrono::milliseconds prepare_timeout{3'000};       // beyond it a target counts as away
};

// The services that parameter sets are pushed to.
//
// A push has two phases. First every target that can be reached checks and stores the set; where
// one refuses, nothing changes anywhere. Then the decision is stored, and all put the set into
// service. What was decided is brought to an end after a crash of this process, and a target that
// was away gets the set when it comes back, tried again with growing pauses (0.25 to 5 s). A set
// that somebody puts into a target past this class is left alone until the next push. Thread-safe.
class Fleet {
 public:
  // `store` and `library` must outlive this.
  Fleet(RecordStore& store, SetLibrary& library, FleetOptions options);
  // The same with given clients.
  Fleet(RecordStore& store, SetLibrary& library, std::vector<client::Client> clients);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // FAILED_PRECONDITION, naming every target that refused, where nothing changed. Idempotent.
  absl::StatusOr<PushOutcome> Push(const SharedSet& set);
  // Pushes the set that was in service before the last push.
  absl::StatusOr<PushOutcome> Rollback();
  // The set that the targets should have; null before the first push.
  absl::StatusOr<SharedSet> InService() const;
  // By address.
  std::vector<TargetState> Targets() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Target {
    std::shared_ptr<const client::Client> client;
    absl::Status status;
    std::string acknowledged_version;
    std::string foreign_version;
    std::string instance;  // of the life of the server that acknowledged
    std::chrono::milliseconds pause{0};
    Clock::time_point due{};
  };

  void Start();
  void Resolve();
  std::vector<std::shared_ptr<const client::Client>> Clients() const;
  absl::StatusOr<PushOutcome> PushAs(const SharedSet& set, const std::string& kind,
                                     std::optional<int64_t> previous);
  absl::Status RecordBaseline();
  void Reconcile();
  void Bring(const client::Client& client, const SharedSet& set);
  void Note(const std::string& target, const absl::Status& status, const std::string& version,
            const std::string& instance, const std::string& foreign);
  void Run();

  RecordStore& store_;
  SetLibrary& library_;
  const FleetOptions options_;

  std::mutex push_mutex_;  // one push at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  Clock::time_point resolve_due_{};
  std::map<std::string, Target> targets_;
  std::thread thread_;
};

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_FLEET_H_
