// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <postgresql/libpq-fe.h>

#include <charconv>
#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "services/calibration/store/database.h"

namespace sextant::calibration_service {
namespace {

// Loaded on first use: whoever keeps to SQLite needs no libpq and does not load its dependencies.
struct Libpq {
  decltype(&PQconnectdb) connect;
  decltype(&PQreset) reset;
  decltype(&PQfinish) finish;
  decltype(&PQstatus) status;
  decltype(&PQerrorMessage) error_message;
  decltype(&PQexecParams) execute;
  decltype(&PQresultStatus) result_status;
  decltype(&PQresultErrorField) error_field;
  decltype(&PQntuples) row_count;
  decltype(&PQnfields) column_count;
  decltype(&PQftype) type;
  decltype(&PQgetisnull) is_null;
  decltype(&PQgetvalue) value;
  decltype(&PQgetlength) length;
  decltype(&PQclear) clear;
};

template <typename Function>
bool Load(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

absl::StatusOr<const Libpq*> LoadLibpq() {
  static const auto* loaded = [] {
    auto* result = new absl::StatusOr<Libpq>(
        absl::UnavailableError("PostgreSQL needs libpq.so.5 (Debian: libpq5), which is missing"));
    void* library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    Libpq pq{};
    if (library != nullptr && Load(library, "PQconnectdb", &pq.connect) &&
        Load(library, "PQreset", &pq.reset) && Load(library, "PQfinish", &pq.finish) &&
        Load(library, "PQstatus", &pq.status) &&
        Load(library, "PQerrorMessage", &pq.error_message) &&
        Load(library, "PQexecParams", &pq.execute) &&
        Load(library, "PQresultStatus", &pq.result_status) &&
        Load(library, "PQresultErrorField", &pq.error_field) &&
        Load(library, "PQntuples", &pq.row_count) && Load(library, "PQnfields", &pq.column_count) &&
        Load(library, "PQftype", &pq.type) && Load(library, "PQgetisnull", &pq.is_null) &&
        Load(library, "PQgetvalue", &pq.value) && Load(library, "PQgetlength", &pq.length) &&
        Load(library, "PQclear", &pq.clear)) {
      *result = pq;
    }
    return result;
  }();
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

// Types by their numbers in pg_type.dat.
constexpr Oid kBoolean = 16, kBigInt = 20, kInteger = 23, kDouble = 701;

// Any number that all writers of the suite agree on: one writes at a time.
constexpr char kLock[] = "SELECT pg_advisory_xact_lock(7354938271)";

std::string Text(const SqlValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* real = std::get_if<double>(&value)) {
    char text[32];  // the shortest decimal that reads back as the same number
    return std::string(text, std::to_chars(text, text + sizeof text, *real).ptr);
  }
  return std::get<std::string>(value);
}

class PostgresDatabase final : public Database {
 public:
  explicit PostgresDatabase(const Libpq& pq) : pq_(pq) {}
  ~PostgresDatabase() override {
    if (connection_ != nullptr) pq_.finish(connection_);
  }

  absl::Status Open(const std::string& connection) {
    connection_ = pq_.connect(connection.c_str());
    if (connection_ == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
    SEXTANT_RETURN_IF_ERROR(Connected());
    return Execute("SET client_min_messages = warning", {}).status();
  }

  absl::StatusOr<std::vector<SqlRow>> Execute(const std::string& sql,
                                              absl::Span<const SqlValue> parameters) override {
    std::vector<std::string> texts(parameters.size());
    std::vector<const char*> values(parameters.size(), nullptr);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (std::holds_alternative<std::monostate>(parameters[i])) continue;
      texts[i] = Text(parameters[i]);
      values[i] = texts[i].c_str();
    }
    PGresult* const result =
        pq_.execute(connection_, sql.c_str(), static_cast<int>(parameters.size()), nullptr,
                    values.data(), nullptr, nullptr, 0);
    absl::StatusOr<std::vector<SqlRow>> rows = Rows(result);
    pq_.clear(result);
    return rows;
  }

  absl::Status Begin() override {
    SEXTANT_RETURN_IF_ERROR(Connected());
    SEXTANT_RETURN_IF_ERROR(Execute("BEGIN", {}).status());
    return Execute(kLock, {}).status();
  }
  absl::Status Commit() override { return Execute("COMMIT", {}).status(); }
  void Rollback() override { (void)Execute("ROLLBACK", {}); }
  absl::string_view SerialKey() const override { return "BIGSERIAL PRIMARY KEY"; }
  bool exclusive() const override { return false; }

 private:
  // A connection that was lost is made again at the next transaction.
  absl::Status Connected() {
    if (pq_.status(connection_) != CONNECTION_OK) pq_.reset(connection_);
    if (pq_.status(connection_) == CONNECTION_OK) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("PostgreSQL cannot be reached: ", Message()));
  }

  absl::string_view Message() const {
    return absl::StripTrailingAsciiWhitespace(pq_.error_message(connection_));
  }

  absl::StatusOr<std::vector<SqlRow>> Rows(PGresult* result) const {
    const ExecStatusType status = pq_.result_status(result);
    if (status == PGRES_COMMAND_OK) return std::vector<SqlRow>();
    if (status != PGRES_TUPLES_OK) return Error(result);
    std::vector<SqlRow> rows;
    for (int row = 0; row < pq_.row_count(result); ++row) {
      SqlRow& values = rows.emplace_back();
      for (int column = 0; column < pq_.column_count(result); ++column) {
        values.push_back(Value(result, row, column));
      }
    }
    return rows;
  }

  absl::Status Error(PGresult* result) const {
    const char* state = result == nullptr ? nullptr : pq_.error_field(result, PG_DIAG_SQLSTATE);
    const std::string message = absl::StrCat("PostgreSQL: ", Message());
    const absl::string_view code = state == nullptr ? "08000" : state;
    // Classes of appendix A of its manual.
    if (code == "53100") return absl::ResourceExhaustedError(message);
    const absl::string_view kind = code.substr(0, 2);
    if (kind == "08" || kind == "53" || kind == "57" || kind == "25" || kind == "40") {
      return absl::UnavailableError(message);
    }
    return absl::InternalError(message);
  }

  SqlValue Value(PGresult* result, int row, int column) const {
    if (pq_.is_null(result, row, column)) return {};
    const absl::string_view text(pq_.value(result, row, column),
                                 static_cast<size_t>(pq_.length(result, row, column)));
    int64_t integer = 0;
    double real = 0;
    switch (pq_.type(result, column)) {
      case kBoolean:
        return int64_t{text == "t"};
      case kBigInt:
      case kInteger:
        if (absl::SimpleAtoi(text, &integer)) return integer;
        break;
      case kDouble:
        if (absl::SimpleAtod(text, &real)) return real;
        break;
      default:
        break;
    }
    return std::string(text);
  }

  const Libpq& pq_;
  PGconn* connection_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenPostgres(const std::string& connection) {
  SEXTANT_ASSIGN_OR_RETURN(const Libpq* const pq, LoadLibpq());
  auto database = std::make_unique<PostgresDatabase>(*pq);
  SEXTANT_RETURN_IF_ERROR(database->Open(connection));
  return database;
}

}  // namespace sextant::calibration_service
