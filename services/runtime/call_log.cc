// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/call_log.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "services/runtime/grpc_status.h"
#include "services/runtime/log.h"
#include "services/runtime/request_id.h"

namespace sextant::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxLinesPerSecond = 100;

// Thread-safe.
class LineLimit {
 public:
  // Whether one more line may be written now; `*left_out`: how many were not since the last one.
  bool Allow(int64_t* left_out) {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      lines_ = 0;
    }
    if (lines_ >= kMaxLinesPerSecond) {
      ++left_out_;
      return false;
    }
    ++lines_;
    *left_out = std::exchange(left_out_, 0);
    return true;
  }

 private:
  std::mutex mutex_;
  Clock::time_point second_;
  int lines_ = 0;
  int64_t left_out_ = 0;
};

bool IsOurDefect(grpc::StatusCode code) {
  return code == grpc::StatusCode::INTERNAL || code == grpc::StatusCode::UNKNOWN ||
         code == grpc::StatusCode::DATA_LOSS;
}

class CallLog : public grpc::experimental::Interceptor {
 public:
  CallLog(LoggedCalls logged, LineLimit& limit, grpc::experimental::ServerRpcInfo& info)
      : logged_(logged),
        limit_(limit),
        method_(info.method() == nullptr ? "" : info.method()),
        context_(info.server_context()),
        start_(Clock::now()) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (logged_ == LoggedCalls::kAll || !status.ok()) Write(status, *methods);
    }
    methods->Proceed();
  }

 private:
  void Write(const grpc::Status& status, grpc::experimental::InterceptorBatchMethods& methods) {
    int64_t left_out = 0;
    if (!limit_.Allow(&left_out)) return;
    if (left_out > 0) {
      Log(Severity::kWarning, "calls_not_logged", {{"count", absl::StrCat(left_out)}});
    }
    std::string request_id;
    if (const auto* trailers = methods.GetSendTrailingMetadata(); trailers != nullptr) {
      const auto found = trailers->find(kRequestIdKey);
      if (found != trailers->end()) request_id = found->second;
    }
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    const bool defect = IsOurDefect(status.error_code());
    absl::string_view method = method_;
    if (!method.empty() && method.front() == '/') method.remove_prefix(1);
    Log(defect ? Severity::kError : Severity::kInfo, "call",
        {{"method", method},
         {"status", StatusName(status.error_code())},
         {"seconds", absl::StrFormat("%.6f", elapsed.count())},
         {"request_id", request_id},
         {"peer", context_->peer()},
         {"message", defect ? status.error_message() : ""}});
  }

  const LoggedCalls logged_;
  LineLimit& limit_;
  const std::string method_;
  grpc::ServerContextBase* const context_;
  const Clock::time_point start_;
};

class CallLogFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallLogFactory(LoggedCalls logged) : logged_(logged) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new CallLog(logged_, limit_, *info);
  }

 private:
  const LoggedCalls logged_;
  LineLimit limit_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallLog(
    LoggedCalls logged) {
  return std::make_unique<CallLogFactory>(logged);
}

}  // namespace sextant::runtime
