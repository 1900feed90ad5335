// SPDX-License-Identifier: Apache-2.0
#include "services/cli/terminal.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/violations.h"

namespace sextant::cli {
namespace {

constexpr absl::string_view kBold = "\033[1m";
constexpr absl::string_view kRed = "\033[1;31m";
constexpr absl::string_view kReset = "\033[0m";

absl::StatusOr<std::string> ReadStream(std::istream& in, absl::string_view name,
                                       size_t limit_bytes) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (in.read(buffer.data(), static_cast<long>(buffer.size())) || in.gcount() > 0) {
    text.append(buffer.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > limit_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": is larger than ", limit_bytes, " bytes; split it"));
    }
  }
  if (in.bad()) return absl::InvalidArgumentError(absl::StrCat(name, ": cannot be read"));
  return text;
}

}  // namespace

void Terminal::Warn(absl::string_view message) {
  if (!quiet_) err_ << "sextant: warning: " << message << "\n";
}

void Terminal::Note(absl::string_view message) {
  if (!quiet_) err_ << "sextant: " << message << "\n";
}

void Terminal::Error(absl::string_view message) {
  err_ << "sextant: " << (err_color_ ? kRed : "") << "error:" << (err_color_ ? kReset : "") << " "
       << message << "\n";
}

void Terminal::Fail(const absl::Status& status, absl::string_view hint) {
  const std::vector<base::Violation> violations = base::ViolationsOf(status);
  if (violations.empty()) {
    Error(status.message());
  } else {
    Error(violations.size() == 1 ? std::string("the input breaks a rule")
                                 : absl::StrCat("the input breaks ", violations.size(), " rules"));
    for (const base::Violation& violation : violations) {
      err_ << "  " << violation.field << (violation.field.empty() ? "" : ": ")
           << violation.description << "\n";
    }
  }
  if (!hint.empty()) err_ << "hint: " << hint << "\n";
}

std::string Terminal::Emphasized(absl::string_view text) const {
  return out_color_ ? absl::StrCat(kBold, text, kReset) : std::string(text);
}

absl::StatusOr<std::string> Terminal::Read(const std::string& path, size_t limit_bytes) {
  if (path == "-") return ReadStream(in_, "stdin", limit_bytes);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    }
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory; name a file in it"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::InvalidArgumentError(absl::StrCat(path, ": ", std::strerror(errno)));
  return ReadStream(in, path, limit_bytes);
}

void AddFailure(absl::string_view name, const absl::Status& status, base::Violations* violations) {
  const std::vector<base::Violation> carried = base::ViolationsOf(status);
  if (carried.empty()) violations->Add(name, status.message());
  for (const base::Violation& violation : carried) {
    violations->Add(
        violation.field.empty() ? std::string(name) : absl::StrCat(name, ": ", violation.field),
        violation.description);
  }
}

}  // namespace sextant::cli
