// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CALIBRATION_STORE_DATABASE_H_
#define SEXTANT_SERVICES_CALIBRATION_STORE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sextant::calibration_service {

// NULL, BIGINT, DOUBLE PRECISION or TEXT.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;
using SqlRow = std::vector<SqlValue>;

// One connection to a database, in the SQL that SQLite and PostgreSQL share: parameters are $1, $2,
// ... in order of first appearance; numbers come back bit for bit. Thread-compatible.
//
// Errors: RESOURCE_EXHAUSTED for a full disk, UNAVAILABLE where the database cannot be reached or
// written, DATA_LOSS for a damaged file, INTERNAL for wrong SQL. Nothing of a transaction that
// failed is stored.
class Database {
 public:
  virtual ~Database() = default;

  virtual absl::StatusOr<std::vector<SqlRow>> Execute(
      const std::string& sql, absl::Span<const SqlValue> parameters = {}) = 0;

  // One writer at a time, over all connections.
  virtual absl::Status Begin() = 0;
  // What is committed is on disk, whatever happens to the process or the machine.
  virtual absl::Status Commit() = 0;
  virtual void Rollback() = 0;

  // The type of a column that numbers its rows by itself.
  virtual absl::string_view SerialKey() const = 0;
  // Whether this is the only process that uses the database.
  virtual bool exclusive() const = 0;
};

// A file in WAL mode, made where it is missing and locked to this process; ":memory:" is forgotten.
// FAILED_PRECONDITION where another process has it.
absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path);

// By a connection string ("postgresql://user@host/database" or "host=... dbname=..."). libpq is
// loaded now: UNAVAILABLE where it is not installed or the server cannot be reached.
absl::StatusOr<std::unique_ptr<Database>> OpenPostgres(const std::string& connection);

// PostgreSQL where `location` is a connection string, else SQLite.
absl::StatusOr<std::unique_ptr<Database>> OpenDatabase(const std::string& location);

}  // namespace sextant::calibration_service

#endif  // SEXTANT_SERVICES_CALIBRATION_STORE_DATABASE_H_
