// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/parameter_watch.h"

#include <utility>

#include "services/parameter_store/watchers.h"

namespace sextant::orchestrator_service {

using operator_cost::v1::WatchParametersRequest;
using operator_cost::v1::WatchParametersResponse;
using parameter_store::kWatchLease;
using parameter_store::kWatchRenewal;

ParameterWatch::ParameterWatch(const std::shared_ptr<grpc::Channel>& operator_cost,
                               std::function<void(const std::string&)> on_change)
    : stub_(operator_cost::v1::OperatorCostService::NewStub(operator_cost)),
      on_change_(std::move(on_change)),
      thread_([this] { Run(); }) {}

ParameterWatch::~ParameterWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  changed_.notify_all();
  thread_.join();
}

std::string ParameterWatch::Version() const {
  const std::lock_guard lock(mutex_);
  return Clock::now() < lease_end_ ? version_ : std::string();
}

void ParameterWatch::Run() {
  // A service without the call, or away, is asked again later; meanwhile Version() is empty.
  constexpr std::chrono::milliseconds kPause{500};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    context_ = std::make_shared<grpc::ClientContext>();
    broken_ = false;
    lock.unlock();
    Watch();
    lock.lock();
    context_ = nullptr;
    lease_end_ = {};
    version_.clear();
    sent_.clear();
    changed_.wait_for(lock, kPause, [this] { return stopping_; });
  }
}

void ParameterWatch::Watch() {
  const std::unique_ptr<Stream> stream = stub_->WatchParameters(context_.get());
  std::thread reader([&] { ReadAll(*stream); });
  std::unique_lock lock(mutex_);
  while (!stopping_ && !broken_) {
    WatchParametersRequest request;
    request.set_version(version_);
    request.set_sequence(++sequence_);
    sent_[sequence_] = Clock::now();
    acknowledge_ = false;
    lock.unlock();
    const bool written = stream->Write(request);
    lock.lock();
    if (!written) break;
    changed_.wait_for(lock, kWatchRenewal, [this] { return stopping_ || broken_ || acknowledge_; });
  }
  lock.unlock();
  context_->TryCancel();
  reader.join();
  (void)stream->Finish();
}

void ParameterWatch::ReadAll(Stream& stream) {
  WatchParametersResponse response;
  while (stream.Read(&response)) {
    bool is_new = false;
    {
      const std::lock_guard lock(mutex_);
      is_new = response.version() != version_;
      version_ = response.version();
      acknowledge_ = acknowledge_ || is_new;
      // A lease runs from the sending of what this answers; an announced change answers nothing.
      if (const auto sent = sent_.find(response.sequence()); sent != sent_.end()) {
        lease_end_ = sent->second + kWatchLease;
        sent_.erase(sent_.begin(), std::next(sent));
      }
    }
    // Before the acknowledgement is sent: who hears of the push may ask at once.
    if (is_new) on_change_(response.version());
    if (is_new) changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  broken_ = true;
  lease_end_ = {};
  changed_.notify_all();
}

}  // namespace sextant::orchestrator_service
