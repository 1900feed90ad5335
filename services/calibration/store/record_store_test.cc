// SPDX-License-Identifier: Apache-2.0
#include "services/calibration/store/record_store.h"

#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "gtest/gtest.h"

namespace sextant::calibration_service {
namespace {

using calibration::v1::CalibrationJob;

struct Folder {
  Folder() {
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    std::filesystem::permissions(path, std::filesystem::perms::all);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path = (std::filesystem::temp_directory_path() / "sextant_store_XXXXXX").string();
};

// Debian's PostgreSQL as a process of its own in a folder of its own; it refuses to run as root.
class PostgresServer {
 public:
  PostgresServer() {
    for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error_)) {
      if (std::filesystem::exists(entry.path() / "bin/postgres")) {
        programs_ = (entry.path() / "bin").string();
      }
    }
    if (programs_.empty()) return;
    const std::string data = folder_.path + "/data";
    if (Wait(Start({programs_ + "/initdb", "-D", data, "-A", "trust", "-U", "sextant", "-N"})) !=
        0) {
      return;
    }
    server_ = Start({programs_ + "/postgres", "-D", data, "-k", folder_.path, "-h", "", "-F"});
    for (int round = 0; round < 200 && !ready_; ++round) {
      ready_ = OpenPostgres(connection()).ok();
      if (!ready_) usleep(50'000);
    }
  }
  ~PostgresServer() {
    if (server_ <= 0) return;
    kill(server_, SIGQUIT);
    Wait(server_);
  }
  bool ready() const { return ready_; }
  std::string connection() const {
    return absl::StrCat("host=", folder_.path, " user=sextant dbname=postgres");
  }

 private:
  static pid_t Start(const std::vector<std::string>& arguments) {
    std::vector<char*> argv;
    for (const std::string& item : arguments) argv.push_back(const_cast<char*>(item.c_str()));
    argv.push_back(nullptr);
    const passwd* user = getpwnam("postgres");
    const pid_t child = fork();
    if (child != 0) return child;
    if (geteuid() == 0 &&
        (user == nullptr || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) {
      _exit(126);
    }
    if (freopen("/dev/null", "w", stdout) == nullptr ||
        freopen("/dev/null", "w", stderr) == nullptr)
      _exit(125);
    execv(argv[0], argv.data());
    _exit(127);
  }
  static int Wait(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  const Folder folder_;
  std::error_code error_;
  std::string programs_;
  pid_t server_ = -1;
  bool ready_ = false;
};

PostgresServer& Postgres() {
  static PostgresServer server;
  return server;
}

MeasurementRecord Row(const std::string& id, const std::string& time_us = "12.5") {
  return {.kind = "collectives",
          .id = id,
          .accelerator = "h100-sxm5-80gb",
          .columns = {{"id", id}, {"time_us", time_us}}};
}

absl::StatusOr<Taken> Add(RecordStore& store, MeasurementRecord row) {
  return store.Ask([&](Records& records) { return records.AddMeasurement(&row); });
}

int64_t Count(RecordStore& store) {
  return store.Ask([](Records& records) { return records.MeasurementCountAfter(0); }).value_or(-1);
}

class Store : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("postgresql")) {
      if (!Postgres().ready()) GTEST_SKIP() << "no PostgreSQL server could be started here";
      location_ = Postgres().connection();
      auto database = OpenPostgres(location_);
      ASSERT_TRUE(database.ok()) << database.status();
      ASSERT_TRUE((*database)->Execute("DROP SCHEMA public CASCADE").ok());
      ASSERT_TRUE((*database)->Execute("CREATE SCHEMA public").ok());
    } else {
      location_ = folder_.path + "/store.sqlite";
    }
    Reopen();
  }
  void Reopen() {
    store_.reset();
    auto store = RecordStore::Open(location_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  const Folder folder_;
  std::string location_;
  std::unique_ptr<RecordStore> store_;
};

INSTANTIATE_TEST_SUITE_P(, Store, testing::Values("sqlite", "postgresql"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(Store, AMeasurementIsTakenOnceAndItsIdNeverChangesItsContent) {
  EXPECT_EQ(*Add(*store_, Row("a")), Taken::kNew);
  EXPECT_EQ(*Add(*store_, Row("a")), Taken::kKnown);
  EXPECT_EQ(*Add(*store_, Row("a", "13")), Taken::kConflict);
  MeasurementRecord other = Row("a");
  other.kind = "operators";
  EXPECT_EQ(*Add(*store_, other), Taken::kNew) << "ids are those of a kind";
  Reopen();
  EXPECT_EQ(Count(*store_), 2);
  const auto rows = store_->Ask([](Records& r) { return r.MeasurementsAfter(0, 10); });
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->front().columns, Row("a").columns);
  EXPECT_LT((*rows)[0].sequence, (*rows)[1].sequence);
}

TEST_P(Store, NothingOfATransactionThatFailsIsStored) {
  const absl::Status status = store_->Transact([](Records& records) -> absl::Status {
    MeasurementRecord row = Row("a");
    SEXTANT_RETURN_IF_ERROR(records.AddMeasurement(&row).status());
    return absl::CancelledError("changed my mind");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Count(*store_), 0);
}

TEST_P(Store, EveryByteAndBitComesBack) {
  const std::string text = "quote \" ' \\ new\nline \xC3\xA9 \xE6\x97\xA5 ; DROP TABLE jobs";
  MeasurementRecord row = Row(text, text);
  ASSERT_EQ(*Add(*store_, row), Taken::kNew);
  const auto rows = store_->Ask([](Records& r) { return r.MeasurementsAfter(0, 10); });
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->front().id, text);
  EXPECT_EQ(rows->front().columns.at("time_us"), text);
  const double third = -100.0 / 3;
  ASSERT_TRUE(store_
                  ->Transact([&](Records& r) {
                    return r.AddJudgement(
                        {.measurement = 1, .version = "v", .error_percent = third});
                  })
                  .ok());
  const auto judged = store_->Ask([](Records& r) { return r.Judgements("v", 5); });
  ASSERT_TRUE(judged.ok()) << judged.status();
  ASSERT_EQ(judged->size(), 1u);
  EXPECT_EQ(judged->front().error_percent, third);
  EXPECT_FALSE(judged->front().inside_interval.has_value());
}

TEST_P(Store, AJobRunsOnceAtATimeAndAgainWhereItsLeaseHasRunOut) {
  JobRecord first, second;
  first.job.set_state(CalibrationJob::STATE_QUEUED);
  first.request.measurements = {3, 5};
  first.request.superseded.push_back({"h100", "collectives", 17});
  second.job.set_state(CalibrationJob::STATE_QUEUED);
  ASSERT_TRUE(store_->Transact([&](Records& r) { return r.AddJob(&first, 1'000'000); }).ok());
  ASSERT_TRUE(store_->Transact([&](Records& r) { return r.AddJob(&second, 2'000'000); }).ok());
  const auto claim = [&](const std::string& owner, int64_t now, int64_t until) {
    return store_->Ask([&](Records& r) { return r.ClaimJob(owner, now, until); });
  };
  auto claimed = claim("one", 10, 20);
  ASSERT_TRUE(claimed.ok() && claimed->has_value()) << claimed.status();
  EXPECT_EQ((*claimed)->job.name(), first.job.name());
  EXPECT_EQ((*claimed)->request.measurements, first.request.measurements);
  ASSERT_EQ((*claimed)->request.superseded.size(), 1u);
  EXPECT_EQ((*claimed)->request.superseded[0].before, 17);
  EXPECT_FALSE(claim("two", 15, 25)->has_value()) << "jobs run one after another";
  claimed = claim("two", 30, 40);
  ASSERT_TRUE(claimed->has_value());
  EXPECT_EQ((*claimed)->sequence, first.sequence) << "its owner is gone";
  const auto renew = [&](const std::string& owner) {
    return store_->Transact([&](Records& r) { return r.RenewLease(first.sequence, owner, 50); });
  };
  EXPECT_TRUE(renew("two").ok());
  EXPECT_EQ(renew("one").code(), absl::StatusCode::kAborted);
  first.job.set_state(CalibrationJob::STATE_SUCCEEDED);
  ASSERT_TRUE(store_->Transact([&](Records& r) { return r.UpdateJob(first); }).ok());
  EXPECT_EQ(claim("one", 45, 55)->value().sequence, second.sequence);
}

TEST_P(Store, ThePushInServiceIsTheLastThatWasDecided) {
  PushRecord done{.version = "a", .kind = "push", .state = "done"};
  PushRecord aborted{.version = "b", .kind = "push", .state = "aborted", .error = "refused"};
  PushRecord open{.version = "c", .previous = 1, .kind = "push", .state = "preparing"};
  ASSERT_TRUE(store_
                  ->Transact([&](Records& r) -> absl::Status {
                    SEXTANT_RETURN_IF_ERROR(r.AddPush(&done));
                    SEXTANT_RETURN_IF_ERROR(r.AddPush(&aborted));
                    return r.AddPush(&open);
                  })
                  .ok());
  const auto last = [&](bool decided) {
    return store_->Ask([&](Records& r) { return r.LastPush(decided); });
  };
  EXPECT_EQ(last(true)->value().version, "a");
  EXPECT_EQ(last(false)->value().version, "c");
  open.state = "committing";
  ASSERT_TRUE(store_->Transact([&](Records& r) { return r.UpdatePush(open); }).ok());
  EXPECT_EQ(last(true)->value().version, "c");
  EXPECT_FALSE(last(false)->has_value());
}

TEST_P(Store, ANewerSchemaIsRefusedAndLeftAlone) {
  store_.reset();
  {
    auto database = OpenDatabase(location_);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Execute("INSERT INTO schema_version (version) VALUES (99)").ok());
  }
  const auto opened = RecordStore::Open(location_);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition) << opened.status();
}

TEST_P(Store, KillingTheWriterLosesNothingThatWasAcknowledged) {
  store_.reset();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = RecordStore::Open(location_);
    for (int i = 0; store.ok(); ++i) {
      if (!Add(**store, Row(absl::StrCat("row-", i))).ok()) break;
      if (write(ends[1], "a", 1) != 1) break;
    }
    _exit(1);
  }
  close(ends[1]);
  int64_t acknowledged = 0;
  char buffer[256];
  while (acknowledged < 100) {
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    ASSERT_GT(count, 0);
    acknowledged += count;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) acknowledged += count;
  close(ends[0]);
  Reopen();
  EXPECT_GE(Count(*store_), acknowledged);
  EXPECT_LE(Count(*store_), acknowledged + 1) << "at most the one in flight";
  EXPECT_EQ(*Add(*store_, Row("after")), Taken::kNew);
}

TEST(SqliteStore, IsRefusedToASecondProcess) {
  const Folder folder;
  const auto first = RecordStore::Open(folder.path + "/store.sqlite");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(RecordStore::Open(folder.path + "/store.sqlite").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SqliteStore, ADiskThatCannotBeWrittenIsSaidAtTheStart) {
  // procfs takes no new files, not even from root.
  const auto store = RecordStore::Open("/proc/store.sqlite");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kUnavailable) << store.status();
  EXPECT_NE(store.status().message().find("/proc/store.sqlite"), absl::string_view::npos);
}

// The limit of a file's size stands for a full disk: writing fails in the middle of a page.
TEST(SqliteStore, AFullDiskIsSaidAndHarmsNothing) {
  const Folder folder;
  auto store = RecordStore::Open(folder.path + "/store.sqlite");
  ASSERT_TRUE(store.ok()) << store.status();
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 300'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  int64_t taken = 0;
  absl::Status status;
  while (status.ok() && taken < 100'000) {
    status = Add(**store, Row(absl::StrCat("row-", taken), std::string(1000, '1'))).status();
    if (status.ok()) ++taken;
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("nothing of this call is stored"), absl::string_view::npos)
      << status;
  EXPECT_GT(taken, 0);
  EXPECT_EQ(Count(**store), taken);
  EXPECT_EQ(*Add(**store, Row("there is room again")), Taken::kNew);
  store->reset();
  store = RecordStore::Open(folder.path + "/store.sqlite");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(Count(**store), taken + 1);
}

}  // namespace
}  // namespace sextant::calibration_service
