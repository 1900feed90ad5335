// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_PARAMETER_STORE_WATCHERS_H_
#define SEXTANT_SERVICES_PARAMETER_STORE_WATCHERS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace sextant::parameter_store {

// How long a watcher may rely on the version it was told, counted from the sending of its message.
inline constexpr std::chrono::milliseconds kWatchLease{1000};
// How often it sends one.
inline constexpr std::chrono::milliseconds kWatchRenewal{300};

// The callers of WatchParameters. A change of the set in service is over when every watcher has
// said that it knows, or its lease has run out: no caller then answers with the old set from
// memory. That costs a round trip, and at most kWatchLease where a watcher is gone. Thread-safe.
class Watchers {
 public:
  using Clock = std::chrono::steady_clock;

  // What a watcher is to be sent.
  struct Message {
    std::string version;
    int64_t sequence = 0;
  };

  int64_t Join();
  void Leave(int64_t watcher);
  // A message of the watcher has come: it answers with `version`, and holds a lease from now on.
  void Renew(int64_t watcher, absl::string_view version, int64_t sequence);
  // Waits for something to send: an answer to a message, or a change. `version` is called for the
  // version in service. Nothing where the watcher has left or Stop was called.
  template <typename Version>
  std::optional<Message> Next(int64_t watcher, const Version& version) {
    std::unique_lock lock(mutex_);
    while (true) {
      const auto it = watchers_.find(watcher);
      if (stopped_ || it == watchers_.end()) return std::nullopt;
      Watcher& state = it->second;
      if (state.sequence > 0) {  // nothing is sent before its first message
        Message message{version(), state.sequence};
        if (state.sequence > state.answered || message.version != state.sent) {
          state.answered = state.sequence;
          state.sent = message.version;
          return message;
        }
      }
      changed_.wait(lock);
    }
  }

  // Tells all watchers of a change to `version`; returns when none relies on another one.
  void AwaitChange(absl::string_view version);
  // Ends all watches, now and later: the server shuts down.
  void Stop();

 private:
  struct Watcher {
    Clock::time_point lease_end{};
    std::string known;     // version that it said it answers with
    int64_t sequence = 0;  // of its last message
    int64_t answered = 0;  // of the last answer
    std::string sent;      // version last sent
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  int64_t last_ = 0;
  Clock::time_point departed_lease_end_{};
  std::map<int64_t, Watcher> watchers_;
};

}  // namespace sextant::parameter_store

#endif  // SEXTANT_SERVICES_PARAMETER_STORE_WATCHERS_H_
