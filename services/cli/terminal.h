// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_SERVICES_CLI_TERMINAL_H_
#define SEXTANT_SERVICES_CLI_TERMINAL_H_

#include <istream>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/violations.h"

namespace sextant::cli {

// Where a command reads and writes. Answers go to `out`, everything said to a person to `err`.
// Thread-compatible.
class Terminal {
 public:
  Terminal(std::istream& in, std::ostream& out, std::ostream& err)
      : in_(in), out_(out), err_(err) {}

  void set_quiet(bool quiet) { quiet_ = quiet; }
  void set_color(bool out_color, bool err_color) {
    out_color_ = out_color;
    err_color_ = err_color;
  }

  void set_err_is_terminal(bool is_terminal) { err_is_terminal_ = is_terminal; }
  bool err_is_terminal() const { return err_is_terminal_; }

  void Print(absl::string_view text) { out_.write(text.data(), static_cast<long>(text.size())); }
  // "sextant: warning: ..." unless quiet.
  void Warn(absl::string_view message);
  // "sextant: ..." unless quiet: progress, what was written where.
  void Note(absl::string_view message);
  // "sextant: error: ..." with every violation that `status` carries on its own line, then a hint.
  void Fail(const absl::Status& status, absl::string_view hint);
  // One "sextant: error: " line.
  void Error(absl::string_view message);

  // `text` made to stand out on stdout where it is a terminal with colors.
  std::string Emphasized(absl::string_view text) const;

  // The whole of a file, or of stdin where `path` is "-". NOT_FOUND where there is no such file;
  // INVALID_ARGUMENT for a directory, an unreadable file, or one above `limit_bytes`.
  absl::StatusOr<std::string> Read(const std::string& path, size_t limit_bytes = kReadLimitBytes);

  static constexpr size_t kReadLimitBytes = size_t{256} * 1024 * 1024;

 private:
  std::istream& in_;
  std::ostream& out_;
  std::ostream& err_;
  bool quiet_ = false;
  bool out_color_ = false;
  bool err_color_ = false;
  bool err_is_terminal_ = false;
};

// Adds what `status` says, each line under `name` (a file, a server): for commands that ask several
// and report all that failed.
void AddFailure(absl::string_view name, const absl::Status& status, base::Violations* violations);

}  // namespace sextant::cli

#endif  // SEXTANT_SERVICES_CLI_TERMINAL_H_
