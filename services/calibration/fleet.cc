// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/fleet.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "services/runtime/channel.h"
#include "services/runtime/log.h"

namespace sextant::calibration_service {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{250};
constexpr milliseconds kLongestPause{5000};
constexpr milliseconds kResolvePause{5000};
constexpr int64_t kStalePushMicroseconds = 120'000'000;

// "dns:host:port" as numeric addresses; empty where the name is not known now.
std::vector<std::string> AddressesOf(absl::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == absl::string_view::npos) return {};
  const std::string host(name.substr(0, colon));
  const std::string port(name.substr(colon + 1));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  std::vector<std::string> addresses;
  for (const addrinfo* item = found; item != nullptr; item = item->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(item->ai_addr, item->ai_addrlen, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    const bool v6 = item->ai_family == AF_INET6;
    addresses.push_back(absl::StrCat(v6 ? "[" : "", text, v6 ? "]" : "", ":", port));
  }
  freeaddrinfo(found);
  return addresses;
}

bool Away(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Asks all at the same time; the answers in their order.
template <typename Answer>
std::vector<Answer> AskAll(const std::vector<std::shared_ptr<const client::Client>>& clients,
                           const std::function<Answer(const client::Client&)>& ask) {
  std::vector<std::optional<Answer>> answers(clients.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] { answers[i] = ask(*clients[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Answer> all;
  for (std::optional<Answer>& answer : answers) all.push_back(*std::move(answer));
  return all;
}

}  // namespace

Fleet::Fleet(RecordStore& store, SetLibrary& library, FleetOptions options)
    : store_(store), library_(library), options_(std::move(options)) {
  Start();
}

Fleet::Fleet(RecordStore& store, SetLibrary& library, std::vector<client::Client> clients)
    : store_(store), library_(library) {
  for (client::Client& client : clients) {
    const std::string name = client.target();
    targets_[name].client = std::make_shared<const client::Client>(std::move(client));
  }
  Start();
}

void Fleet::Start() {
  const absl::Status status = store_.Transact([&](Records& records) -> absl::Status {
    // Half a push whose process is gone: no target has the set in service.
    SEXTANT_ASSIGN_OR_RETURN(auto open, records.LastPush(false));
    const int64_t now_us = NowMicroseconds();
    if (open.has_value() &&
        (store_.exclusive() || open->created_us < now_us - kStalePushMicroseconds)) {
      open->state = "aborted";
      open->error = "the service ended before every target was ready";
      open->ended_us = now_us;
      SEXTANT_RETURN_IF_ERROR(records.UpdatePush(*open));
    }
    SEXTANT_ASSIGN_OR_RETURN(const auto known, records.Targets());
    for (const TargetRecord& record : known) {
      if (const auto it = targets_.find(record.target); it != targets_.end()) {
        it->second.acknowledged_version = record.acknowledged_version;
        it->second.foreign_version = record.foreign_version;
      }
    }
    return absl::OkStatus();
  });
  if (!status.ok()) {
    runtime::Log(runtime::Severity::kWarning, "push state cannot be read",
                 {{"reason", status.message()}});
  }
  Resolve();
  thread_ = std::thread([this] { Run(); });
}

Fleet::~Fleet() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Fleet::Resolve() {
  std::map<std::string, std::string> names;  // address -> name that its certificate must say
  bool by_name = false;
  for (const std::string& target : options_.targets) {
    absl::string_view name = target;
    if (!absl::ConsumePrefix(&name, "dns:")) {
      names.try_emplace(target);
      continue;
    }
    by_name = true;
    const std::string host(name.substr(0, name.rfind(':')));
    for (const std::string& address : AddressesOf(name)) names.try_emplace(address, host);
  }
  const std::lock_guard lock(mutex_);
  resolve_due_ = Clock::now() + kResolvePause;
  if (options_.targets.empty()) return;
  for (const auto& [name, server_name] : names) {
    if (targets_.contains(name)) continue;
    targets_[name].client = std::make_shared<const client::Client>(
        runtime::Connect(name, options_.credentials, server_name), name, options_.timeout);
  }
  // An address that a name no longer has is no member any more; an empty answer is a failure.
  if (!by_name || names.empty()) return;
  std::erase_if(targets_, [&](const auto& item) { return !names.contains(item.first); });
}

std::vector<std::shared_ptr<const client::Client>> Fleet::Clients() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const client::Client>> clients;
  for (const auto& [name, target] : targets_) clients.push_back(target.client);
  return clients;
}

std::vector<TargetState> Fleet::Targets() const {
  const auto in_service = InService();
  const std::lock_guard lock(mutex_);
  std::vector<TargetState> states;
  for (const auto& [name, target] : targets_) {
    states.push_back({.target = name,
                      .acknowledged_version = target.acknowledged_version,
                      .foreign_version = target.foreign_version,
                      .current = in_service.ok() && *in_service != nullptr && target.status.ok() &&
                                 target.foreign_version.empty() &&
                                 target.acknowledged_version == (*in_service)->version(),
                      .status = target.status});
  }
  return states;
}

absl::StatusOr<SharedSet> Fleet::InService() const {
  SEXTANT_ASSIGN_OR_RETURN(const auto last,
                           store_.Ask([](Records& records) { return records.LastPush(true); }));
  if (!last.has_value()) return SharedSet();
  return library_.Find(last->version);
}

// What every target serves before the first push, so that a rollback can go back to it. Where
// targets differ there is no such set.
absl::Status Fleet::RecordBaseline() {
  const auto answers = AskAll<absl::StatusOr<parameters::ParameterSet>>(
      Clients(), [&](const client::Client& client) {
        return client.WithTimeout(options_.prepare_timeout).GetParameterSet();
      });
  const parameters::ParameterSet* baseline = nullptr;
  for (const auto& answer : answers) {
    if (!answer.ok()) continue;
    if (baseline != nullptr && baseline->version() != answer->version()) return absl::OkStatus();
    baseline = &*answer;
  }
  if (baseline == nullptr) return absl::OkStatus();
  const auto set = std::make_shared<const parameters::ParameterSet>(*baseline);
  return store_.Transact([&](Records& records) -> absl::Status {
    SEXTANT_RETURN_IF_ERROR(SetLibrary::Store(set, records));
    const int64_t now_us = NowMicroseconds();
    PushRecord record{.version = set->version(),
                      .kind = "baseline",
                      .state = "done",
                      .created_us = now_us,
                      .ended_us = now_us};
    return records.AddPush(&record);
  });
}

absl::StatusOr<PushOutcome> Fleet::Push(const SharedSet& set) {
  const std::lock_guard lock(push_mutex_);
  return PushAs(set, "push", std::nullopt);
}

absl::StatusOr<PushOutcome> Fleet::Rollback() {
  const std::lock_guard lock(push_mutex_);
  SEXTANT_ASSIGN_OR_RETURN(
      const auto target,
      store_.Ask([](Records& records) -> absl::StatusOr<std::optional<PushRecord>> {
        SEXTANT_ASSIGN_OR_RETURN(const auto last, records.LastPush(true));
        if (!last.has_value() || last->previous == 0) return std::nullopt;
        return records.FindPush(last->previous);
      }));
  if (!target.has_value()) {
    return absl::FailedPreconditionError(
        "there is no parameter set to go back to; push one with PushParameterSet");
  }
  SEXTANT_ASSIGN_OR_RETURN(const SharedSet set, library_.Find(target->version));
  return PushAs(set, "rollback", target->previous);
}

absl::StatusOr<PushOutcome> Fleet::PushAs(const SharedSet& set, const std::string& kind,
                                          std::optional<int64_t> previous) {
  Resolve();
  SEXTANT_ASSIGN_OR_RETURN(auto last,
                           store_.Ask([](Records& records) { return records.LastPush(true); }));
  if (!last.has_value()) {
    SEXTANT_RETURN_IF_ERROR(RecordBaseline());
    SEXTANT_ASSIGN_OR_RETURN(last,
                             store_.Ask([](Records& records) { return records.LastPush(true); }));
  }
  const bool again = last.has_value() && last->version == set->version();
  PushRecord record{.version = set->version(),
                    .previous = previous.value_or(last.has_value() ? last->sequence : 0),
                    .kind = kind,
                    .state = "preparing",
                    .created_us = NowMicroseconds()};
  // The set in service again: the same push, brought to whoever lacks it.
  if (again) record.previous = last->previous;
  if (const absl::Status transacted = store_.Transact([&](Records& records) -> absl::Status {
        SEXTANT_RETURN_IF_ERROR(SetLibrary::Store(set, records));
        return records.AddPush(&record);
      });
      !transacted.ok())
    return transacted;

  const auto clients = Clients();
  const auto prepared =
      AskAll<absl::Status>(clients, [&](const client::Client& client) -> absl::Status {
        return client.WithTimeout(options_.prepare_timeout).PrepareParameterSet(*set).status();
      });
  std::string refusals;
  for (size_t i = 0; i < clients.size(); ++i) {
    if (prepared[i].ok() || Away(prepared[i])) continue;
    absl::StrAppend(&refusals, refusals.empty() ? "" : "; ", clients[i]->target(), ": ",
                    prepared[i].message());
  }
  if (!refusals.empty()) {
    record.state = "aborted";
    record.error = refusals;
    record.ended_us = NowMicroseconds();
    SEXTANT_RETURN_IF_ERROR(
        store_.Transact([&](Records& records) { return records.UpdatePush(record); }));
    runtime::Log(runtime::Severity::kWarning, "push refused",
                 {{"version", record.version}, {"reason", refusals}});
    return absl::FailedPreconditionError(
        absl::StrCat("nothing was changed, because a target refuses the set: ", refusals));
  }
  // The decision. From here on the set is in service, whatever happens to this process.
  record.state = "committing";
  SEXTANT_RETURN_IF_ERROR(
      store_.Transact([&](Records& records) { return records.UpdatePush(record); }));
  {
    const std::lock_guard lock(mutex_);
    for (auto& [name, target] : targets_) target.foreign_version.clear();
  }

  using Versions = absl::StatusOr<std::vector<client::ServiceVersion>>;
  std::vector<size_t> ready;
  for (size_t i = 0; i < clients.size(); ++i) {
    if (prepared[i].ok()) ready.push_back(i);
  }
  std::vector<std::shared_ptr<const client::Client>> ready_clients;
  for (const size_t i : ready) ready_clients.push_back(clients[i]);
  const auto committed =
      AskAll<Versions>(ready_clients, [&](const client::Client& client) -> Versions {
        SEXTANT_RETURN_IF_ERROR(client.CommitParameterSet(set->version()).status());
        return client.GetVersions(set->version());
      });

  PushOutcome outcome{.version = set->version()};
  for (size_t i = 0; i < clients.size(); ++i) {
    outcome.results.push_back({clients[i]->target(), "", prepared[i]});
  }
  for (size_t k = 0; k < ready.size(); ++k) {
    PushResult& result = outcome.results[ready[k]];
    result.status = committed[k].status();
    if (committed[k].ok()) result.acknowledged_version = set->version();
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    const PushResult& result = outcome.results[i];
    std::string instance;
    for (size_t k = 0; k < ready.size(); ++k) {
      if (ready[k] == i && committed[k].ok() && !committed[k]->empty()) {
        instance = committed[k]->front().instance;
      }
    }
    Note(result.target, result.status, result.acknowledged_version, instance, "");
  }
  record.state = "done";
  record.ended_us = NowMicroseconds();
  SEXTANT_RETURN_IF_ERROR(
      store_.Transact([&](Records& records) { return records.UpdatePush(record); }));
  return outcome;
}

void Fleet::Note(const std::string& name, const absl::Status& status, const std::string& version,
                 const std::string& instance, const std::string& foreign) {
  bool store = false;
  TargetRecord record{.target = name};
  {
    const std::lock_guard lock(mutex_);
    const auto it = targets_.find(name);
    if (it == targets_.end()) return;
    Target& target = it->second;
    if (target.status.ok() != status.ok() ||
        (!version.empty() && version != target.acknowledged_version)) {
      runtime::Log(status.ok() ? runtime::Severity::kInfo : runtime::Severity::kWarning,
                   status.ok() ? "push acknowledged" : "push failed",
                   {{"target", name}, {"version", version}, {"reason", status.message()}});
    }
    target.status = status;
    if (status.ok()) {
      store = (!version.empty() && version != target.acknowledged_version) ||
              foreign != target.foreign_version;
      if (!version.empty()) target.acknowledged_version = version;
      target.foreign_version = foreign;
      target.instance = instance;
      target.pause = milliseconds(0);
      target.due = Clock::now() + 2 * kTick;
    } else {
      target.pause = std::min(kLongestPause, std::max(kTick, 2 * target.pause));
      target.due = Clock::now() + target.pause;
    }
    record.acknowledged_version = target.acknowledged_version;
    record.foreign_version = target.foreign_version;
  }
  if (!store) return;
  const absl::Status stored =
      store_.Transact([&](Records& records) { return records.PutTarget(record); });
  if (!stored.ok()) {
    runtime::Log(runtime::Severity::kWarning, "acknowledgement cannot be stored",
                 {{"target", name}, {"reason", stored.message()}});
  }
}

// One target: is it there, and does it serve what it should?
void Fleet::Bring(const client::Client& client, const SharedSet& set) {
  const client::Client quick = client.WithTimeout(options_.prepare_timeout);
  const auto versions = quick.GetVersions(set->version());
  if (!versions.ok()) return Note(client.target(), versions.status(), "", "", "");
  const client::ServiceVersion& first = versions->front();
  std::string other;
  for (const client::ServiceVersion& version : *versions) {
    if (version.version != set->version()) other = version.version;
  }
  if (other.empty())
    return Note(client.target(), absl::OkStatus(), set->version(), first.instance, "");
  Target known;
  {
    const std::lock_guard lock(mutex_);
    const auto it = targets_.find(client.target());
    if (it == targets_.end()) return;
    known = it->second;
  }
  // The same life of the server that had acknowledged: somebody else has changed its set since.
  const bool changed_by_others =
      other == known.foreign_version ||
      (known.acknowledged_version == set->version() && known.instance == first.instance);
  if (changed_by_others) return Note(client.target(), absl::OkStatus(), "", first.instance, other);
  const auto pushed = quick.PushParameterSet(*set);
  Note(client.target(), pushed.status(), pushed.ok() ? set->version() : "", first.instance, "");
}

void Fleet::Reconcile() {
  const std::unique_lock lock(push_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  auto last = store_.Ask([](Records& records) { return records.LastPush(true); });
  if (!last.ok() || !last->has_value() || (*last)->kind == "baseline") return;
  const auto set = library_.Find((*last)->version);
  if (!set.ok()) return;
  std::vector<std::shared_ptr<const client::Client>> due;
  {
    const std::lock_guard targets_lock(mutex_);
    for (const auto& [name, target] : targets_) {
      if (target.due <= Clock::now()) due.push_back(target.client);
    }
  }
  AskAll<bool>(due, [&](const client::Client& client) {
    Bring(client, *set);
    return true;
  });
  if ((*last)->state == "done") return;
  // A push that a crash left half-way: decided, and now brought to everyone who is there.
  (*last)->state = "done";
  (*last)->ended_us = NowMicroseconds();
  (void)store_.Transact([&](Records& records) { return records.UpdatePush(**last); });
}

void Fleet::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool resolve = resolve_due_ <= Clock::now();
    lock.unlock();
    if (resolve) Resolve();
    Reconcile();
    lock.lock();
    changed_.wait_for(lock, kTick, [this] { return stopping_; });
  }
}

}  // namespace sextant::calibration_service
