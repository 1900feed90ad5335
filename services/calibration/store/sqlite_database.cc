// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "services/calibration/store/database.h"

namespace sextant::calibration_service {
namespace {

constexpr char kInMemory[] = ":memory:";

class SqliteDatabase final : public Database {
 public:
  explicit SqliteDatabase(std::string path) : path_(std::move(path)) {}

  ~SqliteDatabase() override {
    for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(handle_);
    if (lock_ >= 0) close(lock_);
  }

  absl::Status Open() {
    if (path_ != kInMemory) SEXTANT_RETURN_IF_ERROR(Lock());
    if (sqlite3_open_v2(path_.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        nullptr) != SQLITE_OK) {
      return Error("cannot be opened");
    }
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_busy_timeout(handle_, 5000);
    // FULL: a commit is on disk when it returns, also where the machine loses its power.
    for (const char* pragma :
         {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
      SEXTANT_RETURN_IF_ERROR(Execute(pragma).status());
    }
    // Reading alone would succeed on a disk that cannot be written.
    SEXTANT_RETURN_IF_ERROR(Begin());
    return Commit();
  }

  absl::StatusOr<std::vector<SqlRow>> Execute(const std::string& sql,
                                              absl::Span<const SqlValue> parameters) override {
    SEXTANT_ASSIGN_OR_RETURN(sqlite3_stmt* const statement, Prepared(sql));
    for (size_t i = 0; i < parameters.size(); ++i) {
      Bind(statement, static_cast<int>(i) + 1, parameters[i]);
    }
    std::vector<SqlRow> rows;
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
      SqlRow& row = rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        row.push_back(Column(statement, i));
      }
    }
    absl::Status status = result == SQLITE_DONE ? absl::OkStatus() : Error("cannot be written");
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    if (!status.ok()) return status;
    return rows;
  }

  absl::Status Begin() override { return Execute("BEGIN IMMEDIATE", {}).status(); }
  absl::Status Commit() override { return Execute("COMMIT", {}).status(); }
  void Rollback() override {
    if (!sqlite3_get_autocommit(handle_)) (void)Execute("ROLLBACK", {});
  }
  absl::string_view SerialKey() const override { return "INTEGER PRIMARY KEY AUTOINCREMENT"; }
  bool exclusive() const override { return true; }

 private:
  absl::StatusOr<std::vector<SqlRow>> Execute(const char* sql) { return Execute(sql, {}); }

  // Two processes would run the same jobs.
  absl::Status Lock() {
    const std::string lock_path = absl::StrCat(path_, ".lock");
    lock_ = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_ < 0) {
      return absl::UnavailableError(
          absl::StrCat("store ", path_, " cannot be written: ", std::strerror(errno),
                       "; give a folder on a disk that can be written and has room"));
    }
    if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("store ", path_,
                     " is used by another process; give this one a folder of its own, or a "
                     "PostgreSQL connection string for several"));
  }

  absl::Status Error(absl::string_view what) const {
    const std::string message =
        absl::StrCat("store ", path_, " ", what, ": ", sqlite3_errmsg(handle_));
    switch (sqlite3_errcode(handle_) & 0xff) {
      case SQLITE_FULL:
        return absl::ResourceExhaustedError(
            absl::StrCat(message, "; nothing of this call is stored, make room and repeat it"));
      case SQLITE_CORRUPT:
      case SQLITE_NOTADB:
        return absl::DataLossError(message);
      case SQLITE_READONLY:
      case SQLITE_CANTOPEN:
      case SQLITE_IOERR:
      case SQLITE_PERM:
        return absl::UnavailableError(
            absl::StrCat(message, "; nothing of this call is stored, check the disk"));
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        return absl::UnavailableError(message);
      default:
        return absl::InternalError(message);
    }
  }

  absl::StatusOr<sqlite3_stmt*> Prepared(const std::string& sql) {
    const auto [it, is_new] = statements_.try_emplace(sql, nullptr);
    if (!is_new) return it->second;
    if (sqlite3_prepare_v2(handle_, sql.c_str(), static_cast<int>(sql.size()), &it->second,
                           nullptr) == SQLITE_OK) {
      return it->second;
    }
    statements_.erase(it);
    return Error("cannot be read");
  }

  static void Bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      sqlite3_bind_int64(statement, index, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      sqlite3_bind_double(statement, index, *real);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
    } else {
      sqlite3_bind_null(statement, index);
    }
  }

  static SqlValue Column(sqlite3_stmt* statement, int index) {
    switch (sqlite3_column_type(statement, index)) {
      case SQLITE_INTEGER:
        return int64_t{sqlite3_column_int64(statement, index)};
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement, index);
      case SQLITE_NULL:
        return {};
      default:
        return std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, index)),
                           static_cast<size_t>(sqlite3_column_bytes(statement, index)));
    }
  }

  const std::string path_;
  int lock_ = -1;
  sqlite3* handle_ = nullptr;
  std::map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path) {
  auto database = std::make_unique<SqliteDatabase>(path);
  SEXTANT_RETURN_IF_ERROR(database->Open());
  return database;
}

absl::StatusOr<std::unique_ptr<Database>> OpenDatabase(const std::string& location) {
  if (absl::StartsWith(location, "postgresql://") || absl::StartsWith(location, "postgres://") ||
      absl::StrContains(location, "dbname=")) {
    return OpenPostgres(location);
  }
  return OpenSqlite(location);
}

}  // namespace sextant::calibration_service
