// SPDX-License-Identifier: Apache-2.0
#include "services/parameter_store/watchers.h"

#include <algorithm>

namespace sextant::parameter_store {

int64_t Watchers::Join() {
  const std::lock_guard lock(mutex_);
  watchers_[++last_];
  return last_;
}

void Watchers::Leave(int64_t watcher) {
  const std::lock_guard lock(mutex_);
  const auto it = watchers_.find(watcher);
  if (it == watchers_.end()) return;
  // A lost connection is noticed here first: its caller may rely on its lease a little longer.
  departed_lease_end_ = std::max(departed_lease_end_, it->second.lease_end);
  watchers_.erase(it);
  changed_.notify_all();
}

void Watchers::Renew(int64_t watcher, absl::string_view version, int64_t sequence) {
  const std::lock_guard lock(mutex_);
  const auto it = watchers_.find(watcher);
  if (it == watchers_.end()) return;
  it->second.lease_end = Clock::now() + kWatchLease;
  it->second.known = std::string(version);
  it->second.sequence = std::max(it->second.sequence, sequence);
  changed_.notify_all();
}

void Watchers::AwaitChange(absl::string_view version) {
  std::unique_lock lock(mutex_);
  changed_.notify_all();
  while (!stopped_) {
    const Clock::time_point now = Clock::now();
    Clock::time_point latest = departed_lease_end_;
    for (const auto& [id, watcher] : watchers_) {
      if (watcher.known != version) latest = std::max(latest, watcher.lease_end);
    }
    if (latest <= now) return;
    changed_.wait_until(lock, latest);
  }
}

void Watchers::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace sextant::parameter_store
