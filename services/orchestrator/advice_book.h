// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_ORCHESTRATOR_ADVICE_BOOK_H_
#define SEXTANT_SERVICES_ORCHESTRATOR_ADVICE_BOOK_H_

#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "sextant/types/v1/advice.pb.h"

namespace sextant::orchestrator_service {

// Advice that was given, by question and parameter set, and by request id. An answer is a pure
// function of question and set, so that what is known is never wrong. Thread-safe.
class AdviceBook {
 public:
  using Answer = absl::StatusOr<std::shared_ptr<const types::v1::Advice>>;
  using Search = std::function<absl::StatusOr<types::v1::Advice>()>;
  struct Question {
    std::string request_id;     // empty: none
    std::string content;        // equal exactly where the questions are
    std::string parameter_set;  // version that a new answer is given under
  };

  // Keeps about `capacity` answers and as many ids; runs at most `most_searches` at once.
  AdviceBook(size_t capacity, int most_searches)
      : capacity_(capacity), most_searches_(most_searches) {}

  // What is known, or what `search` finds, on this thread. An equal question that is being searched
  // is waited for, until `deadline`.
  // INVALID_ARGUMENT for an id that named another question, RESOURCE_EXHAUSTED where too many
  // searches run, DEADLINE_EXCEEDED; statuses of `search`, which are not kept.
  Answer Ask(const Question& question, std::chrono::system_clock::time_point deadline,
             const Search& search);

 private:
  struct Named {
    std::string content;
    std::shared_ptr<const types::v1::Advice> advice;
  };

  void Keep(const Question& question, const std::string& key,
            const std::shared_ptr<const types::v1::Advice>& advice);
  void Name(const Question& question, const std::shared_ptr<const types::v1::Advice>& advice);

  const size_t capacity_;
  const int most_searches_;
  std::mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const types::v1::Advice>> known_;
  absl::flat_hash_map<std::string, Named> named_;
  std::deque<std::string> named_order_;  // oldest first
  absl::flat_hash_map<std::string, std::shared_future<Answer>> searching_;
};

}  // namespace sextant::orchestrator_service

#endif  // SEXTANT_SERVICES_ORCHESTRATOR_ADVICE_BOOK_H_
