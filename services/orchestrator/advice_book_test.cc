// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/advice_book.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace sextant::orchestrator_service {
namespace {

using Clock = std::chrono::system_clock;
constexpr std::chrono::seconds kLong{60};

absl::StatusOr<types::v1::Advice> OfGpus(int64_t count) {
  types::v1::Advice advice;
  advice.set_gpu_count(count);
  return advice;
}
AdviceBook::Search Never() {
  return []() -> absl::StatusOr<types::v1::Advice> {
    ADD_FAILURE() << "searched again";
    return OfGpus(0);
  };
}

TEST(AdviceBook, AnAnswerIsKnownUnderItsParameterSetOnly) {
  AdviceBook book(10, 1);
  const auto deadline = Clock::now() + kLong;
  EXPECT_EQ((*book.Ask({"", "job", "a"}, deadline, [] { return OfGpus(1); }))->gpu_count(), 1);
  EXPECT_EQ((*book.Ask({"", "job", "a"}, deadline, Never()))->gpu_count(), 1);
  EXPECT_EQ((*book.Ask({"", "job", "b"}, deadline, [] { return OfGpus(2); }))->gpu_count(), 2);
}

TEST(AdviceBook, AnIdKeepsItsAnswerWhateverSetIsInService) {
  AdviceBook book(10, 1);
  const auto deadline = Clock::now() + kLong;
  ASSERT_TRUE(book.Ask({"id", "job", "a"}, deadline, [] { return OfGpus(1); }).ok());
  EXPECT_EQ((*book.Ask({"id", "job", "b"}, deadline, Never()))->gpu_count(), 1);
  const auto other = book.Ask({"id", "another job", "a"}, deadline, Never());
  EXPECT_TRUE(absl::IsInvalidArgument(other.status())) << other.status();
}

TEST(AdviceBook, TheOldestIdIsForgottenFirst) {
  AdviceBook book(2, 1);
  const auto deadline = Clock::now() + kLong;
  for (const char* id : {"1", "2", "3"}) {
    ASSERT_TRUE(book.Ask({id, id, "a"}, deadline, [] { return OfGpus(1); }).ok());
  }
  EXPECT_EQ((*book.Ask({"3", "3", "b"}, deadline, Never()))->gpu_count(), 1);
  EXPECT_EQ((*book.Ask({"1", "1", "b"}, deadline, [] { return OfGpus(7); }))->gpu_count(), 7);
}

TEST(AdviceBook, AFailureIsNotKept) {
  AdviceBook book(10, 1);
  const auto deadline = Clock::now() + kLong;
  const auto fail = []() -> absl::StatusOr<types::v1::Advice> {
    return absl::UnavailableError("down");
  };
  EXPECT_TRUE(absl::IsUnavailable(book.Ask({"id", "job", "a"}, deadline, fail).status()));
  EXPECT_TRUE(book.Ask({"id", "job", "a"}, deadline, [] { return OfGpus(1); }).ok());
}

TEST(AdviceBook, EqualQuestionsAreSearchedOnceAndOthersAreTurnedAway) {
  AdviceBook book(10, 1);
  std::promise<void> started;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::atomic<int> searches = 0;
  std::thread first([&] {
    const auto answer = book.Ask({"", "job", "a"}, Clock::now() + kLong, [&] {
      ++searches;
      started.set_value();
      released.wait();
      return OfGpus(1);
    });
    EXPECT_TRUE(answer.ok());
  });
  started.get_future().wait();
  // Who cannot wait is told so, and who asks something else.
  EXPECT_TRUE(absl::IsDeadlineExceeded(book.Ask({"", "job", "a"}, Clock::now(), Never()).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(
      book.Ask({"", "other", "a"}, Clock::now() + kLong, Never()).status()));
  std::thread second([&] {
    const auto answer = book.Ask({"", "job", "a"}, Clock::now() + kLong, Never());
    EXPECT_TRUE(answer.ok());
  });
  release.set_value();
  first.join();
  second.join();
  EXPECT_EQ(searches, 1);
}

}  // namespace
}  // namespace sextant::orchestrator_service
