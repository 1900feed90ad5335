// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/advice_book.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::orchestrator_service {

AdviceBook::Answer AdviceBook::Ask(const Question& question,
                                   std::chrono::system_clock::time_point deadline,
                                   const Search& search) {
  const std::string key = absl::StrCat(question.parameter_set, "\n", question.content);
  std::promise<Answer> promise;
  std::shared_future<Answer> elsewhere;
  {
    const std::lock_guard lock(mutex_);
    if (const auto named = named_.find(question.request_id);
        !question.request_id.empty() && named != named_.end()) {
      if (named->second.content == question.content) return named->second.advice;
      base::Violations violations;
      violations.Add("request_id", absl::StrCat("is \"", question.request_id,
                                                "\", which named another question before; give "
                                                "each question its own id"));
      return violations.ToStatus();
    }
    if (const auto known = known_.find(key); known != known_.end()) {
      Name(question, known->second);
      return known->second;
    }
    if (const auto found = searching_.find(key); found != searching_.end()) {
      elsewhere = found->second;
    } else if (searching_.size() >= static_cast<size_t>(most_searches_)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          most_searches_, " searches for advice are under way; ask again a little later"));
    } else {
      searching_[key] = promise.get_future().share();
    }
  }
  if (elsewhere.valid()) {
    if (elsewhere.wait_until(deadline) == std::future_status::timeout) {
      return absl::DeadlineExceededError("the deadline passed before the answer was ready");
    }
    Answer answer = elsewhere.get();
    if (answer.ok()) {
      const std::lock_guard lock(mutex_);
      Name(question, *answer);
    }
    return answer;
  }
  Answer answer = absl::InternalError("the search did not end");
  try {
    absl::StatusOr<types::v1::Advice> advice = search();
    answer = advice.ok() ? Answer(std::make_shared<const types::v1::Advice>(*std::move(advice)))
                         : Answer(advice.status());
  } catch (const std::exception& error) {
    answer = absl::InternalError(error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    if (answer.ok()) Keep(question, key, *answer);
    searching_.erase(key);
  }
  promise.set_value(answer);
  return answer;
}

void AdviceBook::Keep(const Question& question, const std::string& key,
                      const std::shared_ptr<const types::v1::Advice>& advice) {
  if (known_.size() >= capacity_) known_.clear();
  known_[key] = advice;
  Name(question, advice);
}

void AdviceBook::Name(const Question& question,
                      const std::shared_ptr<const types::v1::Advice>& advice) {
  if (question.request_id.empty()) return;
  if (!named_.emplace(question.request_id, Named{question.content, advice}).second) return;
  named_order_.push_back(question.request_id);
  if (named_order_.size() <= capacity_) return;
  named_.erase(named_order_.front());
  named_order_.pop_front();
}

}  // namespace sextant::orchestrator_service
