// SPDX-License-Identifier: Apache-2.0
// What log files have in common: lines with colours, rank labels and progress bars; numbers with
// thousands separators and suffixes; stamps of time.
#ifndef SEXTANT_CALIBRATION_INGEST_TEXT_H_
#define SEXTANT_CALIBRATION_INGEST_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sextant::ingest {

// Cleaned lines of a text, one at a time: ended by LF, CR (a progress bar redraws with it) or both;
// without byte order mark, terminal escapes and the labels that mpirun ("[1,0]<stdout>:") and srun
// ("3: ") put in front. Lines beyond kLineLimit are cut. Linear in the text. Thread-compatible.
class LineReader {
 public:
  static constexpr size_t kLineLimit = 1 << 20;

  explicit LineReader(absl::string_view text);

  bool Next();
  // Of the current line, until the next call of Next.
  absl::string_view line() const { return line_; }
  int64_t number() const { return number_; }  // from 1, counting LF as an editor does

 private:
  absl::string_view rest_;
  std::string line_;
  int64_t number_ = 0;
  bool in_line_ = false;  // the last piece ended with CR alone
};

// Text without terminal escapes (CSI "\x1b[36m", OSC) and control characters other than tab.
std::string WithoutEscapes(absl::string_view line);

// Words between blanks and tabs; at most `limit` of them.
std::vector<absl::string_view> Words(absl::string_view line, size_t limit = 64);

// Finite numbers only: "NaN", "inf", "N/A" and "" are nothing. Thousands separators ("6,785") are
// accepted where they stand between groups of three digits.
std::optional<double> ParseNumber(absl::string_view text);
// The same with one of the suffixes K, M, G, B, T for powers of 1000: "4.71K".
std::optional<double> ParseSuffixedNumber(absl::string_view text);
// A whole number >= 0 below 2^63, digits and thousands separators only.
std::optional<int64_t> ParseCount(absl::string_view text);
// The longest prefix that is a plain number, such as 68.57 of "68.57GiB(86.69%)"; `rest` what
// follows it.
std::optional<double> LeadingNumber(absl::string_view text, absl::string_view* rest = nullptr);

// How many seconds one unit of time is: "ms", "us", "ns", "s", "sec", "milliseconds", ...
std::optional<double> SecondsPerUnit(absl::string_view unit);

// The first stamp "2025-12-19 10:49:15", "2025-12-19T10:49:15" or "12/19/2025 10:49:15" (nanotron,
// month first) of a line as "2025-12-19 10:49:15"; empty where there is none.
std::string FindTimeStamp(absl::string_view line);
// Seconds since 1970 as a stamp in UTC; empty where out of the years 2000 to 2100.
std::string TimeStampOf(double unix_seconds);

// Lower case, every run of other characters than letters and digits one '_', none at the ends:
// "Mean TTFT (ms)" -> "mean_ttft_ms".
std::string KeyOf(absl::string_view label);

// The middle of the values (mean of two); nothing without values.
std::optional<double> Median(std::vector<double> values);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_TEXT_H_
